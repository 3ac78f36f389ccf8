// Indexed access: gather, scatter, histogram, hash probing, merging, segments, a staggered mesh, a radix pass.

extern "C" __global__ void gather_1d(i64 n, const int* index, const real* table, real* out) {
    i64 i = global_id();
    if (i < n) out[i] = table[index[i]];
}

extern "C" __global__ void scatter_add_1d(i64 n, const int* index, const real* value, real* table) {
    i64 i = global_id();
    if (i < n) atomicAdd(&table[index[i]], value[i]);
}

extern "C" __global__ void hist_global(i64 n, const int* key, unsigned* count) {
    i64 i = global_id();
    if (i < n) atomicAdd(&count[key[i]], 1u);
}

extern "C" __global__ void fill_u32(i64 n, unsigned value, unsigned* out) {
    i64 i = global_id();
    if (i < n) out[i] = value;
}


extern "C" __global__ void hist_shared(i64 n, int bins, const int* key, unsigned* count) {
    extern __shared__ unsigned local[];
    for (int b = threadIdx.x; b < bins; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (i64 i = global_id(); i < n; i += (i64)gridDim.x * blockDim.x) atomicAdd(&local[key[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < bins; b += blockDim.x)
        if (local[b]) atomicAdd(&count[b], local[b]);
}

__device__ __forceinline__ unsigned hash32(unsigned x) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

// Open addressing, linear probing, a power-of-two table; 0 marks an empty slot, keys start at 1.
extern "C" __global__ void hash_insert(i64 n, unsigned mask, const unsigned* key, unsigned* slot_key, unsigned* slot_value) {
    i64 i = global_id();
    if (i >= n) return;
    unsigned mine = key[i], slot = hash32(mine) & mask;
    while (true) {
        unsigned seen = atomicCAS(&slot_key[slot], 0u, mine);
        if (seen == 0u || seen == mine) { slot_value[slot] = mine * 3u; return; }
        slot = (slot + 1) & mask;
    }
}

extern "C" __global__ void hash_probe(i64 n, unsigned mask, const unsigned* query, const unsigned* slot_key,
                                      const unsigned* slot_value, unsigned* out) {
    i64 i = global_id();
    if (i >= n) return;
    unsigned wanted = query[i], slot = hash32(wanted) & mask, found = 0;
    while (true) {
        unsigned seen = slot_key[slot];
        if (seen == wanted) { found = slot_value[slot]; break; }
        if (seen == 0u) break;
        slot = (slot + 1) & mask;
    }
    out[i] = found;
}

// Merge path: every thread finds its diagonal by bisection and merges `span` outputs.
extern "C" __global__ void merge_path(i64 m, i64 n, int span, const real* a, const real* b, real* out) {
    i64 begin = global_id() * span;
    if (begin >= m + n) return;
    i64 low = begin > n ? begin - n : 0, high = begin < m ? begin : m;
    while (low < high) {
        i64 mid = (low + high) / 2;
        if (a[mid] <= b[begin - 1 - mid]) low = mid + 1; else high = mid;
    }
    i64 i = low, j = begin - low, end = begin + span < m + n ? begin + span : m + n;
    for (i64 o = begin; o < end; ++o) {
        bool take_a = j >= n || (i < m && a[i] <= b[j]);
        out[o] = take_a ? a[i++] : b[j++];
    }
}

// Inclusive sums restarting at every segment, one warp a segment.
extern "C" __global__ void segment_scan_warp(int segments, const int* start, const real* in, real* out) {
    i64 segment = global_id() / WARP;
    int lane = threadIdx.x % WARP;
    if (segment >= segments) return;
    real carry = 0;
    for (int base = start[segment]; base < start[segment + 1]; base += WARP) {
        int i = base + lane;
        real value = i < start[segment + 1] ? in[i] : (real)0;
        for (int delta = 1; delta < WARP; delta *= 2) {
            real other = SHFL_UP(value, delta);
            if (lane >= delta) value += other;
        }
        if (i < start[segment + 1]) out[i] = carry + value;
        carry += SHFL(value, WARP - 1);
    }
}

// A mesh of quadrilaterals: corner forces from point data (gather), then accumulated at the points (scatter).
extern "C" __global__ void mesh_gather(int zones, const int* corner, const real* px, const real* py, real* area) {
    i64 z = global_id();
    if (z >= zones) return;
    int p[4];
    for (int c = 0; c < 4; ++c) p[c] = corner[4 * z + c];
    real twice = 0;
    for (int c = 0; c < 4; ++c) {
        int q = p[(c + 1) % 4];
        twice += px[p[c]] * py[q] - px[q] * py[p[c]];
    }
    area[z] = (real)0.5 * twice;
}

extern "C" __global__ void mesh_scatter(int zones, const int* corner, const real* area, real* mass) {
    i64 z = global_id();
    if (z >= zones) return;
    real share = (real)0.25 * area[z];
    for (int c = 0; c < 4; ++c) atomicAdd(&mass[corner[4 * z + c]], share);
}

#define DIGITS 16
// One 4-bit radix pass, tiles of 1024 keys: digit counts, stored digit-major for one scan over all of them.
extern "C" __global__ void radix_count(int n, int shift, const unsigned* key, int* count) {
    __shared__ int local[DIGITS];
    if (threadIdx.x < DIGITS) local[threadIdx.x] = 0;
    __syncthreads();
    for (int j = 0; j < 4; ++j) {
        i64 i = (i64)blockIdx.x * 1024 + j * 256 + threadIdx.x;
        if (i < n) atomicAdd(&local[(key[i] >> shift) & 15], 1);
    }
    __syncthreads();
    if (threadIdx.x < DIGITS) count[threadIdx.x * gridDim.x + blockIdx.x] = local[threadIdx.x];
}

// Scatters in order: thread t owns keys 4t..4t+3 of its tile; ranks from per-thread digit counts, scanned per digit.
extern "C" __global__ void radix_scatter(int n, int shift, const unsigned* key, const int* offset, unsigned* out) {
    __shared__ unsigned short rank[DIGITS][256 + 2];
    i64 first = (i64)blockIdx.x * 1024 + 4 * threadIdx.x;
    for (int d = 0; d < DIGITS; ++d) rank[d][threadIdx.x] = 0;
    unsigned mine[4];
    for (int j = 0; j < 4; ++j) {
        mine[j] = first + j < n ? key[first + j] : 0u;
        if (first + j < n) rank[(mine[j] >> shift) & 15][threadIdx.x]++;
    }
    __syncthreads();
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    for (int d = warp; d < DIGITS; d += blockDim.x / WARP) {
        int carry = 0;
        for (int base = 0; base < 256; base += WARP) {
            int value = rank[d][base + lane], sum = value;
            for (int delta = 1; delta < WARP; delta *= 2) {
                int other = SHFL_UP(sum, delta);
                if (lane >= delta) sum += other;
            }
            rank[d][base + lane] = (unsigned short)(carry + sum - value);
            carry += SHFL(sum, WARP - 1);
        }
    }
    __syncthreads();
    for (int j = 0; j < 4; ++j) {
        if (first + j >= n) break;
        int d = (mine[j] >> shift) & 15;
        out[offset[d * gridDim.x + blockIdx.x] + rank[d][threadIdx.x]++] = mine[j];
    }
}
