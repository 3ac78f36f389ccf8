"""Segments run as one kernel: FLOP and bytes add up, less what stays on chip. arXiv 2605.04178 section IV.B.

What the fused kernel costs beyond that is `fusion_overhead` (`generic.fused_time`), paid in each execution.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .errors import InputError, nearest_names
from .families import FAMILIES
from .generic import fused_work
from .units import format_quantity
from .work import arguments, element_byte
from .workload_file import Segment

FAMILY_NOTE = ("re-reads, dependent accesses and learned corrections of the families are not in it: judge a fusion by "
               "the analytic times")


def as_counted(segment: Segment) -> Segment:
    """A segment of a kernel family as counted work: FLOP, compulsory bytes, working set and launches of its family.

    What a family knows beyond that (re-read traffic, chains of dependent accesses, tiles) is lost. A counted segment
    comes back as it is. Raises InputError for missing parameters.
    """
    if segment.kernel is None:
        return segment
    family = FAMILIES[segment.kernel]
    precision = segment.precision or family.precision
    work = family.work(arguments(family, segment.params), element_byte(precision))
    kept = segment.model_copy(update={"kernel": None, "params": {}, "tile": None, "implementation": None})
    return kept.model_copy(
        update={
            "flop": float(work.flop[0]), "bytes": float(work.compulsory_byte[0]), "precision": precision,
            "working_set": float(work.working_set_byte[0]), "kernels": float(work.launches[0]), "unit": work.unit,
            "work_class": family.kind,
        }
    )


def fuse_segments(parts: Iterable[Segment], intermediate_byte: float, name: str) -> Segment:
    """One segment for several: summed FLOP and bytes less `intermediate_byte`, one kernel, one execution count.

    Families are taken by the work they count (`as_counted`). InputError where the parts cannot be one kernel.
    """
    given = list(parts)
    if any(part.open_fields() for part in given):
        raise InputError(f"open fields: {', '.join(f for part in given for f in part.open_fields())}")
    listed = [as_counted(part) for part in given]
    for what in ("precision", "n_exec", "unit"):
        values = {part.name: getattr(part, what) for part in listed}
        if len(set(values.values())) > 1:
            said = ", ".join(f"{part} {value}" for part, value in values.items())
            raise InputError(f"fused segments differ in {what} ({said}); one kernel has one")
    byte = sum(part.bytes or 0.0 for part in listed)
    if intermediate_byte > byte:
        raise InputError(f"intermediate_bytes: {format_quantity(intermediate_byte, 'B')} stay on chip, but the kernels "
                         f"move {format_quantity(byte, 'B')} in all")
    flop, left = fused_work([part.flop or 0.0 for part in listed], [part.bytes or 0.0 for part in listed],
                            intermediate_byte)
    heaviest = max(listed, key=lambda part: part.bytes or 0.0)
    sets = [part.working_set if part.working_set is not None else part.bytes or 0.0 for part in listed]
    families = f"; {FAMILY_NOTE}" if any(part.kernel for part in given) else ""
    return heaviest.model_copy(
        update={
            "name": name, "flop": float(flop), "bytes": float(left), "kernels": 1.0, "working_set": max(sets),
            "transfers": tuple(t for part in listed for t in part.transfers),
            "syncs": sum(part.syncs or 0.0 for part in listed),
            "note": f"fused from {', '.join(part.name for part in listed)}, {format_quantity(intermediate_byte, 'B')} "
                    f"of traffic between them left out{families}", "published": (),
        }
    )


def fused(
    segments: Sequence[Segment], names: Sequence[str], intermediate_byte: float, name: str
) -> tuple[Segment, ...]:
    """`segments` with those named replaced by one kernel in the place of the first. InputError for what cannot be."""
    by_name = {segment.name: segment for segment in segments}
    for wanted in names:
        if wanted not in by_name:
            raise InputError(f"segments: no segment {wanted!r}{nearest_names(wanted, by_name)}")
    if len(set(names)) != len(names):
        raise InputError("segments: one is named twice; each can be fused once")
    if name in by_name and name not in names:
        raise InputError(f"name: there is a segment {name!r} already; give the fused one another name")
    one = fuse_segments([by_name[wanted] for wanted in names], intermediate_byte, name)
    first = min(k for k, segment in enumerate(segments) if segment.name in names)
    made = [one if k == first else segment for k, segment in enumerate(segments)
            if k == first or segment.name not in names]
    return tuple(made)
