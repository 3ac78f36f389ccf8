"""`kernelcast demo`: the main job from end to end, on the measured runs that ship with the package."""

from __future__ import annotations

from .progress import progress
from .show import console, text

PLATFORM = "h200"
QUESTIONS = (
    ("gemm", "bf16", {"m": 8192, "n": 8192, "k": 8192}),
    ("spmv_csr", "fp32", {"rows": 1_000_000, "cols": 1_000_000, "nnz": 16_000_000, "row_mean": 16.0, "row_std": 4.0,
                          "row_max": 36, "structure": "uniform"}),
    ("bfs", "int32", {"nodes": 1_000_000, "edges": 16_000_000, "levels": 7, "max_degree": 36, "std_degree": 4.0,
                      "structure": "uniform"}),
)
"""A matrix product, a sparse product on a uniform random matrix, a search of a uniform random graph."""


def demo() -> None:
    """Train on the shipped H200 runs, compare with the baselines, predict three kernels with 90 % bands."""
    from ..answer import predict
    from ..train import train_platforms
    from .predict import show
    from .train import load, show_trained

    frame, source = load(None, [PLATFORM], False)
    where = console()
    where.print(text(f"training on {len(frame)} measured runs of {PLATFORM} ({source}), quick settings"))
    with progress("training") as move:
        (trained,) = train_platforms(frame, runs=source, quick=True, progress=move)
    show_trained(trained)
    where.print()
    for family, precision, params in QUESTIONS:
        show([predict(family, platform=PLATFORM, precision=precision, model=trained.model, **params)])
        where.print()
