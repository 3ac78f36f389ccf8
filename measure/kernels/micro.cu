// Microbenchmarks: an empty kernel, a pointer chase, chains of fused multiply-adds, streams, barriers, atomics, shared memory.

extern "C" __global__ void micro_empty(int) {}

// One thread follows `steps` links; every load waits for the one before.
extern "C" __global__ void micro_chase(int steps, const int* next, int* out) {
    int at = 0;
    for (int i = 0; i < steps; ++i) at = next[at];
    out[0] = at;
}

// Eight independent chains a thread, unrolled far enough that the loop itself is a hundredth of the work.
#define CHAINS 8
#define UNROLL 16
#define FMA_LOOP(type, first, step)                                         \
    type a[CHAINS];                                                         \
    _Pragma("unroll") for (int j = 0; j < CHAINS; ++j) a[j] = first;        \
    for (int i = 0; i < steps; ++i)                                         \
        _Pragma("unroll") for (int u = 0; u < UNROLL; ++u)                  \
            _Pragma("unroll") for (int j = 0; j < CHAINS; ++j) step;

extern "C" __global__ void micro_fma(int steps, real seed, real* out) {
    FMA_LOOP(real, seed + j + threadIdx.x, a[j] = a[j] * seed + (real)0.5)
    real sum = 0;
    for (int j = 0; j < CHAINS; ++j) sum += a[j];
    if (sum == (real)-1) out[global_id()] = sum;
}

extern "C" __global__ void micro_imad(int steps, int seed, int* out) {
    FMA_LOOP(int, seed + j + (int)threadIdx.x, a[j] = a[j] * seed + j)
    int sum = 0;
    for (int j = 0; j < CHAINS; ++j) sum += a[j];
    if (sum == -1) out[global_id()] = sum;
}

// Two halves at a time, as the vector units take them.
#if defined(__HIP__)
typedef _Float16 half2_bits __attribute__((ext_vector_type(2)));
#define HALF2_FMA(a, b) a = a * b + b
#define HALF2_ONE(t) half2_bits{(_Float16)(0.5f + t), (_Float16)0.25f}
#define HALF2_ODD(a) ((float)a[0] == 12345.0f)
#else
typedef unsigned half2_bits;
#define HALF2_FMA(a, b) asm("fma.rn.f16x2 %0, %0, %1, %1;" : "+r"(a) : "r"(b))
#define HALF2_ONE(t) (0x38003400u + (unsigned)(t))
#define HALF2_ODD(a) ((a) == 12345u)
#endif

extern "C" __global__ void micro_half2(int steps, int seed, int* out) {
    half2_bits b = HALF2_ONE(seed);
    FMA_LOOP(half2_bits, HALF2_ONE(j + (int)threadIdx.x), HALF2_FMA(a[j], b))
    for (int j = 0; j < CHAINS; ++j)
        if (HALF2_ODD(a[j])) out[global_id()] = j;
}

#if defined(__HIP__)
typedef int int4_bits __attribute__((ext_vector_type(4)));
__device__ __forceinline__ int4 load_past_l1(const int4* p) {
    int4_bits v = __builtin_nontemporal_load((const int4_bits*)p);
    return make_int4(v[0], v[1], v[2], v[3]);
}
#else
__device__ __forceinline__ int4 load_past_l1(const int4* p) { return __ldcg(p); }
#endif

// Block b reads piece b modulo `pieces` of the buffer past the first-level cache. Blocks start in order, so the buffer
// is walked round and round and a piece comes back only after all the others: the reuse distance is the buffer.
extern "C" __global__ void micro_read(int pieces, int per_thread, const int4* in, int* out) {
    const int4* p = in + (i64)(blockIdx.x % pieces) * blockDim.x * per_thread + threadIdx.x;
    int sum = 0;
#pragma unroll 8
    for (int i = 0; i < per_thread; ++i) {
        int4 v = load_past_l1(p + (i64)i * blockDim.x);
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 12345) out[threadIdx.x % 4] = sum;
}

// Streams over n int4 with as many blocks as are given: how many does the memory need?
#define STRIDE_LOOP _Pragma("unroll 4") for (i64 i = global_id(); i < n; i += (i64)gridDim.x * blockDim.x)

extern "C" __global__ void micro_stream_read(i64 n, const int4* in, int4* out) {
    int sum = 0;
    STRIDE_LOOP {
        int4 v = load_past_l1(in + i);
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (sum == 12345) out[0].x = sum;
}

extern "C" __global__ void micro_stream_write(i64 n, const int4* in, int4* out) {
    int4 v = in[threadIdx.x];
    STRIDE_LOOP { out[i] = v; }
}

extern "C" __global__ void micro_stream_copy(i64 n, const int4* in, int4* out) {
    STRIDE_LOOP { out[i] = in[i]; }
}

// A barrier over the whole grid, `rounds` times; one block a multiprocessor, so all are resident. `count` starts at 0.
extern "C" __global__ void micro_grid_barrier(int rounds, unsigned* count) {
    for (int r = 1; r <= rounds; ++r) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(count, 1u);
            volatile unsigned* seen = count;
            while (*seen < r * gridDim.x) {
            }
            __threadfence();
        }
        __syncthreads();
    }
}

extern "C" __global__ void micro_block_barrier(int rounds, int* out) {
    int sum = threadIdx.x;
    for (int r = 0; r < rounds; ++r) {
        __syncthreads();
        sum ^= r;
    }
    if (sum == -1) out[0] = sum;
}

// Every thread adds to slot (its id * stride) of `slots`, a power of two: 1 slot, all collide; many, few do.
extern "C" __global__ void micro_atomic(int rounds, int slots, int stride, int* table) {
    unsigned at = (unsigned)global_id() * (unsigned)stride;
    for (int r = 0; r < rounds; ++r) {
        atomicAdd(&table[at & (unsigned)(slots - 1)], 1);
        at += gridDim.x * blockDim.x * (unsigned)stride;
    }
}

// Reads of shared memory, `stride` words from lane to lane: stride 1 has no bank conflict, 32 has all lanes on one bank.
#define SHARED_WORDS 8192
extern "C" __global__ void micro_shared(int rounds, int stride, float* out) {
    __shared__ float words[SHARED_WORDS + 512];
    for (int i = threadIdx.x; i < SHARED_WORDS + 512; i += blockDim.x) words[i] = i;
    __syncthreads();
    float sum[4] = {0, 0, 0, 0};
    unsigned at = threadIdx.x * stride;
    for (int r = 0; r < rounds; ++r) {
        const float* row = words + (at & (SHARED_WORDS - 1));
#pragma unroll
        for (int j = 0; j < 16; ++j) sum[j % 4] += row[j * 32];
        at += 512;
    }
    float all = sum[0] + sum[1] + sum[2] + sum[3];
    if (all == -1.0f) out[0] = all;
}

extern "C" __global__ void micro_shared_chase(int steps, int seed, int* out) {
    __shared__ int next[1024];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) next[i] = (i * 17 + seed) & 1023;
    __syncthreads();
    int at = 0;
    for (int i = 0; i < steps; ++i) at = next[at];
    out[0] = at;
}

// Spins for so many clock ticks: work whose length does not depend on what else runs.
extern "C" __global__ void micro_spin(i64 ticks) {
    i64 begun = clock64();
    while (clock64() - begun < ticks) {
    }
}
