// Host library: collects the start and end of every kernel of this process from CUPTI activity records.
// Built as plain C++ (the .cu ending only keeps it beside the kernels); CUPTI is looked up at run time, not linked.
#include <cupti.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace {
struct Record {
    uint64_t start_ns, end_ns;
    uint32_t grid_x, marker;
};
std::vector<Record> records;
std::mutex guard;
uint64_t dropped = 0;
decltype(&cuptiActivityGetNextRecord) next_record;
decltype(&cuptiActivityFlushAll) flush_all;
decltype(&cuptiActivityGetNumDroppedRecords) count_dropped;

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* max_records) {
    *size = 4u << 20;
    *max_records = 0;
    *buffer = static_cast<uint8_t*>(aligned_alloc(8, *size));
}

void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t valid) {
    std::lock_guard<std::mutex> lock(guard);
    CUpti_Activity* record = nullptr;
    while (next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record->kind != CUPTI_ACTIVITY_KIND_KERNEL) continue;
        auto* kernel = reinterpret_cast<CUpti_ActivityKernel9*>(record);
        bool marker = kernel->name && std::strcmp(kernel->name, "kc_marker") == 0;
        records.push_back({kernel->start, kernel->end, static_cast<uint32_t>(kernel->gridX), marker ? 1u : 0u});
    }
    size_t lost = 0;
    count_dropped(context, stream, &lost);
    dropped += lost;
    free(buffer);
}
}  // namespace

extern "C" int kc_trace_start(const char* library) {
    void* cupti = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (!cupti) return -1;
    auto enable = reinterpret_cast<decltype(&cuptiActivityEnable)>(dlsym(cupti, "cuptiActivityEnable"));
    auto callbacks =
        reinterpret_cast<decltype(&cuptiActivityRegisterCallbacks)>(dlsym(cupti, "cuptiActivityRegisterCallbacks"));
    next_record = reinterpret_cast<decltype(next_record)>(dlsym(cupti, "cuptiActivityGetNextRecord"));
    flush_all = reinterpret_cast<decltype(flush_all)>(dlsym(cupti, "cuptiActivityFlushAll"));
    count_dropped = reinterpret_cast<decltype(count_dropped)>(dlsym(cupti, "cuptiActivityGetNumDroppedRecords"));
    if (!enable || !callbacks || !next_record || !flush_all || !count_dropped) return -2;
    int status = callbacks(give_buffer, take_buffer);
    if (status) return status;
    return enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

// Copies at most `room` records out, oldest first, and forgets all; returns how many there were, or a negative error.
extern "C" int64_t kc_trace_drain(Record* out, int64_t room) {
    int status = flush_all(1);
    if (status) return -static_cast<int64_t>(status);
    std::lock_guard<std::mutex> lock(guard);
    int64_t count = static_cast<int64_t>(records.size());
    if (out == nullptr) return count;
    std::memcpy(out, records.data(), sizeof(Record) * static_cast<size_t>(count < room ? count : room));
    records.clear();
    return count;
}

extern "C" uint64_t kc_trace_dropped() { return dropped; }
