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
    from .service.adapt import adapt, suggest
    from .service.answer import Prediction, predict
    from .service.application import predict_workload
    from .service.batch import predict_runs
    from .service.compare import compare
    from .service.face import crossover, explain
    from .service.families import families
    from .service.models import load_model, models, promote
    from .service.platforms import platforms
    from .service.tiles import tiles
    from .service.train import train
    from .training.hybrid.model import Model
    from .training.hybrid.notes import Note

_HOME = {
    "InputError": "analytic.errors",
    "KernelcastError": "analytic.errors",
    "RefusedError": "analytic.errors",
    "Platform": "analytic.platform",
    "load_platform": "analytic.platform",
    "platforms": "service.platforms",
    "predict": "service.answer",
    "Prediction": "service.answer",
    "predict_runs": "service.batch",
    "predict_workload": "service.application",
    "explain": "service.face",
    "tiles": "service.tiles",
    "crossover": "service.face",
    "families": "service.families",
    "train": "service.train",
    "compare": "service.compare",
    "adapt": "service.adapt",
    "suggest": "service.adapt",
    "models": "service.models",
    "promote": "service.models",
    "load_model": "service.models",
    "Model": "training.hybrid.model",
    "Note": "training.hybrid.notes",
}

__all__ = [
    "InputError",
    "KernelcastError",
    "Model",
    "Note",
    "Platform",
    "Prediction",
    "RefusedError",
    "__version__",
    "adapt",
    "compare",
    "crossover",
    "explain",
    "families",
    "load_model",
    "load_platform",
    "models",
    "platforms",
    "predict",
    "predict_runs",
    "predict_workload",
    "promote",
    "suggest",
    "tiles",
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
