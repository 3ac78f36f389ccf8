"""NVIDIA data-centre GPUs: matrix products and attention as timed for the aiconfigurator-core package.

The tables stay in that package (an optional extra), only the needed columns are read. See configs/corpora.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml

from ....analytic.errors import InputError, nearest_names
from .common import corpus_facts, data_folder, finished, json_params, sample_rows

if TYPE_CHECKING:
    import pandas as pd

NAME = "aiconfigurator"
PLATFORM_FOLDERS = {
    "b200": "b200_sxm",
    "h200": "h200_sxm",
    "h100-sxm": "h100_sxm",
    "a100-sxm": "a100_sxm",
    "gb200": "gb200",
}
DEFAULT_PLATFORMS = ("b200", "h200", "h100-sxm", "a100-sxm")
"""gb200 has tables but no parameter file: it comes only when asked for."""

# gemm_dtype → (precision of the arithmetic, scheme: how operands are scaled or stored, if that needs saying)
GEMM_DTYPES: dict[str, tuple[str, str | None]] = {
    "bfloat16": ("bf16", None),
    "float16": ("fp16", None),
    "fp8": ("fp8", "fp8"),
    "fp8_block": ("fp8", "fp8_block"),
    "nvfp4": ("fp4", "nvfp4"),
    "int8_wo": ("bf16", "int8_wo"),
    "int4_wo": ("bf16", "int4_wo"),
    "sq": ("int8", "smoothquant"),
}
ATTENTION_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "fp8": "fp8"}

# Published kernel sources whose own spelling is long or carries a layer number.
_SHORT_SOURCES = {
    "torch.nn.functional.linear": "vllm_torch_linear",
    "CutlassFP8ScaledMMLinearKernel": "vllm_cutlass_fp8",
    "CutlassFp8BlockScaledMMKernel": "vllm_cutlass_fp8_block",
    "DeepGemmFp8BlockScaledMMKernel": "vllm_deepgemm_fp8_block",
    "FlashInferFp8BlockScaledMMKernel": "vllm_flashinfer_fp8_block",
    "FlashInferCuteDslNvFp4LinearKernel": "vllm_cutedsl_nvfp4",
    "sglang_sgl_kernel_fp8_scaled_mm": "sglang_fp8_scaled_mm",
    "sglang_flashinfer_cutedsl_nvfp4": "sglang_cutedsl_nvfp4",
    "sglang_deepgemm_gemm_nt_f8f8bf16": "sglang_deepgemm_fp8_block",
    "deepgemm": "trtllm_deepgemm",
    "trt_flow_/weight_only_quant_matmul_L257/PLUGIN_V2_WeightOnlyQuantMatmul_0": "trt_weight_only",
    "trt_flow_/smooth_quant_gemm_L96/PLUGIN_V2_SmoothQuantGemm_0": "trt_smoothquant",
}
_KNOWN_PREFIXES = ("vllm", "sglang", "trt", "torch_flow")
_SHARED_COLUMNS = ("framework", "version", "kernel_source", "latency")


def is_test(site: str) -> bool:
    """Whether a site (`n4096k4096`, `h32kv8d128`) belongs to the test split that everyone uses: sha1 divisible by 5."""
    return int(hashlib.sha1(site.encode(), usedforsecurity=False).hexdigest(), 16) % 5 == 0


def in_test_split(frame: pd.DataFrame) -> pd.Series:
    """Boolean per row: its site (`group`) is a test site."""
    return frame["group"].map({site: is_test(site) for site in frame["group"].unique()}).astype(bool)


def short_implementation(framework: str, kernel_source: str) -> str:
    """A short name which does not change with framework versions: `torch_flow`, `vllm_cutlass_fp8`, `sglang_fa3`."""
    if kernel_source in _SHORT_SOURCES:
        return _SHORT_SOURCES[kernel_source]
    plain = re.sub(r"[^a-z0-9]+", "_", kernel_source.lower()).strip("_")
    return plain if plain.startswith(_KNOWN_PREFIXES) else f"{framework.lower()}_{plain}"


def load(
    data_dir: str | Path | None = None,
    max_rows: int | None = None,
    platforms: Collection[str] | None = None,
    *,
    families: Collection[str] = ("gemm", "attention"),
    seed: int = 0,
    keep_single_token_prefill: bool = False,
    test_sites: bool = True,
) -> pd.DataFrame:
    """The run table of the chosen families and platforms; extra columns framework, version, phase, implementation_raw.

    A prefill kernel run on one new token (7 % of the prefill rows) can take many times what the decoding kernel takes
    for equal parameters, and nobody would run it: such rows come only with `keep_single_token_prefill`.

    A folder `aiconfigurator` in `data_dir`, with `<gpu>/<family>/…` inside, takes the place of the installed package.
    `test_sites=False` leaves the test sites out: what a shipped model is trained on.
    `max_rows` is drawn in equal shares for each platform and family, so that no small table is drowned.
    """
    import pandas as pd

    wanted = DEFAULT_PLATFORMS if platforms is None else [name for name in PLATFORM_FOLDERS if name in platforms]
    unknown = [name for name in families if name not in _FAMILIES]
    if unknown:
        raise InputError(f"corpus {NAME}: unknown family {unknown[0]!r}{nearest_names(unknown[0], _FAMILIES)}")
    root, source = _root(data_dir)
    parts = [
        part for platform in wanted for family in families if (part := _family_rows(root, platform, family)) is not None
    ]
    if not keep_single_token_prefill:
        parts = [part[(part["phase"] != "context") | (part.get("isl", 2) > 1)] for part in parts]
    share = None if max_rows is None else max_rows // max(len(parts), 1)
    # test sites are found by group, which the conversion makes: without them, sample after it
    early = share if test_sites else None
    parts = [sample_rows(part, early, seed) for part in parts]
    frames = [_FAMILIES[str(part["family"].iloc[0])][2](part) for part in parts if len(part)]
    if not test_sites:
        frames = [sample_rows(frame[~in_test_split(frame)], share, seed) for frame in frames]
    if not frames:
        raise InputError(f"corpus {NAME}: no row is left for the chosen platforms and families")
    frame = pd.concat(frames, ignore_index=True)
    frame["statistic"], frame["cache"], frame["scope"] = "mean", "warm", "kernel"
    frame["source"], frame["license"] = source, corpus_facts(NAME)["license"]["spdx"]
    return finished(frame, NAME)


def _root(data_dir: str | Path | None) -> tuple[Path, str]:
    """The folder of `<gpu>/<family>/…` and how to name the source."""
    folder = data_folder(data_dir)
    if folder is not None and (folder / NAME).is_dir():
        return folder / NAME, f"aiconfigurator-core (folder {NAME})"
    spec = importlib.util.find_spec("aiconfigurator_core")
    locations = list(spec.submodule_search_locations or ()) if spec else []
    if not locations:
        raise InputError(f"corpus {NAME}: package aiconfigurator-core is not installed; {corpus_facts(NAME)['get']}")
    version = importlib.metadata.version("aiconfigurator-core")
    return Path(locations[0]) / "systems" / "data", f"aiconfigurator-core=={version}"


def _tables(root: Path, platform: str, family: str) -> Iterator[tuple[str, Path]]:
    """(table name, file) of every measured table; one which its version only borrows from another is left out."""
    names = _FAMILIES[family][0]
    for folder in sorted((root / PLATFORM_FOLDERS[platform] / family).glob("*/*")):
        reuse = folder / "reuse.yaml"
        borrowed: set[str] = set()
        if reuse.is_file():
            entries = yaml.safe_load(reuse.read_text(encoding="utf-8")).get("reuse") or ()
            borrowed = {str(entry["table"]) for entry in entries}
        for name in names:
            path = folder / f"{name}.parquet"
            if name not in borrowed and path.is_file():
                yield name, path


def _family_rows(root: Path, platform: str, family: str) -> pd.DataFrame | None:
    """All rows of one family on one platform as published, still without params."""
    import pandas as pd
    import pyarrow.parquet as pq

    columns = (*_SHARED_COLUMNS, *_FAMILIES[family][1])
    parts = []
    for name, path in _tables(root, platform, family):
        with pq.ParquetFile(path) as file:
            present = [column for column in columns if column in file.schema_arrow.names]
            absent = [column for column in columns if column not in present and column not in _OPTIONAL]
            if absent:
                raise InputError(
                    f"corpus {NAME}: {path} has no column {', '.join(absent)}; another release of the package?"
                )
            part = file.read(columns=present).to_pandas()
        for column, default in _OPTIONAL.items():
            if column in columns and column not in part.columns:
                part[column] = default
        parts.append(part.assign(phase=name.partition("_")[0] if family == "attention" else ""))
    if not parts:
        return None
    rows: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return rows.assign(platform=platform, family=family)


def _shared(rows: pd.DataFrame) -> dict[str, Any]:
    pairs = rows[["framework", "kernel_source"]].drop_duplicates().itertuples(index=False)
    short = {(str(f), str(k)): short_implementation(str(f), str(k)) for f, k in pairs}
    key = rows["framework"].astype(object) + "\n" + rows["kernel_source"].astype(object)
    return {
        "platform": rows["platform"].to_numpy(dtype=object),
        "time_s": rows["latency"].to_numpy(dtype=np.float64) * 1e-3,  # published in milliseconds
        "implementation": key.map({f"{f}\n{k}": name for (f, k), name in short.items()}).to_numpy(),
        "implementation_raw": rows["kernel_source"].to_numpy(dtype=object),
        "framework": rows["framework"].to_numpy(dtype=object),
        "version": rows["version"].to_numpy(dtype=object),
        "phase": rows["phase"].to_numpy(dtype=object),
    }


def _mapped(rows: pd.DataFrame, column: str, table: dict[str, Any]) -> Any:
    values = rows[column].astype(object)
    unknown = sorted(set(values.unique()) - set(table))
    if unknown:
        raise InputError(f"corpus {NAME}: {column} {unknown[0]!r} is unknown{nearest_names(unknown[0], table)}")
    return values.map(table).to_numpy(dtype=object)


def _gemm(rows: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    sizes = {name: rows[name].to_numpy() for name in ("m", "n", "k")}
    scheme = _mapped(rows, "gemm_dtype", {key: value[1] for key, value in GEMM_DTYPES.items()})
    return pd.DataFrame(
        {
            "kernel": "gemm",
            "precision": _mapped(rows, "gemm_dtype", {key: value[0] for key, value in GEMM_DTYPES.items()}),
            "params": json_params({**sizes, "scheme": scheme}),
            "group": _site({"n": sizes["n"], "k": sizes["k"]}),
            **_shared(rows),
        }
    )


def _attention(rows: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    precision = _mapped(rows, "attn_dtype", ATTENTION_DTYPES)
    kv_precision = _mapped(rows, "kv_cache_dtype", ATTENTION_DTYPES)
    window = rows["window_size"].to_numpy(dtype=object)
    window[window == 0] = None  # full attention
    kv_precision[kv_precision == precision] = None
    params = {
        "batch": rows["batch_size"].to_numpy(),
        "heads": rows["num_heads"].to_numpy(),
        "kv_heads": rows["num_key_value_heads"].to_numpy(),
        "q_len": rows["isl"].to_numpy(),
        "kv_len": (rows["isl"] + rows["step"]).to_numpy(),  # new tokens and those already in the cache
        "head_dim": rows["head_dim"].to_numpy(),
        "causal": np.ones(len(rows), dtype=bool),
        "window": window,
        "kv_precision": kv_precision,
    }
    site = {"h": params["heads"], "kv": params["kv_heads"], "d": params["head_dim"]}
    return pd.DataFrame(
        {
            "kernel": "attention",
            "precision": precision,
            "params": json_params(params),
            "group": _site(site),
            **_shared(rows),
        }
    )


def _site(parts: dict[str, Any]) -> Any:
    """`n4096k512` and the like, spelled once for every distinct size."""
    import pandas as pd

    text: Any = ""
    for letter, values in parts.items():
        codes, distinct = pd.factorize(np.asarray(values))
        text = text + np.array([f"{letter}{int(value)}" for value in distinct], dtype=object)[codes]
    return text


_OPTIONAL: dict[str, Any] = {"window_size": 0}  # absent in old tables, where every window is full
_FAMILIES: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[Any], Any]]] = {
    "gemm": (("gemm_perf",), ("gemm_dtype", "m", "n", "k"), _gemm),
    "attention": (
        ("context_attention_perf", "generation_attention_perf"),
        (
            "batch_size",
            "isl",
            "step",
            "num_heads",
            "num_key_value_heads",
            "head_dim",
            "window_size",
            "attn_dtype",
            "kv_cache_dtype",
        ),
        _attention,
    ),
}
"""family → (table names, its columns, adapter)."""
