"""Our equations or those of the paper as printed: the one place that decides which of them a platform follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from numpy.typing import ArrayLike

from . import gemm as ours
from .gemm_common import GemmTime
from .gemm_tiles import Machine, machine
from .platform import Platform
from .published import gemm as printed


class MatrixTime(Protocol):
    """Time of n matrix products on a platform: `gemm.stage_gemm` and its like."""

    def __call__(
        self, platform: Platform, m: ArrayLike, n: ArrayLike, k: ArrayLike, batch: ArrayLike, precision: str,
        tile: tuple[int, ...] | None = None, *, unit: str = "matrix", cache: str = "cold",
    ) -> GemmTime: ...


@dataclass(frozen=True)
class EquationSet:
    """One way through the equations. `matrix`: by the architecture's route; `splits`: whether a split K loop costs."""

    name: str
    matrix: Mapping[str, MatrixTime]
    machine: Callable[[Platform, str, str], Machine]
    splits: bool
    launch_parameter: Callable[[Platform], str]
    """The parameter that every kernel of a counted segment pays."""
    routing: str
    """How counted segments are routed where their workload does not say."""


def launch_floor_parameter(platform: Platform) -> str:
    """The parameter behind the shortest duration of a kernel: an empty one where measured, else the launch latency."""
    return "empty_kernel_duration" if platform.get("empty_kernel_duration") else "kernel_launch_latency"


# Measured kernel times do not hold the gaps between kernels: ours pay the duration of an empty kernel, the printed
# equations the launch latency.
CALIBRATED = EquationSet(
    "calibrated", {"stage": ours.stage_gemm, "wavefront": ours.wavefront_gemm}, machine, True, launch_floor_parameter,
    "generic",
)
PUBLISHED = EquationSet(
    "published", {"stage": printed.stage_gemm, "wavefront": printed.wavefront_gemm}, printed.printed_machine, False,
    lambda platform: "kernel_launch_latency", "published",
)


def equation_set(platform: Platform) -> EquationSet:
    """The equations that a platform's parameter set is for."""
    return PUBLISHED if platform.as_published else CALIBRATED


def matrix_time(platform: Platform) -> MatrixTime:
    """The function that times matrix products on `platform`: by its architecture's route and its equation set."""
    return equation_set(platform).matrix[platform.architecture.matrix_route]
