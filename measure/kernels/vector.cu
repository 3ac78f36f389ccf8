// Streaming kernels, one element a thread; markers and the cache flush of the harness.

extern "C" __global__ void kc_marker(int) {}

extern "C" __global__ void kc_flush(float4* buffer, i64 n, float value) {
    for (i64 i = global_id(); i < n; i += (i64)gridDim.x * blockDim.x) buffer[i] = make_float4(value, value, value, value);
}

extern "C" __global__ void vec_copy(i64 n, const real* a, real* out) {
    i64 i = global_id();
    if (i < n) out[i] = a[i];
}

extern "C" __global__ void vec_scale(i64 n, const real* a, real* out) {
    i64 i = global_id();
    if (i < n) out[i] = (real)1.25 * a[i];
}

extern "C" __global__ void vec_add(i64 n, const real* a, const real* b, real* out) {
    i64 i = global_id();
    if (i < n) out[i] = a[i] + b[i];
}

extern "C" __global__ void vec_triad(i64 n, const real* a, const real* b, real* out) {
    i64 i = global_id();
    if (i < n) out[i] = a[i] + (real)1.25 * b[i];
}

extern "C" __global__ void vec_relu(i64 n, const real* a, real* out) {
    i64 i = global_id();
    if (i < n) out[i] = a[i] > (real)0 ? a[i] : (real)0;
}

// Sum of n values: one partial sum a block; launched twice, the second time with one block over the partial sums.
extern "C" __global__ void reduce_sum(i64 n, const real* a, real* out) {
    __shared__ real part[WARP];
    real sum = 0;
    for (i64 i = global_id(); i < n; i += (i64)gridDim.x * blockDim.x) sum += a[i];
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = sum;
    __syncthreads();
    if (threadIdx.x < WARP) {
        sum = threadIdx.x < blockDim.x / WARP ? part[threadIdx.x] : (real)0;
        sum = warp_sum(sum);
        if (threadIdx.x == 0) out[blockIdx.x] = sum;
    }
}

// y = A x, row-major A, one warp a row.
extern "C" __global__ void gemv_warp(int m, int n, const real* a, const real* x, real* y) {
    i64 row = global_id() / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= m) return;
    real sum = 0;
    for (int j = lane; j < n; j += WARP) sum += a[row * n + j] * x[j];
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}

extern "C" __global__ void vec_copy_wide(i64 n, const float4* a, float4* out) {  // n vectors of 16 bytes
    i64 i = global_id();
    if (i < n) out[i] = a[i];
}
