"""kernelcast: how long a GPU kernel will take, with an uncertainty band that keeps its promise.

    import kernelcast as kc
    p = kc.predict("gemm", platform="h200", precision="bf16", m=8192, n=8192, k=8192)
    p.predicted_s, p.lower_s, p.upper_s

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .analytic.errors import InputError, KernelcastError, RefusedError
    from .analytic.platform import Platform, load_platform
    from .service.answer import Prediction, predict
    from .service.api import compare, platforms, predict_runs, train
    from .service.application import predict_workload
    from .service.families import families
    from .training.hybrid.model import Model

_HOME = {
    "InputError": "analytic.errors",
    "KernelcastError": "analytic.errors",
    "RefusedError": "analytic.errors",
    "Platform": "analytic.platform",
    "load_platform": "analytic.platform",
    "predict": "service.answer",
    "Prediction": "service.answer",
    "predict_runs": "service.api",
    "predict_workload": "service.application",
    "train": "service.api",
    "compare": "service.api",
    "platforms": "service.api",
    "families": "service.families",
    "Model": "training.hybrid.model",
}

__all__ = [
    "InputError",
    "KernelcastError",
    "Model",
    "Platform",
    "Prediction",
    "RefusedError",
    "__version__",
    "compare",
    "families",
    "load_platform",
    "platforms",
    "predict",
    "predict_runs",
    "predict_workload",
    "train",
]


def __getattr__(name: str) -> Any:
    try:
        module = _HOME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
