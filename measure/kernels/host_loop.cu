// Host library: launches and copies in plain loops, as fast as a program can issue them. Built as plain C++ (the .cu
// ending only keeps it beside the kernels); the driver's functions are looked up at run time, CUDA or HIP alike.
#include <dlfcn.h>

#include <chrono>
#include <cstddef>

namespace {
using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
using Sync = int (*)(void*);
using EventCreate = int (*)(void**, unsigned);
using EventRecord = int (*)(void*, void*);
using EventElapsed = int (*)(float*, void*, void*);
using ToDevice = int (*)(void*, const void*, size_t, void*);
using ToHost = int (*)(void*, const void*, size_t, void*);

Launch launch;
Sync sync_stream;
EventCreate event_create;
EventRecord event_record;
EventElapsed event_elapsed;
ToDevice to_device;
ToHost to_host;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int start(void* function, void* stream) {
    int zero = 0;
    void* arguments[] = {&zero};
    return launch(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr);
}
}  // namespace

// `names`: launch, stream synchronise, event create, event record, event elapsed, copy to device, copy to host.
extern "C" int kc_host_open(const char* library, const char** names) {
    void* driver = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (!driver) return -1;
    launch = reinterpret_cast<Launch>(dlsym(driver, names[0]));
    sync_stream = reinterpret_cast<Sync>(dlsym(driver, names[1]));
    event_create = reinterpret_cast<EventCreate>(dlsym(driver, names[2]));
    event_record = reinterpret_cast<EventRecord>(dlsym(driver, names[3]));
    event_elapsed = reinterpret_cast<EventElapsed>(dlsym(driver, names[4]));
    to_device = reinterpret_cast<ToDevice>(dlsym(driver, names[5]));
    to_host = reinterpret_cast<ToHost>(dlsym(driver, names[6]));
    return launch && sync_stream && event_create && event_record && event_elapsed && to_device && to_host ? 0 : -2;
}

// Seconds from launch to launch of an empty kernel when nothing is waited for.
extern "C" double kc_pipelined_s(void* function, void* stream, int count) {
    if (sync_stream(stream)) return -1;
    double begun = now_s();
    for (int i = 0; i < count; ++i)
        if (start(function, stream)) return -1;
    if (sync_stream(stream)) return -1;
    return (now_s() - begun) / count;
}

// Seconds of each launch followed by a wait.
extern "C" int kc_launch_sync_s(void* function, void* stream, int count, double* each_s) {
    for (int i = 0; i < count; ++i) {
        double begun = now_s();
        if (start(function, stream) || sync_stream(stream)) return -1;
        each_s[i] = now_s() - begun;
    }
    return 0;
}

// Seconds between two events around one launch, the stream idle before.
extern "C" int kc_event_bracketed_s(void* function, void* stream, int count, double* each_s) {
    void *before = nullptr, *after = nullptr;
    if (event_create(&before, 0) || event_create(&after, 0)) return -1;
    for (int i = 0; i < count; ++i) {
        float ms = 0;
        if (event_record(before, stream) || start(function, stream) || event_record(after, stream)) return -1;
        if (sync_stream(stream) || event_elapsed(&ms, before, after)) return -1;
        each_s[i] = ms * 1e-3;
    }
    return 0;
}

// Seconds a copy: `copies` queued, then a wait; `down` copies from the device.
extern "C" double kc_copy_s(int down, void* host, void* device, size_t byte, void* stream, int copies) {
    if (sync_stream(stream)) return -1;
    double begun = now_s();
    for (int i = 0; i < copies; ++i)
        if (down ? to_host(host, device, byte, stream) : to_device(device, host, byte, stream)) return -1;
    if (sync_stream(stream)) return -1;
    return (now_s() - begun) / copies;
}
