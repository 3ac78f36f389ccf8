"""Launches, graphs, copies from and to the host, kernels side by side, a second device."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from .gpu import Gpu, Skip
from .host_loop import HostLoop
from .micro_bench import Bench

EMPTY = ((1,), (32,), (np.int32(0),))
SPIN_TICKS = 200_000  # about 0.1 ms


def host_launches(g: Gpu, b: Bench) -> dict[str, float]:
    """The launch as the host pays it: pipelined, launch + sync, between two events; nothing traces meanwhile."""
    loop = HostLoop(g.vendor, g.address("micro", "micro_empty"))
    for count in (2000, 20000):  # the first warms up
        pipelined = loop.pipelined_s(count)
    return {
        "pipelined_s": pipelined,
        "sync_s": float(np.median(loop.launch_sync_s(2000)[200:])),
        "event_bracketed_s": float(np.median(loop.event_bracketed_s(2000)[200:])),
    }


def graph_launches(g: Gpu, b: Bench) -> dict[str, float]:
    """Interval between empty kernels inside a captured graph, the graph's own launch taken out by difference."""
    cp, function = g.cp, g.raw("micro", "micro_empty")
    function(*EMPTY)  # loaded before anything is captured
    g.sync()
    stream = cp.cuda.Stream(non_blocking=True)
    before, after = cp.cuda.Event(), cp.cuda.Event()
    taken = {}
    for count in (500, 1000):
        with stream:
            stream.begin_capture()
            for _ in range(count):
                function(*EMPTY)
            graph = stream.end_capture()
        times = []
        for _ in range(30):
            before.record(stream)
            graph.launch(stream)
            after.record(stream)
            stream.synchronize()
            times.append(cp.cuda.get_elapsed_time(before, after) * 1e-3)
        taken[count] = float(np.median(times[5:]))
    return {"graph_s": (taken[1000] - taken[500]) / 500}


def host_copies(g: Gpu, b: Bench) -> list[dict[str, float]]:
    """Copies between pinned host memory and the device by size: queued one after the other, and each waited for."""
    loop = HostLoop(g.vendor, g.address("micro", "micro_empty"))
    host = g.torch.empty(2**28, dtype=g.torch.uint8, pin_memory=True)
    device = g.torch.empty(2**28, dtype=g.torch.uint8, device="cuda")
    rows = []
    for power in range(3, 29):
        byte = 2**power
        copies = max(3, min(500, int(2e8 / byte)))
        row = {"byte": float(byte)}
        for down, name in ((False, "to_device"), (True, "to_host")):
            ends = (host.data_ptr(), device.data_ptr(), byte)
            loop.copy_s(down, *ends, 2)
            row[f"{name}_queued_s"] = loop.copy_s(down, *ends, copies)
            waited = [loop.copy_s(down, *ends, 1) for _ in range(min(copies, 50))]
            row[f"{name}_sync_s"] = float(np.median(waited))
        rows.append(row)
    return rows


def empty_kernels(g: Gpu, b: Bench) -> dict[str, float]:
    """Durations of an empty kernel: one block warm and cold, and a grid of 64 blocks a unit."""
    empty = g.kernel("micro", "micro_empty")
    return {
        "warm_s": b.time_s(empty(1, 32, np.int32(0)), 101),
        "cold_s": b.time_s(empty(1, 32, np.int32(0)), 31, cold=True),
        "full_grid_s": b.time_s(empty(b.units * 64, 256, np.int32(0)), 31),
    }


def concurrent_kernels(g: Gpu, b: Bench) -> list[dict[str, float]]:
    """One-block kernels of equal length on k streams, forked and joined in one graph: span from first start to end."""
    cp, function = g.cp, g.raw("micro", "micro_spin")
    function((1,), (32,), (np.int64(1),))  # loaded before anything is captured
    g.sync()
    rows = []
    for k in (1, 2, 4, 8, 16):
        streams = [cp.cuda.Stream(non_blocking=True) for _ in range(k)]
        main, fork = streams[0], cp.cuda.Event(disable_timing=True)
        joins = [cp.cuda.Event(disable_timing=True) for _ in streams]
        with main:
            main.begin_capture()
            main.record(fork)
        for stream, join in zip(streams, joins, strict=True):
            with stream:
                if stream is not main:
                    stream.wait_event(fork)
                function((1,), (32,), (np.int64(SPIN_TICKS),))
                if stream is not main:
                    stream.record(join)
                    main.wait_event(join)
        graph = main.end_capture()
        rows.append({"kernels": float(k), "span_s": b.makespan_s(partial(graph.launch, main))})
    return rows


def two_devices(g: Gpu, b: Bench) -> dict[str, float]:
    """The same work on one device and on two at once, as the host sees it: what the second device adds [s]."""
    cp = g.cp
    if cp.cuda.runtime.getDeviceCount() < 2:
        raise Skip("one device only")
    loops: list[Any] = []
    for device in (0, 1):
        with cp.cuda.Device(device):
            loops.append((g.fresh("micro", "micro_spin"), cp.cuda.Stream(non_blocking=True)))

    def once(devices: tuple[int, ...]) -> float:
        begun = time.perf_counter()
        for device in devices:
            function, stream = loops[device]
            with cp.cuda.Device(device), stream:
                function((1,), (32,), (np.int64(2_000_000),))
        for device in devices:
            with cp.cuda.Device(device):
                loops[device][1].synchronize()
        return time.perf_counter() - begun

    sets: dict[str, tuple[int, ...]] = {"first_s": (0,), "second_s": (1,), "both_s": (0, 1)}
    times: dict[str, list[float]] = {name: [] for name in sets}
    for turn in range(60):
        for name, devices in sets.items():
            taken = once(devices)
            if turn >= 10:
                times[name].append(taken)
    found = {name: float(np.median(values)) for name, values in times.items()}
    return {**found, "second_device_s": found["both_s"] - max(found["first_s"], found["second_s"])}
