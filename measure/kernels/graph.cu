// Breadth-first search in three ways and PageRank, on CSR graphs.

extern "C" __global__ void bfs_reset(int nodes, int root, int slots, int* level, int* queue, int* size) {
    i64 v = global_id();
    if (v < nodes) level[v] = v == root ? 0 : -1;
    if (v < slots) size[v] = v == 0 ? 1 : 0;
    if (v == 0) queue[0] = root;
}

// Scans every vertex at every level: one thread a vertex.
extern "C" __global__ void bfs_scan(int nodes, int depth, const int* start, const int* edge, int* level) {
    i64 v = global_id();
    if (v >= nodes || level[v] != depth) return;
    for (int j = start[v]; j < start[v + 1]; ++j)
        if (level[edge[j]] < 0) level[edge[j]] = depth + 1;
}

// A queue of the frontier, one warp a vertex; size[d] is the frontier at depth d.
extern "C" __global__ void bfs_top_down(int depth, const int* start, const int* edge, int* level, const int* queue, int* next,
                                        int* size) {
    i64 at = global_id() / WARP;
    int lane = threadIdx.x % WARP;
    if (at >= size[depth]) return;
    int v = queue[at];
    for (int j = start[v] + lane; j < start[v + 1]; j += WARP) {
        int u = edge[j];
        if (level[u] < 0 && atomicCAS(&level[u], -1, depth + 1) < 0) next[atomicAdd(&size[depth + 1], 1)] = u;
    }
}

// Every unvisited vertex looks for a parent in the frontier and stops at the first.
extern "C" __global__ void bfs_bottom_up(int nodes, int depth, const int* start, const int* edge, int* level, int* next, int* size) {
    i64 v = global_id();
    if (v >= nodes || level[v] >= 0) return;
    for (int j = start[v]; j < start[v + 1]; ++j)
        if (level[edge[j]] == depth) {
            level[v] = depth + 1;
            next[atomicAdd(&size[depth + 1], 1)] = (int)v;
            return;
        }
}

extern "C" __global__ void pagerank_share(int nodes, const int* start, const real* rank, real* share) {
    i64 v = global_id();
    if (v >= nodes) return;
    int degree = start[v + 1] - start[v];
    share[v] = degree > 0 ? rank[v] / degree : (real)0;
}

extern "C" __global__ void pagerank_pull(int nodes, real damping, const int* start, const int* edge, const real* share, real* rank) {
    i64 v = global_id() / WARP;
    int lane = threadIdx.x % WARP;
    if (v >= nodes) return;
    real sum = 0;
    for (int j = start[v] + lane; j < start[v + 1]; j += WARP) sum += share[edge[j]];
    sum = warp_sum(sum);
    if (lane == 0) rank[v] = (1 - damping) / nodes + damping * sum;
}
