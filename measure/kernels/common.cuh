// Shared by every kernel file: the element type, the warp width and shuffles under CUDA and HIP alike.
#ifndef REAL
#define REAL float
#endif
#if defined(__HIP_DEVICE_COMPILE__) || defined(__HIP__)
#ifndef WARP
#define WARP 64
#endif
#define SHFL_DOWN(value, delta) __shfl_down(value, delta, WARP)
#define SHFL_UP(value, delta) __shfl_up(value, delta, WARP)
#define SHFL(value, lane) __shfl(value, lane, WARP)
#else
#ifndef WARP
#define WARP 32
#endif
#define SHFL_DOWN(value, delta) __shfl_down_sync(0xffffffffu, value, delta)
#define SHFL_UP(value, delta) __shfl_up_sync(0xffffffffu, value, delta)
#define SHFL(value, lane) __shfl_sync(0xffffffffu, value, lane)
#endif

typedef REAL real;
typedef long long i64;

#if defined(__HIP__)
__device__ __forceinline__ void sincospi(float x, float* sine, float* cosine) { sincospif(x, sine, cosine); }
#endif

__device__ __forceinline__ i64 global_id() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }

template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
    for (int delta = WARP / 2; delta > 0; delta /= 2) value += SHFL_DOWN(value, delta);
    return value;
}
