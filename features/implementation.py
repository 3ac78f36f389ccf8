"""Implementation labels: the long spellings of public tables made short, and common other names for the same library.

A label says whose kernel ran. Tables spell it in many ways ("Ginkgo csrc", "aiter ck splitK=0 …", "PyTorch"), and a
model only knows the spellings it was trained on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analytic.rules import plain

_SPARSE_LIBRARIES = {"Ginkgo": "ginkgo", "hipSPARSE": "hipsparse", "cuSPARSE": "cusparse"}
_STRATEGIES = {
    "csrc": "csr_classical", "csri": "csr_load_balanced", "csrm": "csr_merge_path", "csrmm": "csr_spmm",
    "gcsr": "csr_generic", "gcsr2": "csr_generic2", "gcoo": "coo_generic",
}
_HYBRID = re.compile(r"hybrid(limit|minstorage)?(\d*)")
_SPARSE = re.compile(rf"({'|'.join(_SPARSE_LIBRARIES)}) (\S+)")
# "aiter <library> splitK=<s> <kernel> [<table>]": the library is the implementation
_AITER = re.compile(r"aiter (\S+) splitK=.*", re.DOTALL)


def sparse_name(found: re.Match[str]) -> str:
    """`ginkgo_csr`, `ginkgo_csr_classical`, `ginkgo_hybrid_limit_25`, `hipsparse_csr`, `cusparse_csr_generic`, …"""
    library, strategy = found.groups()
    hybrid = _HYBRID.fullmatch(strategy)
    if hybrid:
        name = "_".join(["hybrid", *(part for part in hybrid.groups() if part)])
    else:
        name = _STRATEGIES.get(strategy, strategy)
    return f"{_SPARSE_LIBRARIES[library]}_{name}"


def aiter_name(found: re.Match[str]) -> str:
    """`ck`, `ck_asm` (the table does not say which of the two), `cktile`, `asm`, `torch`, …"""
    return found[1].replace("/", "_")


SPELLINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (_SPARSE, sparse_name),
    (_AITER, aiter_name),
    (re.compile(r"mgpusim .*", re.DOTALL), lambda _: "mgpusim"),
    (re.compile(r".*kernel.tuner.*\(HIP.*", re.DOTALL | re.IGNORECASE), lambda _: "kernel_tuner_hip"),
    (re.compile(r".*kernel.tuner.*\(CUDA.*", re.DOTALL | re.IGNORECASE), lambda _: "kernel_tuner_cuda"),
)


def short_name(label: str) -> str:
    """The short form of a public table's spelling; any other label as it is."""
    for pattern, name in SPELLINGS:
        found = pattern.fullmatch(label)
        if found:
            return name(found)
    return label


def spelling(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels of shape (n,) as they are compared: cuBLAS is cublas."""
    distinct, codes = np.unique(labels.astype(str), return_inverse=True)
    return np.array([plain(str(label)) for label in distinct])[codes]


_FRAMEWORK = ("torch", "pytorch", "aten", "torch.matmul", "torch.mm", "torch.nn.functional")
# Names under which the same library kernel goes, by the label our own measurements carry.
SAME_LIBRARY: dict[str, tuple[str, ...]] = {
    "cublas": ("cublaslt", "cublas_lt", "cupy", "cutlass", "torch_linear", *_FRAMEWORK),
    "cusparse": ("cupy", "cupyx", "scipy", *_FRAMEWORK),
    "cufft": ("cupy", *_FRAMEWORK),
    "cudnn": _FRAMEWORK,
    "flash": ("flash_attention", "flashattention", "flash_attn", "fa2", "fa3", "sdpa", "torch_sdpa", *_FRAMEWORK),
    "torch": (*_FRAMEWORK, "cupy"),
    "thread_element": ("handwritten", "hand-written", "cuda", "cupy"),
    "rocblas": ("hipblas", "hipblaslt", *_FRAMEWORK),
    "rocsparse": ("hipsparse",),
}


def _known_as(label: str, known: Collection[str]) -> str:
    """The known label that names the same library, or the label itself."""
    plain = re.sub(r"[\s.]+", "_", label.strip().lower())
    for candidate in (label.strip().lower(), plain, plain.split("_")[0], plain.split("-")[0]):
        if candidate in known:
            return candidate
        for library, names in SAME_LIBRARY.items():
            if library in known and candidate in names:
                return library
    return label


def canonical_labels(labels: NDArray[Any], known: Collection[str] | None = None) -> NDArray[Any]:
    """Labels of shape (n,) in short form; those not among `known` (where given) become a known name of a library."""
    distinct, codes = np.unique(labels.astype(str), return_inverse=True)
    short = [short_name(str(label)) for label in distinct]
    if known is not None:
        short = [name if name in known else _known_as(name, known) for name in short]
    return np.asarray(short)[codes]
