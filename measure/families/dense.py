"""Dense linear algebra and networks: matrix products, convolution, attention, FFT, clustering, gravity, LU."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..case import TOLERANCE, Builder, Case, Measured, Params, blocks, in_turn
from ..gpu import Gpu, Skip
from ..groups import weights
from ..rough import image, launches, log2

I32 = np.int32


def _tf32(g: Gpu, precision: str) -> None:
    g.torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    g.torch.backends.cudnn.allow_tf32 = precision == "tf32"


def gemm_cublas(g: Gpu, p: Params, precision: str) -> Case:
    """C = A Wᵀ, row-major A (m, k) and W (n, k), for 16- and 8-bit types; C = A B with B (k, n) for the others."""
    torch, m, n, k = g.torch, p["m"], p["n"], p["k"]
    a = g.randn(m, k, precision=precision)
    transposed = precision in ("fp16", "bf16", "fp8", "int8")
    b = g.randn(n, k, precision=precision).t() if transposed else g.randn(k, n, precision=precision)
    if precision == "fp8":
        if n % 16 or k % 16:
            raise Skip("fp8 products need n and k in multiples of 16")
        one = torch.ones((), dtype=torch.float32, device="cuda")
        out: Any = None

        def call() -> Any:
            return torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)
    elif precision == "int8":
        if m <= 16 or n % 8 or k % 8:
            raise Skip("int8 products need m > 16 and n, k in multiples of 8")

        def call() -> Any:
            return torch._int_mm(a, b)
    else:
        out = torch.empty((m, n), dtype=a.dtype, device="cuda")

        def call() -> Any:
            _tf32(g, precision)
            return torch.mm(a, b, out=out)

    def check() -> float:
        return g.error(call(), a.double() @ b.double())

    return Case(call, check, TOLERANCE[precision])


def gemm_tile16(g: Gpu, p: Params, precision: str) -> Case:
    m, n, k = p["m"], p["n"], p["k"]
    a, b, c = g.randn(m, k, precision=precision), g.randn(k, n, precision=precision), g.empty(m, n, precision=precision)
    call = g.kernel("dense", "gemm_tile16", precision)(
        (blocks(n, 16), blocks(m, 16)), (16, 16), np.int32(m), np.int32(n), np.int32(k), a, b, c
    )

    def check() -> float:
        call()
        return g.error(c, a.double() @ b.double())

    return Case(call, check, TOLERANCE[precision])


def bmm_cublas(g: Gpu, p: Params, precision: str) -> Case:
    torch, batch, m, n, k = g.torch, p["batch"], p["m"], p["n"], p["k"]
    a, b = g.randn(batch, m, k, precision=precision), g.randn(batch, k, n, precision=precision)
    out = torch.empty((batch, m, n), dtype=a.dtype, device="cuda")

    def call() -> Any:
        _tf32(g, precision)
        return torch.bmm(a, b, out=out)

    return Case(call, lambda: g.error(call(), torch.bmm(a.double(), b.double())), TOLERANCE[precision])


def gemv_cublas(g: Gpu, p: Params, precision: str) -> Case:
    torch = g.torch
    a, x = g.randn(p["m"], p["n"], precision=precision), g.randn(p["n"], precision=precision)
    y = g.empty(p["m"], precision=precision)

    def call() -> Any:
        return torch.mv(a, x, out=y)

    return Case(call, lambda: g.error(call(), a.double() @ x.double()), TOLERANCE[precision])


def gemv_warp(g: Gpu, p: Params, precision: str) -> Case:
    m, n = p["m"], p["n"]
    a, x, y = g.randn(m, n, precision=precision), g.randn(n, precision=precision), g.empty(m, precision=precision)
    call = g.kernel("vector", "gemv_warp", precision)(blocks(m * g.warp), 256, np.int32(m), np.int32(n), a, x, y)

    def check() -> float:
        call()
        return g.error(y, a.double() @ x.double())

    return Case(call, check, TOLERANCE[precision])


def bicg(g: Gpu, p: Params, precision: str) -> Case:
    m, n = p["m"], p["n"]
    a, x, r = g.randn(m, n, precision=precision), g.randn(n, precision=precision), g.randn(m, precision=precision)
    q, s = g.empty(m, precision=precision), g.empty(n, precision=precision)
    first = g.kernel("dense", "bicg_q", precision)(blocks(m), 256, np.int32(m), np.int32(n), a, x, q)
    second = g.kernel("dense", "bicg_s", precision)(blocks(n), 256, np.int32(m), np.int32(n), a, r, s)

    def call() -> None:
        first()
        second()

    def check() -> float:
        call()
        return max(g.error(q, a.double() @ x.double()), g.error(s, a.double().t() @ r.double()))

    return Case(call, check, TOLERANCE[precision])


def conv2d_cudnn(g: Gpu, p: Params, precision: str) -> Case:
    """Stride 1, same padding; channels last for the 16-bit types, as networks run them."""
    torch, size, k = g.torch, p["hw"], p["ksize"]
    x = g.randn(p["batch"], p["cin"], size, size, precision=precision)
    w = g.randn(p["cout"], p["cin"], k, k, precision=precision)
    if precision in ("fp16", "bf16"):
        x, w = x.to(memory_format=torch.channels_last), w.to(memory_format=torch.channels_last)

    def call() -> Any:
        _tf32(g, precision)
        return torch.nn.functional.conv2d(x, w, padding=k // 2)

    def check() -> float:
        columns = torch.nn.functional.unfold(x.double(), k, padding=k // 2)
        want = (w.double().reshape(p["cout"], -1) @ columns).reshape(p["batch"], p["cout"], size, size)
        return g.error(call(), want)

    return Case(call, check, TOLERANCE[precision])


def _attention(backend: str) -> Builder:
    def build(g: Gpu, p: Params, precision: str) -> Case:
        torch, batch, heads, dim = g.torch, p["batch"], p["heads"], p["head_dim"]
        kv_heads = p.get("kv_heads", heads)
        q_len, kv_len = p.get("seq", p.get("q_len")), p.get("seq", p.get("kv_len"))
        q = g.randn(batch, heads, q_len, dim, precision=precision)
        k, v = (g.randn(batch, kv_heads, kv_len, dim, precision=precision) for _ in range(2))
        causal, grouped = bool(p["causal"]), kv_heads != heads
        chosen = getattr(torch.nn.attention.SDPBackend, backend)

        def call() -> Any:
            with torch.nn.attention.sdpa_kernel(chosen):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)

        def check() -> float:
            kk, vv = (t.double().repeat_interleave(heads // kv_heads, 1) for t in (k, v))
            score = q.double() @ kk.transpose(-1, -2) / dim**0.5
            if causal:
                score = score.masked_fill(torch.ones_like(score, dtype=torch.bool).triu(1), float("-inf"))
            return g.error(call(), score.softmax(-1) @ vv)

        return Case(call, check, TOLERANCE[precision])

    return build


def fft_cufft(g: Gpu, p: Params, precision: str) -> Case:
    torch = g.torch
    x = torch.view_as_complex(g.randn(p["batch"], p["n"], 2, precision=precision))

    def check() -> float:
        got, want = torch.fft.fft(x), torch.fft.fft(x.cpu().to(torch.complex128)).cuda()
        return g.error(torch.view_as_real(got), torch.view_as_real(want))

    return Case(lambda: torch.fft.fft(x), check, TOLERANCE[precision])


def fft_stockham(g: Gpu, p: Params, precision: str) -> Case:
    torch, n = g.torch, p["n"]
    shared = 4 * n * (8 if precision == "fp64" else 4)
    if n & (n - 1) or shared > 48 * 1024:
        raise Skip("the shared-memory FFT takes powers of two that fit in 48 KiB")
    x, y = g.randn(p["batch"], n, 2, precision=precision), g.empty(p["batch"], n, 2, precision=precision)
    call = g.kernel("dense", "fft_stockham", precision, shared)(
        p["batch"], min(256, max(32, n // 2)), np.int32(n), x, y
    )

    def check() -> float:
        call()
        want = torch.fft.fft(torch.view_as_complex(x).cpu().to(torch.complex128)).cuda()
        return g.error(y, torch.view_as_real(want))

    return Case(call, check, TOLERANCE[precision])


def im2col(g: Gpu, p: Params, precision: str) -> Case:
    torch, height, width, kh, kw = g.torch, p["height"], p["width"], p["kernel_h"], p["kernel_w"]
    positions = (height - kh + 1) * (width - kw + 1)
    a, out = g.randn(height, width, precision=precision), g.empty(kh * kw, positions, precision=precision)
    call = g.kernel("stencil", "im2col_unroll", precision)(
        blocks(positions), 256, I32(height), I32(width), I32(kh), I32(kw), a, out
    )

    def check() -> float:
        call()
        return g.equal(out, torch.nn.functional.unfold(a[None, None], (kh, kw))[0])

    extra = {"batch": 1, "in_channels": 1, "stride": 1, "pad": 0, "dilation": 1}
    return Case(call, check, 0.0, params={**extra, **p})


def nbody(g: Gpu, p: Params, precision: str) -> Case:
    torch, bodies = g.torch, p["bodies"]
    pos, vel = g.randn(bodies, 4), g.randn(bodies, 4)
    pos[:, 3] = g.rand(bodies)
    pos2, vel2 = torch.empty_like(pos), torch.empty_like(vel)
    call = g.kernel("bench", "nbody_step")(blocks(bodies), 256, I32(bodies), pos, vel, pos2, vel2)

    def check() -> float:
        call()
        some = slice(0, min(bodies, 512))
        d = pos.double()[None, :, :3] - pos.double()[some, None, :3]
        r = ((d**2).sum(-1) + 1e-3).rsqrt()
        pull = (pos.double()[None, :, 3] * r**3)[..., None] * d
        return g.error(vel2[some, :3], vel.double()[some, :3] + 0.01 * pull.sum(1))

    return Case(call, check, 1e-4)


def kmeans(g: Gpu, p: Params, precision: str) -> Case:
    torch, points, features, clusters = g.torch, p["points"], p["features"], p["clusters"]
    x, centre = g.rand(features, points, precision=precision), g.rand(clusters, features, precision=precision)
    label = torch.empty(points, dtype=torch.int32, device="cuda")
    call = g.kernel("bench", "kmeans_assign", precision)(
        blocks(points), 256, I32(points), I32(features), I32(clusters), x, centre, label
    )

    def check() -> float:
        call()
        d = torch.stack([((x.double() - c[:, None]) ** 2).sum(0) for c in centre.double()])
        chosen = d.gather(0, label.long()[None])[0]
        return float(((chosen - d.amin(0)) / d.amin(0).clamp_min(1e-9)).max())  # a tie may fall either way

    return Case(call, check, 1e-4)


def lud(g: Gpu, p: Params, precision: str) -> Case:
    torch, n, edge = g.torch, p["n"], 16
    start = g.rand(n, n, precision=precision) / n + torch.eye(n, dtype=g.dtype[precision], device="cuda")
    a, steps = start.clone(), []
    for at in range(0, n, edge):
        left = (n - at) // edge - 1
        steps.append(g.kernel("bench", "lud_diagonal", precision)(1, edge, I32(n), I32(at), a))
        if left:
            steps.append(g.kernel("bench", "lud_perimeter", precision)((left, 2), edge, I32(n), I32(at), a))
            steps.append(g.kernel("bench", "lud_internal", precision)((left, left), (edge, edge), I32(n), I32(at), a))
    call = in_turn(steps)

    def check() -> float:
        a.copy_(start)
        call()
        d = a.double()
        unit = torch.eye(n, dtype=torch.float64, device="cuda")
        return g.error((d.tril(-1) + unit) @ d.triu(), start)

    return Case(call, check, TOLERANCE[precision] * 5, reset=lambda: a.copy_(start))


FAMILIES: tuple[Measured, ...] = (
    Measured("gemm", {"cublas": gemm_cublas, "tile16": gemm_tile16}, group=weights, tensor=True),
    Measured("bmm", {"cublas": bmm_cublas}, group=weights, tensor=True),
    Measured("gemv", {"cublas": gemv_cublas, "row_warp": gemv_warp},
             lambda p: (2.0 * p["m"] * p["n"], 4.0 * p["m"] * p["n"]), tensor=True),
    Measured("bicg", {"row_thread": bicg}, lambda p: (4.0 * p["m"] * p["n"], 8.0 * p["m"] * p["n"] + 2e4 * p["m"])),
    Measured("conv2d", {"cudnn": conv2d_cudnn}, tensor=True),
    Measured("attention",
             {"flash": _attention("FLASH_ATTENTION"), "efficient": _attention("EFFICIENT_ATTENTION")}, tensor=True),
    Measured("fft", {"cufft": fft_cufft, "stockham_shared": fft_stockham},
             lambda p: (5.0 * p["n"] * p["batch"] * log2(p["n"]), 16.0 * p["n"] * p["batch"])),
    Measured("im2col", {"thread_position": im2col}, image),
    Measured("nbody", {"shared_tile": nbody}, lambda p: (20.0 * p["bodies"] ** 2, 64.0 * p["bodies"])),
    Measured("kmeans", {"thread_point": kmeans},
             lambda p: (3.0 * p["points"] * p["features"] * p["clusters"], 4.0 * p["points"] * (p["features"] + 1))),
    Measured("lud", {"blocked16": lud}, lambda p: launches(4.0 * p["n"] ** 2 / 3, 3.0 * p["n"] / 16)),
)
