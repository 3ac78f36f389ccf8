"""The GPU as the harness sees it: torch, CuPy, compiled kernels, markers, the cache flush, the state of the card."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..analytic.errors import KernelcastError

FLUSH_BYTE = 512 * 2**20  # several times any last-level cache here
KERNELS = Path(__file__).parent / "kernels"
THROTTLED = 0.85  # share of the highest SM clock below which a state counts as throttled
REAL = {
    "fp64": "double",
    "fp32": "float",
    "tf32": "float",
    "int32": "float",
    "mixed": "float",
    "fp16": "unsigned short",
}


class Skip(Exception):  # noqa: N818
    """A configuration that makes no sense or does not fit; the message is the reason kept in the meta file."""


def require_platform(platform_id: str, gpu_name: str) -> None:
    """Refuse a GPU that is not the platform claimed: `h200` is `NVIDIA H200`, neither H100 nor GH200."""
    wanted = re.split(r"[-_]", platform_id)[0]
    if not re.search(rf"(?<![A-Za-z0-9]){re.escape(wanted)}(?![A-Za-z0-9])", gpu_name, re.IGNORECASE):
        raise KernelcastError(
            f"this GPU is a {gpu_name!r}, not the platform {platform_id!r} named by --platform: "
            "measured times would be filed under the wrong hardware"
        )


class Gpu:
    """torch and CuPy on device 0, sharing the default stream. Raises KernelcastError where there is none."""

    def __init__(self) -> None:
        try:
            import cupy
            import torch
        except ImportError as error:
            raise KernelcastError(f"measuring needs torch and cupy, which are not installed here ({error})") from error
        if not torch.cuda.is_available():
            raise KernelcastError("no GPU found: measuring needs one (torch.cuda.is_available() is False)")
        self.torch: Any = torch
        self.cp: Any = cupy
        self.name: str = torch.cuda.get_device_name(0)
        self.dtype = {
            "fp64": torch.float64, "fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16,
            "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn, "int8": torch.int8, "int32": torch.int32,
            "mixed": torch.float32,
        }
        self._modules: dict[tuple[str, str], Any] = {}
        self._functions: dict[tuple[str, str, str], Any] = {}
        self._warp = int(torch.cuda.get_device_properties(0).warp_size)
        self.cache: dict[str, Any] = {}  # the last few matrices and graphs, shared by the configurations of a draw
        self._flush_buffer: Any = torch.empty(FLUSH_BYTE // 4, dtype=torch.float32, device="cuda")
        self._flush: Any = self.kernel("vector", "kc_flush")(
            132 * 16, 512, self._flush_buffer, np.int64(FLUSH_BYTE // 16), np.float32(1.5)
        )
        self._marker = self._function("vector", "kc_marker", "float")

    def _function(self, module: str, name: str, real: str) -> Any:
        key = (module, real)
        if key not in self._modules:
            self._modules[key] = self._compile(module, real)
        if (*key, name) not in self._functions:
            self._functions[(*key, name)] = self._modules[key].get_function(name)
        return self._functions[(*key, name)]

    def _compile(self, module: str, real: str) -> Any:
        source = (KERNELS / "common.cuh").read_text() + (KERNELS / f"{module}.cu").read_text()
        options = ("--std=c++17", f"-DREAL={real}", f"-DWARP={self._warp}")
        return self.cp.RawModule(code=source, options=options)

    @property
    def warp(self) -> int:
        return self._warp

    @property
    def vendor(self) -> str:
        return "amd" if self.torch.version.hip else "nvidia"

    def raw(self, module: str, name: str, precision: str = "fp32") -> Any:
        """The compiled kernel itself, launched on CuPy's current stream: for graphs and for several streams."""
        return self._function(module, name, REAL[precision])

    def address(self, module: str, name: str) -> int:
        """The driver's handle of a kernel, for a host loop without Python."""
        function = self.raw(module, name)
        return int(getattr(function, "kernel", function).ptr)

    def fresh(self, module: str, name: str, precision: str = "fp32") -> Any:
        """A kernel compiled anew for CuPy's current device."""
        return self._compile(module, REAL[precision]).get_function(name)

    def kernel(
        self, module: str, name: str, precision: str = "fp32", shared: int = 0
    ) -> Callable[..., Callable[[], None]]:
        """`kernel(...)(grid, block, *args)` is a call without arguments; tensors go by address and are kept alive."""
        function = self._function(module, name, REAL[precision])

        def bind(grid: int | tuple[int, ...], block: int | tuple[int, ...], *args: Any) -> Callable[[], None]:
            grid3 = (grid,) if isinstance(grid, int) else grid
            block3 = (block,) if isinstance(block, int) else block
            if min(grid3) < 1 or any(g > 65535 for g in grid3[1:]):
                raise Skip(f"{name}: grid {grid3} is outside what a launch allows")
            packed = tuple(np.uint64(a.data_ptr()) if hasattr(a, "data_ptr") else a for a in args)

            def call(keep: tuple[Any, ...] = args) -> None:
                function(grid3, block3, packed, shared_mem=shared)

            return call

        return bind

    def mark(self, code: int) -> None:
        self._marker((code,), (1,), (np.int32(0),))

    def flush(self) -> None:
        self._flush()

    def randn(self, *shape: int, precision: str = "fp32") -> Any:
        """Random values, never zeros: zeros run faster on the matrix units and hide unwritten outputs."""
        torch, dtype = self.torch, self.dtype[precision]
        if precision == "int8":
            return torch.randint(-8, 8, shape, dtype=dtype, device="cuda")
        if precision == "fp8":
            return torch.randn(shape, dtype=torch.bfloat16, device="cuda").to(dtype)
        return torch.randn(shape, dtype=dtype, device="cuda")

    def rand(self, *shape: int, precision: str = "fp32") -> Any:
        return self.torch.rand(shape, dtype=self.dtype[precision], device="cuda")

    def empty(self, *shape: int, precision: str = "fp32") -> Any:
        return self.torch.empty(shape, dtype=self.dtype[precision], device="cuda")

    def integers(self, high: int, *shape: int, low: int = 0, wide: bool = False) -> Any:
        dtype = self.torch.int64 if wide else self.torch.int32
        return self.torch.randint(low, high, shape, dtype=dtype, device="cuda")

    def error(self, got: Any, want: Any) -> float:
        """‖got − want‖ / ‖want‖ in double precision; infinite for NaN."""
        torch = self.torch
        got, want = got.to(torch.float64), want.to(torch.float64)
        scale = float(torch.linalg.vector_norm(want)) or 1.0
        value = float(torch.linalg.vector_norm(got - want)) / scale
        return value if np.isfinite(value) else float("inf")

    def equal(self, got: Any, want: Any) -> float:
        return 0.0 if bool(self.torch.equal(got, want)) else 1.0

    def capture(self, call: Callable[[], Any], count: int) -> Callable[[], float]:
        """`call`, `count` times, as one graph: the result replays it once and gives the seconds between two events.

        Raises what torch or CuPy raise for a call that cannot be captured."""
        torch, graph = self.torch, self.torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream()
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.sync()
        with torch.cuda.stream(stream), self.cp.cuda.ExternalStream(stream.cuda_stream):
            call()  # what the first call chooses or allocates is not in the graph
            stream.synchronize()
            graph.capture_begin()
            try:
                for _ in range(count):
                    call()
            finally:
                graph.capture_end()

        def replay() -> float:
            with torch.cuda.stream(stream):
                before.record()
                graph.replay()
                after.record()
                after.synchronize()
            return float(before.elapsed_time(after)) * 1e-3

        replay()  # the first launch of a graph uploads it
        return replay

    def sync(self) -> None:
        self.torch.cuda.synchronize()

    def seed(self, seed: int) -> None:
        self.torch.manual_seed(seed % 2**31)

    def forget(self) -> None:
        """Hold as little memory as can be: the flush buffer, shared inputs and cached blocks go. No `flush` after."""
        self._flush_buffer = self._flush = None
        self.cache.clear()
        self.torch.cuda.empty_cache()
        self.cp.get_default_memory_pool().free_all_blocks()

    def release(self) -> None:
        """Give cached blocks back when much is held, so that one size class does not starve another."""
        if self.torch.cuda.memory_reserved() > 40 * 2**30:
            self.torch.cuda.empty_cache()
        self.cp.get_default_memory_pool().free_all_blocks()


def card_state() -> dict[str, str]:
    """Clocks, temperature, power and driver as nvidia-smi gives them; empty where it is not there."""
    fields = (
        "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,temperature.gpu,power.draw,memory.total"
    )
    try:
        command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
        line = subprocess.run(command, check=True, capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(zip(fields.split(","), (v.strip() for v in line.splitlines()[0].split(",")), strict=True))


def throttled(states: list[dict[str, str]]) -> bool:
    """Whether the latest reading shows the SM clock well below its highest."""
    now, top = (states[-1].get(name, "").split()[:1] for name in ("clocks.sm", "clocks.max.sm"))
    return bool(now and top and now[0].isdigit() and top[0].isdigit() and float(now[0]) < THROTTLED * float(top[0]))
