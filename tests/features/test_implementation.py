"""Labels of public tables in short form, and other names of the libraries a model knows."""

from __future__ import annotations

import numpy as np
import pytest
from kernelcast.features.implementation import canonical_labels, short_name


@pytest.mark.parametrize(
    ("raw", "short"),
    [
        ("Ginkgo csrc", "ginkgo_csr_classical"),
        ("Ginkgo hybridlimit25", "ginkgo_hybrid_limit_25"),
        ("cuSPARSE gcsr2", "cusparse_csr_generic2"),
        ("aiter ck/asm splitK=2 some_kernel [some_table.csv]", "ck_asm"),
        ("mgpusim scripts/bfs.cpp (bfs; HIP)", "mgpusim"),
        ("cublas", "cublas"),
        ("Ginkgo", "Ginkgo"),
    ],
)
def test_long_spellings_become_short_and_others_stay(raw: str, short: str) -> None:
    assert short_name(raw) == short


def test_another_name_of_a_known_library_is_recognised_and_a_stranger_is_not() -> None:
    labels = np.array(["cuBLASLt", "PyTorch", "torch", "tile16", "my_kernel", "hipSPARSE csr"])
    found = canonical_labels(labels, ["cublas", "tile16"])
    assert found.tolist() == ["cublas", "cublas", "cublas", "tile16", "my_kernel", "hipsparse_csr"]


def test_a_known_label_is_never_renamed() -> None:
    assert canonical_labels(np.array(["torch"]), ["torch", "cublas"]).tolist() == ["torch"]
