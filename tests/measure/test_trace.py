"""Traces are cut at their markers, one that does not match is refused, and where there is none graphs are replayed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernelcast.analytic.errors import KernelcastError
from kernelcast.measure import tracers
from kernelcast.measure.case import Case
from kernelcast.measure.gpu import Skip
from kernelcast.measure.micro_bench import Bench
from kernelcast.measure.replay import GraphReplay
from kernelcast.measure.trace import RECORD, Segment, assign_codes, cut
from kernelcast.measure.tracers import open_tracer


def trace(*kernels: tuple[int, int, int]) -> np.ndarray:
    """(duration_ns, grid_x, is marker), one after the other with gaps of 100 ns."""
    rows, now = [], 1_000
    for duration, grid, marker in kernels:
        rows.append((now, now + duration, grid, marker))
        now += duration + 100
    return np.array(rows, RECORD)


def test_a_segment_is_what_lies_between_two_markers() -> None:
    records = trace((5, 7, 0), (1, 2, 1), (2000, 64, 0), (3000, 9, 0), (1, 3, 1), (500, 1, 0), (1, 1, 1))
    found = cut(records)
    assert [(s.code, s.launches) for s in found] == [(2, 2), (3, 1), (1, 0)]
    assert [s.time_s for s in found] == pytest.approx([5e-6, 0.5e-6, 0.0])  # 2000 + 3000 ns, 500 ns, nothing


def test_records_may_come_in_any_order() -> None:
    records = trace((1, 4, 1), (800, 1, 0), (1, 5, 1), (900, 1, 0))
    assert cut(records[[3, 0, 2, 1]]) == cut(records)


def test_no_records_or_no_markers_give_no_segments() -> None:
    assert cut(np.zeros(0, RECORD)) == []
    assert cut(trace((10, 1, 0))) == []


@given(st.lists(st.tuples(st.integers(1, 60), st.lists(st.integers(1, 10**7), max_size=4)), min_size=1, max_size=30))
@settings(deadline=None, max_examples=40)
def test_any_sequence_of_calls_comes_back(calls: list[tuple[int, list[int]]]) -> None:
    kernels = [item for code, times in calls for item in [(1, code, 1), *((t, 3, 0) for t in times)]]
    found = cut(trace(*kernels))
    assert [s.code for s in found] == [code for code, _ in calls]
    assert [s.launches for s in found] == [len(times) for _, times in calls]
    np.testing.assert_allclose([s.time_s for s in found], [sum(times) * 1e-9 for _, times in calls], rtol=1e-12)


def test_codes_are_given_to_a_trace_without_grids() -> None:
    assert assign_codes([Segment(0, 1.0, 1), Segment(0, 2.0, 1)], [4, 5]) == [Segment(4, 1.0, 1), Segment(5, 2.0, 1)]


@pytest.mark.parametrize(("codes", "complaint"), [([4], "holds 2 markers where 1"), ([4, 6], "not in the order")])
def test_a_trace_that_lost_records_is_refused(codes: list[int], complaint: str) -> None:
    with pytest.raises(KernelcastError, match=complaint):
        assign_codes([Segment(4, 1.0, 1), Segment(5, 2.0, 1)], codes)


class Device:
    """Marks and graphs on paper; `seen` is what a tracer would record."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, int]] = []
        self.ns = 0

    def mark(self, code: int) -> None:
        self.seen.append((1, code, 1))

    def sync(self) -> None: ...

    def capture(self, call: Callable[[], Any], count: int) -> Callable[[], float]:
        self.ns = 0
        for _ in range(count):
            call()
        taken = self.ns
        return lambda: taken * 1e-9

    def work(self, ns: int) -> None:
        self.ns += ns


class Fake:
    """A tracer that records what was marked, or sees nothing."""

    name, why = "fake", ""

    def __init__(self, device: Device, blind: bool = False) -> None:
        self.device, self.blind, self.closed, self.first = device, blind, False, len(device.seen)

    def drain(self) -> np.ndarray:
        return np.zeros(0, RECORD) if self.blind else trace(*self.device.seen[self.first :])

    def close(self) -> None:
        self.closed = True


def refuse(_: Any) -> Any:
    raise OSError("libcupti.so: not there")


def test_the_first_tracer_that_sees_a_marker_is_taken_and_says_why_no_better_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device, made = Device(), []

    def blind(gpu: Any) -> Any:
        made.append(Fake(gpu, blind=True))
        return made[-1]

    monkeypatch.setattr(tracers, "KINDS", (("records", refuse), ("blind", blind), ("good", Fake)))
    found = open_tracer(device)
    assert isinstance(found, Fake)
    assert found.why == ("no records: libcupti.so: not there; "
                         "no blind: it opens, but a kernel that was launched is not in its records")
    assert made[0].closed
    monkeypatch.setattr(tracers, "KINDS", (("good", Fake),))
    assert open_tracer(Device()).why == ""


def test_without_any_tracer_graphs_are_replayed_and_microbenchmarks_that_need_records_are_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracers, "KINDS", (("records", refuse),))
    device: Any = Device()
    found = open_tracer(device)
    assert isinstance(found, GraphReplay)
    assert (found.name, found.why) == ("graph replay", "no records: libcupti.so: not there")
    properties = SimpleNamespace(multi_processor_count=132)
    device.torch = SimpleNamespace(cuda=SimpleNamespace(get_device_properties=lambda _: properties))
    with pytest.raises(Skip, match="needs records of kernels, and there are none: no records"):
        Bench(device).time_s(lambda: None)


def test_a_replay_is_the_mean_of_its_calls_less_what_resets_their_inputs() -> None:
    device = Device()
    replay = GraphReplay(device, "")
    plain = Case(lambda: device.work(2000), lambda: 0.0)
    overwriting = Case(lambda: device.work(3000), lambda: 0.0, reset=lambda: device.work(500))

    def waits() -> None:
        raise RuntimeError("not permitted when stream is capturing")

    found = replay.times([(plain, 2e-6, 5), (overwriting, 1.0, 3), (Case(waits, lambda: 0.0), 1e-6, 3)])
    assert found[:2] == [[Segment(0, pytest.approx(2e-6), None)] * 5, [Segment(0, pytest.approx(3e-6), None)] * 3]
    assert isinstance(found[2], RuntimeError)


def test_a_graph_is_long_enough_that_its_own_launch_is_small() -> None:
    """Half a millisecond, in at most a hundred calls: 5e-4 s over 1e-5 s are 50."""
    counts: list[int] = []

    class Counting(Device):
        def capture(self, call: Callable[[], Any], count: int) -> Callable[[], float]:
            counts.append(count)
            return lambda: 1.0

    GraphReplay(Counting(), "").times([(Case(lambda: None, lambda: 0.0), s, 1) for s in (1e-5, 1e-9, 0.08)])
    assert counts == [50, 100, 1]
