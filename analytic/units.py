"""Units: human text in, SI numbers out, and back again for people.

Everything inside the package is a plain float in SI units (`B`, `B/s`, `FLOP/s`, `s`, `Hz`, `cycle`, counts); text with
a unit exists only at the edges: parameter files, `--set`, tables. The registry holds nothing but the units below, so a
mistyped unit is an error and never a quiet match with some unit of chemistry. `pint` is imported on first need: a file
written in SI units never needs it.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .errors import InputError, nearest_names

if TYPE_CHECKING:
    from pint import UnitRegistry

_DEFINITIONS = """
kilo- = 1e3 = k-
mega- = 1e6 = M-
giga- = 1e9 = G-
tera- = 1e12 = T-
peta- = 1e15 = P-
exa- = 1e18 = E-
milli- = 1e-3 = m-
micro- = 1e-6 = u- = µ- = μ-
nano- = 1e-9 = n-
pico- = 1e-12 = p-
kibi- = 1024 = Ki-
mebi- = 1024**2 = Mi-
gibi- = 1024**3 = Gi-
tebi- = 1024**4 = Ti-
byte = [information] = B
bit = byte / 8
flop = [operation] = FLOP = Flop
op = flop = OP
flops = flop / second = FLOPS = Flops
ops = flop / second = OPS
second = [time] = s = sec
minute = 60 * second = min
hour = 3600 * second = h
hertz = 1 / second = Hz
watt = [power] = W
cycle = [cycle] = clk
count = []
ratio = count
percent = 0.01 * count
cta = count
warp = count
wavefront = count
thread = count
reg32 = count
vgpr = count
lane = count
bank = count
instruction = count
"""

# One row per dimension: what a person reads in an error about a wrong unit.
_EXAMPLES = {
    "B/s": "4.8 TB/s",
    "B": "60 MB or 50 MiB",
    "FLOP/s": "989 TFLOP/s",
    "OP/s": "1979 TOP/s",
    "FLOP": "137 GFLOP",
    "s": "2.5 us",
    "Hz": "1.98 GHz",
    "cycle": "420 cycle",
    "W": "700 W",
}
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*", re.DOTALL)
_DECIMAL_PREFIXES = {-12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY_PREFIXES = (("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
_PREFIXED = frozenset({"B", "B/s", "FLOP", "FLOP/s", "OP/s", "s", "Hz", "W", "B/W"})
_BARE = frozenset({"", "count", "ratio"})
_NAMES = (
    "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "B/s", "kB/s", "MB/s", "GB/s", "TB/s", "GiB/s", "TiB/s",
    "FLOP", "GFLOP", "TFLOP", "FLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s", "TFLOPS", "OP/s", "TOP/s", "TOPS",
    "s", "ms", "us", "ns", "Hz", "kHz", "MHz", "GHz", "cycle", "W", "kW", "count", "ratio", "percent", "cta", "warp",
    "thread", "reg32", "vgpr",
)


@lru_cache(maxsize=1)
def _registry() -> UnitRegistry[Any]:
    from pint import UnitRegistry

    registry: UnitRegistry[Any] = UnitRegistry(None)
    registry.load_definitions([line for line in _DEFINITIONS.splitlines() if line.strip()])
    return registry


@lru_cache(maxsize=512)
def unit_factor(unit: str, target: str) -> float:
    """Return how many `target` one `unit` is (1 TB/s = 1e12 B/s); InputError if unknown or of another dimension."""
    if unit == target:
        return 1.0
    registry = _registry()
    text = "percent" if unit == "%" else unit
    try:
        parsed = registry.parse_units(text)
    except Exception as error:  # pint raises many types for bad text, tokenizer errors included
        raise InputError(f"unknown unit '{unit}'{nearest_names(unit, _NAMES)}") from error
    wanted = registry.parse_units(target if target else "count")
    if parsed.dimensionality != wanted.dimensionality:
        example = f", for example '{_EXAMPLES[target]}'" if target in _EXAMPLES else ""
        raise InputError(f"unit '{unit}' has the wrong dimension: expected a unit like '{target or 'count'}'{example}")
    return float(registry.Quantity(1.0, parsed).to(wanted).magnitude)


def parse_quantity(text: str | float, unit: str) -> float:
    """Return `text` as a number of SI `unit`: "4.8 TB/s", "4.8TB/s", "2.5 us"; a bare number is already in `unit`.

    InputError for text that is no number, an unknown unit, another dimension, or a value that is not finite.
    """
    if isinstance(text, bool):
        raise InputError(f"'{text}' is not a number in {unit or 'count'}")
    if isinstance(text, int | float):
        value = float(text)
    else:
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise InputError(f"'{text}' is not a number with a unit{_like(unit)}")
        number, name = match.groups()
        value = _scaled(float(number), unit_factor(name, unit) if name else 1.0)
    if not math.isfinite(value):
        raise InputError(f"'{text}' is not a finite number{_like(unit)}")
    return value


def is_number(value: Any) -> bool:
    """Whether a value, text too, is a bare number without a unit."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _scaled(value: float, factor: float) -> float:
    """Return value * factor; a factor like 1e-6 is divided by instead, so that "2.5 us" is exactly 2.5e-6."""
    inverse = round(1.0 / factor)
    return value / inverse if inverse > 1 and 1.0 / inverse == factor else value * factor


def _like(unit: str) -> str:
    return f"; expected something like '{_EXAMPLES[unit]}'" if unit in _EXAMPLES else ""


def format_quantity(value: float, unit: str, binary: bool = True) -> str:
    """Return `value` (SI `unit`) for people, four significant digits and a fitting prefix: "4.8 TB/s", "1.43 ms".

    Byte counts that are exact in a binary prefix keep it ("126.5 MiB"), others get a decimal one ("60 MB"); with
    `binary` False all do, as where a rate in TB/s divides them.
    Units without prefixes (cycle, warp, …) are printed plain; counts and ratios without a unit.
    """
    if not math.isfinite(value):
        return f"{value} {unit}".strip()
    if unit in _BARE:
        return _four_digits(value)
    if unit not in _PREFIXED or value == 0:
        return f"{_four_digits(value)} {unit}"
    if unit == "B" and binary and (exact := _binary(value)):
        return exact
    rounded = float(f"{value:.4g}")  # first, so that 999.96 becomes 1 k and not 1000
    exponent = 3 * math.floor(math.log10(abs(rounded)) / 3 + 1e-12)
    exponent = min(max(exponent, min(_DECIMAL_PREFIXES)), max(_DECIMAL_PREFIXES))
    return f"{_four_digits(rounded / 10.0**exponent)} {_DECIMAL_PREFIXES[exponent]}{unit}"


def _binary(value: float) -> str:
    """Return `value` bytes in the largest binary prefix that four digits hold exactly; empty when none does."""
    for name, size in _BINARY_PREFIXES:
        scaled = value / size
        if scaled >= 1:
            return f"{_four_digits(scaled)} {name}" if float(f"{scaled:.4g}") == scaled else ""
    return ""


def _four_digits(value: float) -> str:
    """Four significant digits, without an exponent for whole numbers that a person would write out."""
    if value == int(value) and abs(value) < 1e9:
        return str(int(value))
    return f"{value:.4g}"
