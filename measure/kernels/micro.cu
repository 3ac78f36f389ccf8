// Microbenchmarks: an empty kernel, a pointer chase, chains of fused multiply-adds, plain reads.

extern "C" __global__ void micro_empty(int) {}

// One thread follows `steps` links; every load waits for the one before.
extern "C" __global__ void micro_chase(int steps, const int* next, int* out) {
    int at = 0;
    for (int i = 0; i < steps; ++i) at = next[at];
    out[0] = at;
}

extern "C" __global__ void micro_fma(int steps, real seed, real* out) {
    real a[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) a[j] = seed + j + threadIdx.x;
    for (int i = 0; i < steps; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) a[j] = a[j] * seed + (real)0.5;
    real sum = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += a[j];
    if (sum == (real)-1) out[global_id()] = sum;
}

// Reads the buffer `rounds` times with 16-byte loads; all blocks walk over all of it.
extern "C" __global__ void micro_read(i64 n, int rounds, const float4* in, float* out) {
    float sum = 0;
    for (int r = 0; r < rounds; ++r)
        for (i64 i = global_id(); i < n; i += (i64)gridDim.x * blockDim.x) {
            float4 v = in[i];
            sum += v.x + v.y + v.z + v.w;
        }
    if (sum == -1.0f) out[0] = sum;
}
