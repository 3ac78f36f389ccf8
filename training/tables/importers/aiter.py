"""AMD Instinct matrix products: the winners of aiter's kernel tuning (a lower envelope, not a sample of kernels)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from .common import finished, keep_platforms, read_converted, rename_implementations, sample_rows, short_or_refuse

if TYPE_CHECKING:
    import pandas as pd

NAME = "aiter"


def short_implementation(raw: str) -> str:
    """`ck`, `ck_asm` (the table does not say which of the two), `cktile`, `asm`, `flydsl`, `torch`, `opus`, …"""
    return short_or_refuse(NAME, raw, "has not the form 'aiter LIBRARY splitK=…'")


def load(
    data_dir: str | Path | None = None,
    max_rows: int | None = None,
    platforms: Collection[str] | None = None,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """The run table; `group` is the (N, K) site in the spelling shared with the NVIDIA tables (`n1280k8192`)."""
    frame = sample_rows(keep_platforms(read_converted(NAME, data_dir), platforms), max_rows, seed)
    frame = rename_implementations(frame, short_implementation)
    # a scheme says how narrow operands are scaled; for bf16 there is nothing to scale and nothing to say
    params = frame["params"].str.replace(r',"scheme":"bf16(?:_batched)?"', "", regex=True)
    return finished(frame.assign(params=params, group=frame["group"].str.lower()), NAME)
