// Small applications, written from their algorithms: clustering, gravity, a neural layer, LU, sequence alignment.

extern "C" __global__ void kmeans_assign(int points, int features, int clusters, const real* x, const real* centre, int* label) {
    i64 p = global_id();  // x is feature-major
    if (p >= points) return;
    real least = (real)3e38;
    int best = 0;
    for (int c = 0; c < clusters; ++c) {
        real sum = 0;
        for (int f = 0; f < features; ++f) {
            real d = x[(i64)f * points + p] - centre[c * features + f];
            sum += d * d;
        }
        if (sum < least) { least = sum; best = c; }
    }
    label[p] = best;
}

#define BODIES 256
extern "C" __global__ void nbody_step(int bodies, const float4* pos, const float4* vel, float4* pos2, float4* vel2) {
    __shared__ float4 tile[BODIES];
    i64 i = global_id();
    float4 me = i < bodies ? pos[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
    for (int base = 0; base < bodies; base += BODIES) {
        tile[threadIdx.x] = base + threadIdx.x < bodies ? pos[base + threadIdx.x] : make_float4(0, 0, 0, 0);
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < BODIES; ++j) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            float s = tile[j].w * r * r * r;
            ax += s * dx;
            ay += s * dy;
            az += s * dz;
        }
        __syncthreads();
    }
    if (i >= bodies) return;
    float4 v = vel[i];
    v.x += 0.01f * ax;
    v.y += 0.01f * ay;
    v.z += 0.01f * az;
    vel2[i] = v;
    pos2[i] = make_float4(me.x + 0.01f * v.x, me.y + 0.01f * v.y, me.z + 0.01f * v.z, me.w);
}

// A layer of a neural network, weights inputs x hidden: forward (one block a hidden unit), then the weight update.
extern "C" __global__ void backprop_forward(int inputs, int hidden, const real* x, const real* weight, real* out) {
    __shared__ real part[256];
    int h = blockIdx.x * 16 + threadIdx.x % 16, lane = threadIdx.x / 16;
    real sum = 0;
    if (h < hidden)
        for (int i = lane; i < inputs; i += 16) sum += x[i] * weight[(i64)i * hidden + h];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half >= 16; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x < 16 && h < hidden) out[h] = 1 / (1 + exp(-part[threadIdx.x]));
}

extern "C" __global__ void backprop_adjust(int inputs, int hidden, const real* x, const real* delta, const real* weight,
                                           const real* momentum, real* weight2, real* momentum2) {
    int h = blockIdx.y * blockDim.x + threadIdx.x;
    i64 i = (i64)blockIdx.x * blockDim.y + threadIdx.y;
    if (h >= hidden || i >= inputs) return;
    i64 at = i * hidden + h;
    real change = (real)0.3 * delta[h] * x[i] + (real)0.3 * momentum[at];
    weight2[at] = weight[at] + change;
    momentum2[at] = change;
}

// Gain of opening a candidate centre: every point compares the distance to it with its present cost.
extern "C" __global__ void streamcluster_gain(int points, int dims, int candidate, const real* x, const real* cost, real* gain) {
    i64 p = global_id();
    if (p >= points) return;
    real sum = 0;
    for (int d = 0; d < dims; ++d) {
        real diff = x[(i64)d * points + p] - x[(i64)d * points + candidate];
        sum += diff * diff;
    }
    gain[p] = sum < cost[p] ? cost[p] - sum : (real)0;
}

#define B 16
// Blocked LU without pivoting, n a multiple of 16: the diagonal block, its row and column of blocks, the rest.
extern "C" __global__ void lud_diagonal(int n, int at, real* a) {  // one block of 16 threads
    __shared__ real t[B][B + 1];
    int x = threadIdx.x;
    for (int i = 0; i < B; ++i) t[i][x] = a[(i64)(at + i) * n + at + x];
    __syncthreads();
    for (int k = 0; k < B - 1; ++k) {
        if (x > k) {
            t[x][k] /= t[k][k];
            for (int j = k + 1; j < B; ++j) t[x][j] -= t[x][k] * t[k][j];
        }
        __syncthreads();
    }
    for (int i = 0; i < B; ++i) a[(i64)(at + i) * n + at + x] = t[i][x];
}

extern "C" __global__ void lud_perimeter(int n, int at, real* a) {  // grid (blocks left, 2), 16 threads
    __shared__ real d[B][B + 1], t[B][B + 1];
    int x = threadIdx.x, other = at + (blockIdx.x + 1) * B;
    bool row = blockIdx.y == 0;
    for (int i = 0; i < B; ++i) {
        d[i][x] = a[(i64)(at + i) * n + at + x];
        t[i][x] = row ? a[(i64)(at + i) * n + other + x] : a[(i64)(other + i) * n + at + x];
    }
    __syncthreads();
    if (row) {
        for (int i = 1; i < B; ++i)
            for (int k = 0; k < i; ++k) t[i][x] -= d[i][k] * t[k][x];
    } else {
        for (int j = 0; j < B; ++j) {
            for (int k = 0; k < j; ++k) t[x][j] -= t[x][k] * d[k][j];
            t[x][j] /= d[j][j];
        }
    }
    __syncthreads();
    for (int i = 0; i < B; ++i) {
        if (row) a[(i64)(at + i) * n + other + x] = t[i][x];
        else a[(i64)(other + i) * n + at + x] = t[i][x];
    }
}

extern "C" __global__ void lud_internal(int n, int at, real* a) {  // grid (left, left), block (16, 16)
    __shared__ real l[B][B], u[B][B];
    int row = at + (blockIdx.y + 1) * B + threadIdx.y, col = at + (blockIdx.x + 1) * B + threadIdx.x;
    l[threadIdx.y][threadIdx.x] = a[(i64)row * n + at + threadIdx.x];
    u[threadIdx.y][threadIdx.x] = a[(i64)(at + threadIdx.y) * n + col];
    __syncthreads();
    real sum = 0;
#pragma unroll
    for (int k = 0; k < B; ++k) sum += l[threadIdx.y][k] * u[k][threadIdx.x];
    a[(i64)row * n + col] -= sum;
}

// Global alignment score of two sequences of n (a multiple of 16), an anti-diagonal of 16 x 16 tiles a launch.
extern "C" __global__ void nw_diagonal(int n, int diagonal, int first, int penalty, const int* similarity, int* score) {
    __shared__ int t[B + 1][B + 1];
    int bx = first + blockIdx.x, by = diagonal - bx, x = threadIdx.x, pitch = n + 1;
    i64 origin = (i64)by * B * pitch + bx * B;
    t[0][x + 1] = score[origin + x + 1];
    t[x + 1][0] = score[origin + (i64)(x + 1) * pitch];
    if (x == 0) t[0][0] = score[origin];
    __syncthreads();
    for (int step = 0; step < 2 * B - 1; ++step) {
        int i = x + 1, j = step - x + 1;
        if (j >= 1 && j <= B) {
            int best = t[i - 1][j - 1] + similarity[((i64)by * B + x) * n + bx * B + j - 1];
            if (t[i - 1][j] - penalty > best) best = t[i - 1][j] - penalty;
            if (t[i][j - 1] - penalty > best) best = t[i][j - 1] - penalty;
            t[i][j] = best;
        }
        __syncthreads();
    }
    for (int i = 1; i <= B; ++i) score[origin + (i64)i * pitch + x + 1] = t[i][x + 1];
}
