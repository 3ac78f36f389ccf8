"""Dense linear algebra and networks: matrix products, convolution, attention, normalisation, FFT, transpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import TOLERANCE, Builder, Case, Params, blocks
from .gpu import Gpu, Skip


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


def softmax_torch(g: Gpu, p: Params, precision: str) -> Case:
    torch = g.torch
    x = g.randn(p["rows"], p["cols"], precision=precision)
    return Case(
        lambda: torch.softmax(x, -1),
        lambda: g.error(torch.softmax(x, -1), torch.softmax(x.double(), -1)),
        TOLERANCE[precision],
    )


def layernorm_torch(g: Gpu, p: Params, precision: str) -> Case:
    torch, cols = g.torch, p["cols"]
    x, w, b = (
        g.randn(p["rows"], cols, precision=precision),
        g.randn(cols, precision=precision),
        g.randn(cols, precision=precision),
    )
    norm = torch.nn.functional.layer_norm

    def check() -> float:
        return g.error(norm(x, (cols,), w, b), norm(x.double(), (cols,), w.double(), b.double()))

    return Case(lambda: norm(x, (cols,), w, b), check, TOLERANCE[precision] * 5)


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


def transpose_torch(g: Gpu, p: Params, precision: str) -> Case:
    a = g.randn(p["m"], p["n"], precision=precision)
    out = a.new_empty((p["n"], p["m"]))

    def check() -> float:
        out.fill_(float("nan"))
        out.copy_(a.t())
        return g.equal(out[: p["n"] // 2 + 1].cpu(), a.cpu().t()[: p["n"] // 2 + 1])

    return Case(lambda: out.copy_(a.t()), check, 0.0)


def transpose_tile32(g: Gpu, p: Params, precision: str) -> Case:
    m, n = p["m"], p["n"]
    a, out = g.randn(m, n, precision=precision), g.empty(n, m, precision=precision)
    grid = (blocks(n, 32), blocks(m, 32))
    call = g.kernel("dense", "transpose_tile", precision)(grid, (32, 8), np.int32(m), np.int32(n), a, out)

    def check() -> float:
        out.fill_(float("nan"))
        call()
        return g.equal(out, a.t())

    return Case(call, check, 0.0)


BUILDERS: dict[tuple[str, str], Builder] = {
    ("gemm", "cublas"): gemm_cublas,
    ("gemm", "tile16"): gemm_tile16,
    ("bmm", "cublas"): bmm_cublas,
    ("gemv", "cublas"): gemv_cublas,
    ("gemv", "row_warp"): gemv_warp,
    ("bicg", "row_thread"): bicg,
    ("conv2d", "cudnn"): conv2d_cudnn,
    ("attention", "flash"): _attention("FLASH_ATTENTION"),
    ("attention", "efficient"): _attention("EFFICIENT_ATTENTION"),
    ("softmax", "torch"): softmax_torch,
    ("layernorm", "torch"): layernorm_torch,
    ("fft", "cufft"): fft_cufft,
    ("fft", "stockham_shared"): fft_stockham,
    ("transpose", "torch"): transpose_torch,
    ("transpose", "tile32"): transpose_tile32,
}
