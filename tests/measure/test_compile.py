"""The kernels compile for Hopper and Blackwell with nvcc, and for CDNA 3 with clang's HIP, where those are."""

from __future__ import annotations

import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest
from kernelcast.measure.gpu import REAL

KERNELS = Path(str(resources.files("kernelcast.measure"))) / "kernels"
HOST = ("activity_trace", "host_loop")  # plain C++, not for the device
MODULES = sorted(p.stem for p in KERNELS.glob("*.cu") if p.stem not in HOST)
HIP_HEADERS = [p for p in (Path("/usr/include"), Path("/opt/rocm/include")) if (p / "hip" / "hip_runtime.h").exists()]
CLANG = next((c for c in (*(f"clang++-{n}" for n in range(25, 16, -1)), "clang++") if shutil.which(c)), None)


def source(module: str, folder: Path, ending: str) -> Path:
    """The text that the harness compiles at run time."""
    path = folder / f"{module}.{ending}"
    path.write_text((KERNELS / "common.cuh").read_text() + (KERNELS / f"{module}.cu").read_text())
    return path


def compiled(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def test_every_element_type_is_compiled_here() -> None:
    assert {"float", "double"} <= set(REAL.values())
    assert len(MODULES) >= 8


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on this machine")
@pytest.mark.parametrize("module", MODULES)
def test_kernels_compile_for_hopper_and_blackwell(module: str, tmp_path: Path) -> None:
    """To machine code for both; nothing is optimised, which takes most of the time and finds no error."""
    path = source(module, tmp_path, "cu")
    for real, architectures in (("float", (90, 100)), ("double", (100,))):
        targets = [word for sm in architectures for word in ("-gencode", f"arch=compute_{sm},code=sm_{sm}")]
        said = compiled(["nvcc", "-std=c++17", f"-DREAL={real}", "-DWARP=32", "-Xcicc", "-O0", "-Xptxas", "-O0",
                         *targets, "-fatbin", str(path), "-o", str(tmp_path / "out.fatbin")])
        assert "error" not in said


@pytest.mark.skipif(CLANG is None or not HIP_HEADERS, reason="no clang 17 or newer with HIP headers on this machine")
@pytest.mark.parametrize("module", MODULES)
def test_kernels_compile_for_cdna_as_hip(module: str, tmp_path: Path) -> None:
    """To assembly for MI300: nothing is linked, so that no device library of its age is needed."""
    out, rocm = tmp_path / "out.s", HIP_HEADERS[0].parent
    compiled([str(CLANG), "-x", "hip", "--offload-arch=gfx942", "--offload-device-only", "-nogpulib", "-O1",
              "-std=c++17", "-DREAL=float", "-DWARP=64", "-D__HIP_PLATFORM_AMD__", f"--rocm-path={rocm}", "-include",
              "hip/hip_runtime.h", "-S", str(source(module, tmp_path, "hip")), "-o", str(out)])
    assert "amdgcn-amd-amdhsa--gfx942" in out.read_text()


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler on this machine")
def test_the_host_library_builds_and_loops_over_a_driver(tmp_path: Path) -> None:
    """Against a driver of our own that does nothing: every function is found, called and timed."""
    import ctypes

    from kernelcast.measure.host_loop import DRIVERS
    from kernelcast.measure.tracers import build_host_library

    names = DRIVERS["nvidia"][1:]
    nothing = tmp_path / "driver.cpp"
    body = "".join(f'extern "C" int {n}(...) {{ ++calls; return 0; }}\n' for n in names)
    nothing.write_text(f'static long calls = 0;\n{body}extern "C" long calls_made() {{ return calls; }}\n')
    driver = tmp_path / "libdriver.so"
    compiled(["g++", "-shared", "-fPIC", str(nothing), "-o", str(driver)])
    loop = ctypes.CDLL(str(build_host_library("host_loop")))
    table = (ctypes.c_char_p * len(names))(*(n.encode() for n in names))
    assert loop.kc_host_open(str(tmp_path / "none.so").encode(), table) == -1
    assert loop.kc_host_open(str(driver).encode(), table) == 0
    loop.kc_pipelined_s.restype = ctypes.c_double
    assert 0.0 <= loop.kc_pipelined_s(None, None, 100) < 1e-3
    made = ctypes.CDLL(str(driver)).calls_made
    made.restype = ctypes.c_long
    assert made() == 102  # a hundred launches between two waits
