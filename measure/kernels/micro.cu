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

#if defined(__HIP__)
#define LOAD_PAST_L1(p) __builtin_nontemporal_load(p)
#else
#define LOAD_PAST_L1(p) __ldcg(p)
#endif

// Reads the buffer `rounds` times past the first-level cache; each round starts elsewhere, so blocks change places.
extern "C" __global__ void micro_read(i64 n, int rounds, const int4* in, int* out) {
    int sum = 0;
    for (int r = 0; r < rounds; ++r) {
        i64 shift = ((i64)r * 37 * blockDim.x) % n;  // a little: a large step would re-read what is still held
#pragma unroll 4
        for (i64 i = global_id(); i < n; i += (i64)gridDim.x * blockDim.x) {
            i64 at = i + shift;
            int4 v = LOAD_PAST_L1(&in[at < n ? at : at - n]);
            sum ^= v.x ^ v.y ^ v.z ^ v.w;
        }
    }
    if (sum == 12345) out[global_id() % 4] = sum;
}
