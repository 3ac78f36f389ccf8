// Grids and images: stencils in two and three dimensions, hotspot, SRAD, convolution, im2col, pathfinder.

extern "C" __global__ void stencil_5pt(int width, int height, const real* in, real* out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    i64 i = (i64)y * width + x;
    out[i] = (real)0.5 * in[i] + (real)0.125 * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}

#define DEPTH 16
#define SPAN 64
// 9 points, halo of one cell in the array (pitch cols + 2); a block of 64 threads walks down 16 rows of a staged tile.
extern "C" __global__ void stencil_9pt(int rows, int cols, const real* in, real* out) {
    __shared__ real tile[DEPTH + 2][SPAN + 2];
    int row0 = blockIdx.y * DEPTH, col0 = blockIdx.x * SPAN, pitch = cols + 2;
    for (int r = 0; r < DEPTH + 2; ++r)
        for (int c = threadIdx.x; c < SPAN + 2; c += SPAN)
            if (row0 + r < rows + 2 && col0 + c < cols + 2) tile[r][c] = in[(i64)(row0 + r) * pitch + col0 + c];
    __syncthreads();
    int t = threadIdx.x;
    if (col0 + t >= cols) return;
    for (int r = 0; r < DEPTH && row0 + r < rows; ++r) {
        real edge = tile[r][t + 1] + tile[r + 2][t + 1] + tile[r + 1][t] + tile[r + 1][t + 2];
        real corner = tile[r][t] + tile[r][t + 2] + tile[r + 2][t] + tile[r + 2][t + 2];
        out[(i64)(row0 + r) * cols + col0 + t] = (real)0.5 * tile[r + 1][t + 1] + (real)0.1 * edge + (real)0.025 * corner;
    }
}

extern "C" __global__ void stencil_7pt(int nx, int ny, int nz, const real* in, real* out) {  // block (32, 8), z by grid
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1) return;
    i64 plane = (i64)nx * ny, i = z * plane + (i64)y * nx + x;
    real around = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - plane] + in[i + plane];
    out[i] = (real)0.4 * in[i] + (real)0.1 * around;
}

// One explicit step of heat flow in a chip: conduction to four neighbours and the ambient, plus the power drawn.
extern "C" __global__ void hotspot_step(int rows, int cols, const real* temp, const real* power, real* out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= cols || y >= rows) return;
    i64 i = (i64)y * cols + x;
    real here = temp[i];
    real west = x > 0 ? temp[i - 1] : here, east = x < cols - 1 ? temp[i + 1] : here;
    real north = y > 0 ? temp[i - cols] : here, south = y < rows - 1 ? temp[i + cols] : here;
    real flow = (north + south - 2 * here) * (real)0.1 + (east + west - 2 * here) * (real)0.1 + ((real)80 - here) * (real)0.001;
    out[i] = here + (real)0.5 * (power[i] + flow);
}

// Speckle-reducing anisotropic diffusion: the coefficient of every pixel, then the divergence.
extern "C" __global__ void srad_coefficient(int rows, int cols, real q0, const real* image, real* coefficient) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= cols || y >= rows) return;
    i64 i = (i64)y * cols + x;
    real here = image[i];
    real dn = image[y > 0 ? i - cols : i] - here, ds = image[y < rows - 1 ? i + cols : i] - here;
    real dw = image[x > 0 ? i - 1 : i] - here, de = image[x < cols - 1 ? i + 1 : i] - here;
    real slope = (dn * dn + ds * ds + dw * dw + de * de) / (here * here), bend = (dn + ds + dw + de) / here;
    real base = 1 + (real)0.25 * bend;
    real q = ((real)0.5 * slope - (real)0.0625 * bend * bend) / (base * base);
    real c = 1 / (1 + (q - q0) / (q0 * (1 + q0)));
    coefficient[i] = c < 0 ? (real)0 : (c > 1 ? (real)1 : c);
}

extern "C" __global__ void srad_update(int rows, int cols, real rate, const real* image, const real* coefficient, real* out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= cols || y >= rows) return;
    i64 i = (i64)y * cols + x;
    i64 south = y < rows - 1 ? i + cols : i, east = x < cols - 1 ? i + 1 : i;
    i64 north = y > 0 ? i - cols : i, west = x > 0 ? i - 1 : i;
    real here = image[i], c = coefficient[i];
    real divergence = coefficient[south] * (image[south] - here) + c * (image[north] - here) +
                      coefficient[east] * (image[east] - here) + c * (image[west] - here);
    out[i] = here + (real)0.25 * rate * divergence;
}

extern "C" __global__ void convolve_mask(int height, int width, int mask, const unsigned* in, const real* weight, int* out) {
    i64 id = global_id();
    if (id >= (i64)height * width) return;
    int y = (int)(id / width), x = (int)(id % width), pitch = width + mask - 1;
    real sum = 0;
    for (int j = 0; j < mask; ++j)
        for (int i = 0; i < mask; ++i) sum += weight[j * mask + i] * (real)in[(i64)(y + j) * pitch + x + i];
    out[id] = (int)(sum + (real)0.5);
}

extern "C" __global__ void im2col_unroll(int height, int width, int kh, int kw, const real* in, real* out) {
    int ph = height - kh + 1, pw = width - kw + 1;
    i64 id = global_id(), positions = (i64)ph * pw;
    if (id >= positions) return;
    int y = (int)(id / pw), x = (int)(id % pw);
    for (int t = 0; t < kh * kw; ++t) out[t * positions + id] = in[(i64)(y + t / kw) * width + x + t % kw];
}

// Cheapest path down a grid: one launch a row.
extern "C" __global__ void pathfinder_row(int cols, const int* wall, const int* best, int* out) {
    i64 x = global_id();
    if (x >= cols) return;
    int least = best[x];
    if (x > 0 && best[x - 1] < least) least = best[x - 1];
    if (x < cols - 1 && best[x + 1] < least) least = best[x + 1];
    out[x] = wall[x] + least;
}
