"""What a kernel has to do: FLOP, bytes by boundary, working set, launches, dependent steps.

Words follow the usual split (docs/model.md): *logical work* comes from the algorithm, *compulsory traffic* crosses
HBM→L2 once an operand, *re-read traffic* is what an implementation moves again between L2 and the compute units.
Every array has shape (n,), one entry a configuration, float64, SI units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, nearest_names
from .rules import Contradiction as Contradiction
from .rules import Fault, faults, is_word, numbers, spelt
from .rules import Param as Param

FloatArray = NDArray[np.float64]
Arguments = Mapping[str, NDArray[Any]]
WorkClass = Literal["memory", "compute", "balanced", "stencil", "irregular"]

# Bytes of one stored element. `mixed` and `none` (copies) are moved as 4-byte words.
PRECISION_BYTE: dict[str, float] = {
    "fp64": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "fp6": 0.75,
    "fp4": 0.5,
    "int64": 8.0,
    "int32": 4.0,
    "int16": 2.0,
    "int8": 1.0,
    "mixed": 4.0,
    "none": 4.0,
}
INDEX_BYTE = 4.0  # sparse and graph indices are int32 everywhere in the run tables
SECTOR_BYTE = 32.0  # smallest piece a GPU cache moves: a scattered 4-byte access costs one


def element_byte(precision: str) -> float:
    """Bytes an element of `precision` takes. Raises InputError for a name that is none of ours."""
    try:
        return PRECISION_BYTE[precision]
    except KeyError:
        raise InputError(f"unknown precision {precision!r}{nearest_names(precision, PRECISION_BYTE)}") from None


@dataclass(frozen=True)
class Work:
    """The work of n configurations of one family at one precision; arrays of shape (n,)."""

    flop: FloatArray
    read_byte: FloatArray
    """Compulsory bytes HBM→L2."""
    write_byte: FloatArray
    """Compulsory bytes L2→HBM."""
    working_set_byte: FloatArray
    launches: FloatArray
    threads: FloatArray
    """Independent work items of one launch: the parallelism on offer."""
    reread_byte: FloatArray
    """Traffic L2→compute units beyond the compulsory bytes: served by the cache while the working set fits."""
    chain: FloatArray
    """Dependent memory accesses one thread makes in a row, over all launches: each costs a latency."""
    unit: Literal["vector", "matrix"] = "vector"
    gemm: tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None = None
    """(m, n, k, batch) where the work is a matrix product, else None."""

    @property
    def compulsory_byte(self) -> FloatArray:
        """Bytes across HBM↔L2, each operand once [B]."""
        return self.read_byte + self.write_byte

    @property
    def cache_byte(self) -> FloatArray:
        """Bytes across L2↔compute units [B]."""
        return self.compulsory_byte + self.reread_byte


def make_work(
    flop: Any,
    read_byte: Any,
    write_byte: Any,
    *,
    threads: Any,
    working_set_byte: Any = None,
    launches: Any = 1.0,
    reread_byte: Any = 0.0,
    chain: Any = 1.0,
    unit: Literal["vector", "matrix"] = "vector",
    gemm: tuple[Any, Any, Any, Any] | None = None,
) -> Work:
    """Build a Work with every entry broadcast to one shape (n,); the working set defaults to read + written bytes."""
    if working_set_byte is None:
        working_set_byte = np.asarray(read_byte, dtype=float) + np.asarray(write_byte, dtype=float)
    columns = [flop, read_byte, write_byte, working_set_byte, launches, threads, reread_byte, chain]
    columns = [np.asarray(c, dtype=np.float64) for c in (*columns, *(gemm or ()))]
    shape = np.broadcast_shapes(*(c.shape for c in columns), (1,))
    full = [np.broadcast_to(c, shape).astype(np.float64) for c in columns]
    flops, reads, writes, resident, starts, items, again, steps, *dims = full
    shapes = (dims[0], dims[1], dims[2], dims[3]) if gemm is not None else None
    return Work(flops, reads, writes, resident, starts, items, again, steps, unit, shapes)


@dataclass(frozen=True)
class Family:
    """A kernel family: its parameters, the function from parameters to work, and all that is known of it besides.

    `work(arguments, element_byte)` takes validated arrays of shape (n,) and returns Work. `derive` may fill optional
    parameters from others (a square image's `hw` from height and width, say) before the required ones are checked.
    """

    name: str
    params: tuple[Param, ...]
    work: Callable[[Arguments, float], Work]
    kind: WorkClass
    route: Literal["matrix", "generic"] = "generic"
    meaning: str = ""
    precision: str = "fp32"
    """Precision assumed on the command line where none is given; named in the output."""
    derive: Callable[[dict[str, NDArray[Any]]], None] | None = None
    reference: Mapping[str, str] = field(default_factory=dict)
    """Reference implementation by vendor, where no trained model knows better."""
    example: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of a question that runs, of a usual size; `precision` where it is not the assumed one."""
    statistics: tuple[str, ...] = ()
    """Optional parameters that the time hangs on beyond the sizes. A band learned from runs that say them covers
    markedly fewer of those that do not: of 90 % on the H200's hold-out runs 59 % of the searches without max_degree and
    53 % without structure, 33 % of the ELL products without row_max."""
    asked_without: tuple[tuple[str, ...], ...] = ()
    """What questions leave out together, from little to all: first what other people's tables lack (our generator's
    label, where the entries of a row lie, the quartiles of their number), then all that may be left out. Each is
    learned apart, see `training.hybrid.partial`. Steps between cost a file each and gained 0.2 % of error at most."""
    contradictions: tuple[Contradiction, ...] = ()
    keeps_rounds: bool = False
    """Whether rounds of the grid mean the same on every GPU, as where tiles fill it; those of rows are the occupancy of
    one chip."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.params)

    @property
    def usage(self) -> str:
        """How it is called: `gemm takes m n k [batch]`."""
        return f"{self.name} takes {' '.join(p.name if p.required else f'[{p.name}]' for p in self.params)}"


def _first(bad: NDArray[np.bool_]) -> str:
    """Where the first bad row is, said only when there is more than one row."""
    return f", row {int(np.argmax(bad)) + 1}" if bad.size > 1 else ""


def stated(family: Family, raw: Mapping[str, Any], n: int) -> tuple[dict[str, NDArray[Any]], list[Fault]]:
    """(an array of shape (n,) for every parameter as given, cells that are no numbers).

    NaN and None where nothing is given, words in their canonical spelling; parameters the family does not know are left
    out. A column of neither 1 nor n words is kept as it is.
    """
    out: dict[str, NDArray[Any]] = {}
    unreadable: list[Fault] = []
    for param in family.params:
        if param.name not in raw:
            out[param.name] = np.full(n, None, dtype=object) if is_word(param) else np.full(n, np.nan)
            continue
        if is_word(param):
            cells = np.atleast_1d(np.asarray(raw[param.name], dtype=object))
            cells = np.broadcast_to(cells, (n,)) if cells.size in (1, n) else cells
            out[param.name] = spelt(param, cells).copy()
            continue
        values, bad = numbers(raw[param.name])
        out[param.name] = np.broadcast_to(values, (n,)).copy()
        if bad.any():
            unreadable.append(Fault(param.name, np.broadcast_to(bad, (n,)), "is not a number"))
    return out, unreadable


def completed(family: Family, columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The columns with what `derive` fills in, the given ones left alone."""
    out = {name: values.copy() for name, values in columns.items()}
    if family.derive is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            family.derive(out)
    return out


def arguments(family: Family, raw: Mapping[str, Any], where: str | None = None) -> dict[str, NDArray[Any]]:
    """Validate raw parameters of n configurations into arrays of shape (n,).

    Optional parameters that are absent (or NaN in some rows) become their defaults, NaN where there is none. Parameters
    the family does not know are left out here; the command line refuses them, a run table keeps them.
    Raises InputError naming the parameter, the row and what would be right.
    """
    where = where or family.name
    n = max((np.atleast_1d(np.asarray(v, dtype=object)).size for v in raw.values()), default=1)
    given, unreadable = stated(family, raw, n)
    for fault in unreadable:
        cells = np.broadcast_to(np.atleast_1d(np.asarray(raw[fault.name], dtype=object)), (n,))
        raise InputError(f"{where}: parameter {fault.name!r} must be a number, not {cells[np.argmax(fault.where)]!r}")
    out = completed(family, given)
    for fault in faults(family, out, given=raw):
        raise InputError(f"{where}{_first(fault.where)}: {fault.of(out[fault.name])}")
    for param in family.params:
        if param.default is not None and not is_word(param):
            out[param.name][np.isnan(out[param.name])] = float(param.default)
    return out


def usage(family: Family) -> str:
    """How the family is called: `gemm takes m n k [batch]`."""
    return family.usage
