// Sparse matrices: y = A x in five layouts, A B, and lower-triangular solves.

extern "C" __global__ void csr_scalar(int rows, const int* start, const int* col, const real* val, const real* x, real* y) {
    i64 row = global_id();
    if (row >= rows) return;
    real sum = 0;
    for (int j = start[row]; j < start[row + 1]; ++j) sum += val[j] * x[col[j]];
    y[row] = sum;
}

extern "C" __global__ void csr_vector(int rows, const int* start, const int* col, const real* val, const real* x, real* y) {
    i64 row = global_id() / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= rows) return;
    real sum = 0;
    for (int j = start[row] + lane; j < start[row + 1]; j += WARP) sum += val[j] * x[col[j]];
    sum = warp_sum(sum);
    if (lane == 0) y[row] = sum;
}

extern "C" __global__ void zero_real(int n, real* y) {
    i64 i = global_id();
    if (i < n) y[i] = (real)0;
}

// Rows and entries are one list of steps, shared out evenly; rows cut between threads are added atomically (y starts at 0).
extern "C" __global__ void csr_merge(int rows, int nnz, int span, const int* start, const int* col, const real* val,
                                     const real* x, real* y) {
    i64 begin = global_id() * span, total = (i64)rows + nnz;
    if (begin >= total) return;
    i64 end = begin + span < total ? begin + span : total;
    i64 low = begin > nnz ? begin - nnz : 0, high = begin < rows ? begin : rows;
    while (low < high) {
        i64 mid = (low + high) / 2;
        if (start[mid + 1] <= begin - 1 - mid) low = mid + 1; else high = mid;
    }
    i64 row = low, j = begin - low;
    bool whole = row < rows && j == start[row];
    real sum = 0;
    for (i64 step = begin; step < end; ++step) {
        if (row < rows && j >= start[row + 1]) {
            if (whole) y[row] = sum; else atomicAdd(&y[row], sum);
            ++row;
            sum = 0;
            whole = true;
        } else {
            sum += val[j] * x[col[j]];
            ++j;
        }
    }
    if (row < rows && sum != (real)0) atomicAdd(&y[row], sum);
}

extern "C" __global__ void coo_atomic(int nnz, const int* row, const int* col, const real* val, const real* x, real* y) {
    i64 i = global_id();
    if (i < nnz) atomicAdd(&y[row[i]], val[i] * x[col[i]]);
}

extern "C" __global__ void ell_row(int rows, int width, const int* col, const real* val, const real* x, real* y) {
    i64 row = global_id();
    if (row >= rows) return;
    real sum = 0;
    for (int j = 0; j < width; ++j) {
        i64 at = (i64)j * rows + row;
        int c = col[at];
        if (c >= 0) sum += val[at] * x[c];
    }
    y[row] = sum;
}

#define SLICE 32
extern "C" __global__ void sellp_row(int rows, const i64* slice_start, const int* col, const real* val, const real* x, real* y) {
    i64 row = global_id();
    if (row >= rows) return;
    i64 slice = row / SLICE, begin = slice_start[slice], width = (slice_start[slice + 1] - begin) / SLICE;
    real sum = 0;
    for (i64 j = 0; j < width; ++j) {
        i64 at = begin + j * SLICE + row % SLICE;
        int c = col[at];
        if (c >= 0) sum += val[at] * x[c];
    }
    y[row] = sum;
}

// C = A B, row-major B and C of `width` columns: one warp a row, lanes over the columns.
extern "C" __global__ void spmm_row_warp(int rows, int width, const int* start, const int* col, const real* val,
                                         const real* b, real* c) {
    i64 row = global_id() / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= rows) return;
    for (int x = lane; x < width; x += WARP) {
        real sum = 0;
        for (int j = start[row]; j < start[row + 1]; ++j) sum += val[j] * b[(i64)col[j] * width + x];
        c[row * width + x] = sum;
    }
}

// L x = b, unit diagonal not stored. One launch a level; rows are numbered level by level.
extern "C" __global__ void sptrsv_level(int first, int last, const int* start, const int* col, const real* val,
                                        const real* b, real* x) {
    i64 row = first + global_id();
    if (row >= last) return;
    real sum = b[row];
    for (int j = start[row]; j < start[row + 1]; ++j) sum -= val[j] * x[col[j]];
    x[row] = sum;
}

// One launch: a warp a row waits for the rows it needs. All of `done` must be 0 before.
extern "C" __global__ void sptrsv_syncfree(int rows, const int* start, const int* col, const real* val,
                                           const real* b, volatile real* x, volatile int* done) {
    i64 row = global_id() / WARP;
    int lane = threadIdx.x % WARP;
    if (row >= rows) return;
    real sum = 0;
    for (int j = start[row] + lane; j < start[row + 1]; j += WARP) {
        int c = col[j];
        while (!done[c]) {}
        __threadfence();
        sum += val[j] * x[c];
    }
    sum = warp_sum(sum);
    if (lane == 0) {
        x[row] = b[row] - sum;
        __threadfence();
        done[row] = 1;
    }
}
