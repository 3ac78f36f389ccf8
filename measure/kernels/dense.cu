// Dense kernels without matrix units: transpose, tiled product, FFT in shared memory, the two products of BiCG,
// butterflies, bitonic sort, all-pairs paths.

#define TILE 32
extern "C" __global__ void transpose_tile(int m, int n, const real* in, real* out) {  // block (32, 8), out is n x m
    __shared__ real tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += blockDim.y)
        if (x < n && y + j < m) tile[threadIdx.y + j][threadIdx.x] = in[(i64)(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += blockDim.y)
        if (x < m && y + j < n) out[(i64)(y + j) * m + x] = tile[threadIdx.x][threadIdx.y + j];
}

#define EDGE 16
extern "C" __global__ void gemm_tile16(int m, int n, int k, const real* a, const real* b, real* c) {  // block (16, 16)
    __shared__ real ta[EDGE][EDGE], tb[EDGE][EDGE];
    int row = blockIdx.y * EDGE + threadIdx.y, col = blockIdx.x * EDGE + threadIdx.x;
    real sum = 0;
    for (int k0 = 0; k0 < k; k0 += EDGE) {
        ta[threadIdx.y][threadIdx.x] = row < m && k0 + threadIdx.x < k ? a[(i64)row * k + k0 + threadIdx.x] : (real)0;
        tb[threadIdx.y][threadIdx.x] = col < n && k0 + threadIdx.y < k ? b[(i64)(k0 + threadIdx.y) * n + col] : (real)0;
        __syncthreads();
#pragma unroll
        for (int j = 0; j < EDGE; ++j) sum += ta[threadIdx.y][j] * tb[j][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n) c[(i64)row * n + col] = sum;
}

// Complex Stockham FFT of n points (a power of two up to 4096), one block a transform, ping-pong in shared memory.
extern "C" __global__ void fft_stockham(int n, const real* in, real* out) {
    extern __shared__ real scratch[];
    real *re = scratch, *im = scratch + n, *re2 = scratch + 2 * n, *im2 = scratch + 3 * n;
    const real* src = in + (i64)blockIdx.x * 2 * n;
    real* dst = out + (i64)blockIdx.x * 2 * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) { re[i] = src[2 * i]; im[i] = src[2 * i + 1]; }
    __syncthreads();
    for (int half = n / 2, stride = 1; half >= 1; half /= 2, stride *= 2) {
        for (int t = threadIdx.x; t < n / 2; t += blockDim.x) {
            int p = t / stride, q = t % stride;
            real s, c;
            sincospi((real)-1 * p / half, &s, &c);
            int i = q + stride * p, j = i + stride * half;
            real dr = re[i] - re[j], di = im[i] - im[j];
            int o = q + stride * 2 * p;
            re2[o] = re[i] + re[j];
            im2[o] = im[i] + im[j];
            re2[o + stride] = dr * c - di * s;
            im2[o + stride] = dr * s + di * c;
        }
        __syncthreads();
        real* swap = re; re = re2; re2 = swap;
        swap = im; im = im2; im2 = swap;
    }
    for (int i = threadIdx.x; i < n; i += blockDim.x) { dst[2 * i] = re[i]; dst[2 * i + 1] = im[i]; }
}

extern "C" __global__ void bicg_q(int m, int n, const real* a, const real* p, real* q) {  // one thread a row
    i64 row = global_id();
    if (row >= m) return;
    real sum = 0;
    for (int j = 0; j < n; ++j) sum += a[row * n + j] * p[j];
    q[row] = sum;
}

extern "C" __global__ void bicg_s(int m, int n, const real* a, const real* r, real* s) {  // one thread a column
    i64 col = global_id();
    if (col >= n) return;
    real sum = 0;
    for (int i = 0; i < m; ++i) sum += a[(i64)i * n + col] * r[i];
    s[col] = sum;
}

extern "C" __global__ void walsh_step(i64 n, i64 step, real* x) {  // one butterfly a thread
    i64 t = global_id();
    if (t >= n / 2) return;
    i64 i = (t / step) * 2 * step + t % step, j = i + step;
    real a = x[i], b = x[j];
    x[i] = a + b;
    x[j] = a - b;
}

extern "C" __global__ void bitonic_step(i64 n, i64 run, i64 gap, unsigned* x) {  // one compare-exchange a thread
    i64 t = global_id();
    if (t >= n / 2) return;
    i64 i = (t / gap) * 2 * gap + t % gap, j = i + gap;
    bool up = (i & run) == 0;
    unsigned a = x[i], b = x[j];
    if ((a > b) == up) { x[i] = b; x[j] = a; }
}

extern "C" __global__ void floyd_step(int n, int k, unsigned* dist, unsigned* via) {  // block (8, 8)
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || col >= n) return;
    unsigned direct = dist[(i64)row * n + col], through = dist[(i64)row * n + k] + dist[(i64)k * n + col];
    if (through < direct) {
        dist[(i64)row * n + col] = through;
        via[(i64)row * n + col] = k;
    }
}
