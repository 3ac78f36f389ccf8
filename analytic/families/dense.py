"""Dense linear algebra, convolution, attention and transforms. Matrix products count 2·m·n·k FLOP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..factors import largest_prime, next_power_of_two
from ..work import PRECISION_BYTE, Arguments, Contradiction, Family, FloatArray, Param, Work, make_work

ONE = 1.0


def _output_byte(byte: float) -> float:
    """Products of 8-bit and narrower operands leave the kernel as 16-bit values; wider ones keep their width."""
    return max(byte, 2.0)


# Weight-only quantisation keeps the activations' precision and stores the weights narrower.
WEIGHT_BYTE = {"int8_wo": 1.0, "int4_wo": 0.5}


def stored_byte(label: NDArray[Any], byte: float, table: Mapping[str, float] = PRECISION_BYTE) -> FloatArray:
    """Bytes an element of each row's `label` takes; `byte` where the label is absent or not in the table."""
    names, codes = np.unique(np.asarray(label).astype(str), return_inverse=True)
    return np.array([table.get(str(name), byte) for name in names], dtype=np.float64)[codes]


def _gemm(a: Arguments, byte: float) -> Work:
    m, n, k, batch = a["m"], a["n"], a["k"], a["batch"]
    weight = stored_byte(a["scheme"], byte, WEIGHT_BYTE) if "scheme" in a else byte
    return make_work(
        2.0 * batch * m * n * k, batch * (m * k * byte + k * n * weight), batch * m * n * _output_byte(byte),
        threads=batch * m * n, unit="matrix", gemm=(m, n, k, batch),
    )


def _gemv(a: Arguments, byte: float) -> Work:
    m, n = a["m"], a["n"]
    return make_work(2.0 * m * n, (m * n + n) * byte, m * byte, threads=m * np.minimum(n, 64.0), chain=2.0)


def _bicg(a: Arguments, byte: float) -> Work:
    m, n = a["m"], a["n"]
    # q = A·p with a thread a row, s = Aᵀ·r with a thread a column: A is read in each launch
    return make_work(
        4.0 * m * n, (2.0 * m * n + m + n) * byte, (m + n) * byte, threads=np.minimum(m, n),
        working_set_byte=m * n * byte, launches=2.0, chain=m + n,
    )


LARGEST_RADIX = 127.0
ONE_BLOCK_BYTE = 32768.0


def _fft(a: Arguments, byte: float) -> Work:
    n, batch = a["n"], a["batch"]
    # complex points of two `byte`-wide values
    size = n * batch * 2.0 * byte
    prime = largest_prime(n)
    # a length with a large prime factor goes through Bluestein's algorithm: two transforms of a padded power of two and
    # two element-wise products, in one kernel where they fit in shared memory
    rough = prime > LARGEST_RADIX
    padded = np.where(rough, next_power_of_two(2.0 * n - 1.0), n)
    levels = np.log2(np.maximum(padded, 2.0))
    # a pass over memory covers up to 2^15 points of small primes, fewer of larger ones
    direct = np.maximum(1.0, np.ceil(levels / np.where(prime > 31.0, 9.0, 15.0)))
    around = np.where(2.0 * n * byte <= ONE_BLOCK_BYTE, 1.0, 2.0 * np.ceil(levels / 14.0) + 2.0)
    passes = np.where(rough, around, direct)
    moved = 2.0 * size * padded / n
    return make_work(
        5.0 * padded * levels * batch * np.where(rough, 2.0, 1.0), size, size, threads=n * batch / 4.0, launches=passes,
        reread_byte=np.where(passes > 1.0, moved * passes - 2.0 * size, 0.0), chain=2.0 * passes,
    )


def _attention_shape(a: dict[str, NDArray[Any]]) -> None:
    for name, source in (("q_len", "seq"), ("kv_len", "seq"), ("kv_heads", "heads")):
        hole = np.isnan(a[name])
        a[name][hole] = a[source][hole]
    hole = np.isnan(a["seq"])
    a["seq"][hole] = a["kv_len"][hole]


def _attention(a: Arguments, byte: float) -> Work:
    batch, heads, kv_heads, q, kv, dim = (a[p] for p in ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim"))
    window = np.where(a["window"] > 0, np.minimum(a["window"], kv), kv)
    # causal: query i of q sees the kv − q + i first keys; averaged, half of the square part falls away
    visible = np.where(a["causal"] > 0, np.maximum(window - 0.5 * np.minimum(q, window), 0.5 * window), window)
    flop = 4.0 * batch * heads * q * visible * dim
    q_byte = batch * heads * q * dim * max(byte, 2.0)
    cache_byte = stored_byte(a["kv_precision"], byte)
    kv_byte = 2.0 * batch * kv_heads * np.minimum(kv, window + q) * dim * cache_byte
    # the queries of a group read its keys once where each head has a single query, else every head reads for itself
    readers = np.where(q == 1.0, kv_heads * np.ceil(heads / kv_heads / 128.0), heads * np.ceil(q / 128.0))
    return make_work(
        flop, q_byte + kv_byte, q_byte, threads=batch * heads * q * dim, unit="matrix", chain=kv / 64.0,
        reread_byte=np.maximum(batch * readers * 2.0 * visible * dim * cache_byte - kv_byte, 0.0),
    )


def _conv_shape(a: dict[str, NDArray[Any]]) -> None:
    """Fill the general convolution from the square (hw, ksize) or the single-image (height, width, kernel_h) form."""
    for name, source in (("height", "hw"), ("width", "hw"), ("kernel_h", "ksize"), ("kernel_w", "ksize"),
                         ("cout", "out_channels")):
        hole = np.isnan(a[name])
        a[name][hole] = a[source][hole]
    # the square form is padded to keep its size, the single-image form is not (valid positions only)
    a["padded"][np.isnan(a["padded"])] = 0.0
    a["padded"][~np.isnan(a["hw"])] = 1.0


def _conv2d(a: Arguments, byte: float) -> Work:
    batch, cin, cout, height, width, kh, kw = (
        a[p] for p in ("batch", "cin", "cout", "height", "width", "kernel_h", "kernel_w")
    )
    out_h = np.where(a["padded"] > 0, height, np.maximum(height - kh + 1.0, 1.0))
    out_w = np.where(a["padded"] > 0, width, np.maximum(width - kw + 1.0, 1.0))
    positions = batch * out_h * out_w
    # implicit matrix product: positions × output channels over input channels × window
    return make_work(
        2.0 * positions * cout * cin * kh * kw, (batch * cin * height * width + cout * cin * kh * kw) * byte,
        positions * cout * byte, threads=positions * cout, unit="matrix",
        gemm=(positions, cout, cin * kh * kw, np.ones_like(positions)),
    )


def _im2col(a: Arguments, byte: float) -> Work:
    height, width, kh, kw = a["height"], a["width"], a["kernel_h"], a["kernel_w"]
    positions = np.maximum(height - kh + 1.0, 1.0) * np.maximum(width - kw + 1.0, 1.0)
    return make_work(
        0.0, height * width * byte, kh * kw * positions * byte, threads=positions, chain=kh * kw,
        reread_byte=kh * kw * positions * byte,
    )


def _nbody(a: Arguments, byte: float) -> Work:
    n = a["bodies"]
    return make_work(20.0 * n * n, 8.0 * n * byte, 8.0 * n * byte, threads=n, chain=n / 256.0)


def _kmeans(a: Arguments, byte: float) -> Work:
    points, features, clusters = a["points"], a["features"], a["clusters"]
    # features lie feature-major and are walked once a cluster
    return make_work(
        3.0 * points * features * clusters, (points + clusters) * features * byte, 4.0 * points, threads=points,
        reread_byte=points * features * (clusters - 1.0) * byte, chain=features * clusters,
    )


def _lud(a: Arguments, byte: float) -> Work:
    n = a["n"]
    block = 16.0
    steps = np.ceil(n / block)
    # right-looking blocked factorisation: diagonal, perimeter and internal kernel a step; the trailing part is re-read
    return make_work(
        2.0 / 3.0 * n**3, n * n * byte, n * n * byte, threads=n * n, working_set_byte=n * n * byte,
        launches=3.0 * steps - 2.0, reread_byte=2.0 * byte * n * n * (steps - 1.0) / 3.0, chain=steps * (2.0 * block),
    )


PRODUCT = (
    Param("m", meaning="rows of A and C", unit="rows"), Param("n", meaning="columns of B and C", unit="columns"),
    Param("k", meaning="columns of A, rows of B: the length of the sums", unit="elements"),
)
VECTOR = (Param("m", meaning="rows of A", unit="rows"), Param("n", meaning="columns of A", unit="columns"))
SCHEMES = (
    *WEIGHT_BYTE, "fp8", "fp8_block", "nvfp4", "smoothquant", "rowwise", "bf16", "bf16_batched", "a8w8_rowwise",
    "a8w8_blockscale", "a8w8_bpreshuffle", "a8w8_blockscale_bpreshuffle", "a8w8_batched", "a4w4_blockscale",
)
"""Ways of scaling narrow operands that public tables name."""
LIBRARY = {"nvidia": "cublas", "amd": "rocblas"}
PIXELS = "pixels"


def _batch(meaning: str, unit: str) -> Param:
    return Param("batch", required=False, default=ONE, meaning=meaning, unit=unit)


def _size(name: str, meaning: str, unit: str, **more: Any) -> Param:
    return Param(name, meaning=meaning, unit=unit, **more)


ATTENTION = (
    _size("batch", "sequences", "sequences"),
    _size("heads", "heads of the queries", "heads"),
    _size("kv_heads", "heads of keys and values, at most `heads`", "heads", required=False, follows="heads"),
    _size("seq", "tokens of each sequence where q_len and kv_len are the same", "tokens", required=False),
    _size("q_len", "tokens that ask", "tokens", follows="seq"),
    _size("kv_len", "tokens asked of, those in the cache included", "tokens", follows="seq"),
    _size("head_dim", "length of one head's vectors", "elements"),
    Param("causal", "flag", required=False, default=0.0, meaning="whether a token sees only itself and those before"),
    Param("window", "real", required=False, default=0.0, meaning="last tokens that are seen; 0: all", unit="tokens"),
    Param("kv_precision", "text", required=False, meaning="precision of the stored keys and values",
          words=tuple(PRECISION_BYTE), follows="the precision"),
)
CONVOLUTION = (
    _batch("images", "images"),
    _size("cin", "channels of the image", "channels", required=False, default=ONE),
    _size("cout", "channels of the result", "channels", follows="out_channels"),
    _size("hw", "edge of a square image, padded so that the result is as large", PIXELS, required=False),
    _size("ksize", "edge of a square window", PIXELS, required=False),
    _size("height", "height of the image", PIXELS, follows="hw"),
    _size("width", "width of the image", PIXELS, follows="hw"),
    _size("kernel_h", "height of the window", PIXELS, follows="ksize"),
    _size("kernel_w", "width of the window", PIXELS, follows="ksize"),
    _size("out_channels", "another name for `cout`", "channels", required=False),
    Param("padded", "flag", required=False, meaning="whether the result is as large as the image",
          follows="yes with hw, else no"),
)

FAMILIES: tuple[Family, ...] = (
    Family("gemm", (*PRODUCT, _batch("products of the same size", "products"),
                    Param("scheme", "text", required=False, meaning="how narrow operands are scaled; int8_wo and "
                          "int4_wo store the weights narrower than the precision", words=SCHEMES)),
           _gemm, "compute", "matrix", "C[m,n] = A[m,k]·B[k,n]", "bf16", reference=LIBRARY, keeps_rounds=True,
           example={"m": 4096, "n": 4096, "k": 4096}),
    Family("bmm", (_size("batch", "products of the same size", "products"), *PRODUCT), _gemm, "compute", "matrix",
           "batch independent matrix products", "bf16", reference=LIBRARY, keeps_rounds=True,
           example={"batch": 64, "m": 512, "n": 512, "k": 128}),
    Family("gemv", VECTOR, _gemv, "memory", meaning="y[m] = A[m,n]·x[n]", precision="fp32", reference=LIBRARY,
           example={"m": 8192, "n": 8192}),
    Family("bicg", VECTOR, _bicg, "memory", meaning="q = A·p and s = Aᵀ·r", example={"m": 4096, "n": 4096}),
    Family("fft", (_size("n", "points of one transform", "points"), _batch("transforms", "transforms")), _fft,
           "balanced", meaning="batch complex transforms of n points", reference={"nvidia": "cufft", "amd": "rocfft"},
           example={"n": 4096, "batch": 1024}),
    Family("attention", ATTENTION, _attention, "compute", meaning="softmax(Q·Kᵀ)·V; give seq, or q_len and kv_len",
           precision="bf16", derive=_attention_shape, reference={"nvidia": "flash", "amd": "flash"},
           contradictions=(Contradiction("'kv_heads' is more than heads", lambda c: c["kv_heads"] > c["heads"]),),
           example={"batch": 4, "heads": 32, "kv_heads": 8, "seq": 2048, "head_dim": 128, "causal": True}),
    Family("conv2d", CONVOLUTION, _conv2d, "compute", "matrix",
           "2-D convolution; give hw and ksize, or height, width, kernel_h, kernel_w", "bf16", derive=_conv_shape,
           reference={"nvidia": "cudnn", "amd": "miopen"},
           example={"batch": 32, "cin": 128, "cout": 128, "hw": 28, "ksize": 3}),
    Family("im2col", (_size("height", "height of the image", PIXELS), _size("width", "width of the image", PIXELS),
                      _size("kernel_h", "height of the window", PIXELS),
                      _size("kernel_w", "width of the window", PIXELS)), _im2col, "memory",
           meaning="image windows unrolled into columns",
           example={"height": 1024, "width": 1024, "kernel_h": 3, "kernel_w": 3}),
    Family("nbody", (_size("bodies", "bodies, each pulled by every other", "bodies"),), _nbody, "compute",
           meaning="all-pairs gravity, one step", example={"bodies": 32_768}),
    Family("kmeans", (_size("points", "points", "points"), _size("features", "coordinates of a point", "elements"),
                      _size("clusters", "cluster centres", "centres", required=False, default=5.0)), _kmeans,
           "balanced", meaning="nearest of the cluster centres for each point",
           example={"points": 500_000, "features": 34, "clusters": 5}),
    Family("lud", (_size("n", "rows and columns of the matrix", "rows"),), _lud, "compute",
           meaning="blocked LU factorisation without pivoting", example={"n": 2048}),
)
