"""Suites: YAML files that say which configurations to measure. The same file and seed give the same set anywhere."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ..analytic.errors import InputError, nearest_names
from .costs import effort, efforts

SEEDED = {"structure", "levels"}  # matrices, graphs, triangles: another seed is another input
CANDIDATES = 24  # drawn for every configuration; the one nearest the wanted effort is kept


@dataclass(frozen=True)
class Config:
    """One thing to measure: a family's implementation at a precision on given parameters (both cache states)."""

    family: str
    implementation: str
    precision: str
    params: Mapping[str, Any]
    unit: str  # configurations of one draw share inputs (a matrix, a graph) and are measured together
    seed: int

    @property
    def key(self) -> str:
        text = json.dumps([*self.kind, dict(self.params), self.seed], sort_keys=True)
        return hashlib.sha1(text.encode()).hexdigest()[:16]

    @property
    def identity(self) -> tuple[str, ...]:
        """What makes it a configuration: the seed counts only where the inputs themselves are drawn."""
        drawn = str(self.seed) if SEEDED & self.params.keys() else ""
        return (*self.kind, json.dumps(dict(self.params), sort_keys=True), drawn)

    @cached_property
    def effort(self) -> float:
        return effort(self.family, self.params)

    @property
    def kind(self) -> tuple[str, str, str]:
        return (self.family, self.implementation, self.precision)


def find_suite(name: str | Path) -> Path:
    """A suite by path or by the name of a file in configs/suites."""
    path = Path(name)
    if path.is_file():
        return path
    folder = Path(str(resources.files("kernelcast.configs"))) / "suites"
    packaged = folder / f"{name}.yaml"
    if packaged.is_file():
        return packaged
    known = [p.stem for p in folder.glob("*.yaml")]
    raise InputError(f"no suite {str(name)!r}{nearest_names(str(name), known)}")


def default_suite(platform_id: str) -> str:
    """The suite measured where none is named: the platform's own, else the H200's, which any GPU runs."""
    suites = Path(str(resources.files("kernelcast.configs"))) / "suites"
    return f"{platform_id}-full" if (suites / f"{platform_id}-full.yaml").is_file() else "h200-full"


def load_suite(name: str | Path, draw_seed: int | None = None) -> list[Config]:
    """All configurations of a suite, in the order in which they are measured; `draw_seed` replaces the file's seed.

    A suite `beside` another one leaves out what that one holds, so that their tables can be trained on together."""
    path = find_suite(name)
    try:
        return list(_load(path, path.read_text(), draw_seed))
    except OSError as error:
        raise InputError(f"{path}: not a readable suite: {error}") from error


@lru_cache(maxsize=8)  # drawing tens of thousands of configurations takes seconds
def _load(path: Path, text: str, draw_seed: int | None) -> tuple[Config, ...]:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not a readable suite: {error}") from error
    if isinstance(document, dict) and "subset_of" in document:
        return tuple(_subset(document))
    if not isinstance(document, dict) or not isinstance(document.get("draws"), list):
        raise InputError(f"{path}: a suite is a mapping with `seed` and a list `draws`")
    seed = int(document.get("seed", 0) if draw_seed is None else draw_seed)
    units: list[list[Config]] = []
    for index, entry in enumerate(document["draws"]):
        try:
            units += _draw(entry, index, seed)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: entry {index} ({entry.get('family')}): {error!r}") from error
        except InputError as error:
            raise InputError(f"{path}: entry {index}: {error}") from error
    order = np.random.default_rng(seed).permutation(len(units))
    chosen = {c.identity: c for u in order for c in units[u]}  # in the order of first appearance
    held = {c.identity for c in load_suite(document["beside"])} if "beside" in document else set()
    return tuple(c for identity, c in chosen.items() if identity not in held)


def _subset(document: Mapping[str, Any]) -> list[Config]:
    """`subset_of: <suite>`, `count`, `seed`: some configurations of another suite, to measure them once more.

    With `draw_seed` the other suite is drawn afresh first: configurations of the same kinds that it does not hold."""
    whole = load_suite(document["subset_of"], document.get("draw_seed"))
    chosen = np.random.default_rng(int(document.get("seed", 0))).permutation(len(whole))[: int(document["count"])]
    return [whole[i] for i in sorted(chosen)]


def _draw(entry: Mapping[str, Any], index: int, seed: int) -> Iterator[list[Config]]:
    rng = np.random.default_rng([seed, index])
    low, high = (float(v) for v in entry["effort"])
    count = int(entry["count"])
    steps = (np.arange(count) + rng.random(count)) / count
    for number, place in enumerate(rng.permutation(steps)):
        wanted = math.log(low) + place * (math.log(high) - math.log(low))
        nearest = _nearest(entry, rng, wanted)
        if nearest is None:
            continue
        params, found = nearest
        unit, unit_seed = f"{index}.{number}", int(rng.integers(2**31))
        chosen = [
            Config(v.get("family", entry["family"]), v["implementation"], v["precision"], params, unit, unit_seed)
            for v in entry["variants"]
            if rng.random() < float(v.get("share", 1.0))
            and float(v.get("min_effort", 0)) <= found <= float(v.get("max_effort", math.inf))
            and all(params[name] <= limit for name, limit in v.get("max", {}).items())
            and all(params[name] >= limit for name, limit in v.get("min", {}).items())
            and all(params[name] % step == 0 for name, step in v.get("multiple", {}).items())
        ]
        for config in chosen:
            if config.family == entry["family"]:
                vars(config)["effort"] = found  # known already: one at a time it would take as long again as drawing
        if chosen:
            yield chosen


def _nearest(entry: Mapping[str, Any], rng: np.random.Generator, wanted: float
             ) -> tuple[dict[str, Any], float] | None:
    """The parameters whose effort is nearest the wanted one (its logarithm), and their effort."""
    options = [_sample(entry["params"], rng) for _ in range(CANDIDATES)]
    low, high = (float(v) for v in entry["effort"])
    sizes = efforts(entry["family"], options)
    allowed = (sizes >= low * 0.5) & (sizes <= high)
    if not allowed.any():
        return None
    distance = np.where(allowed, np.abs(np.log(sizes) - wanted), np.inf)
    best = int(np.argmin(distance))
    return options[best], float(sizes[best])


def _sample(rules: Mapping[str, Mapping[str, Any]], rng: np.random.Generator) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for names, rule in rules.items():
        kinds = [k for k in SAMPLERS if k in rule]
        if len(kinds) != 1:
            raise ValueError(f"parameter {names} needs exactly one of {', '.join(SAMPLERS)}")
        value = SAMPLERS[kinds[0]](rule, rng, params)
        if "," in names:
            params.update(zip(names.split(","), value, strict=True))
        else:
            params[names] = value
    return params


def _log(rule: Mapping[str, Any], rng: np.random.Generator, _: Mapping[str, Any]) -> int:
    low, high = math.log(rule["log"][0]), math.log(rule["log"][1])
    value = math.exp(low + (high - low) * rng.random())  # what rng.uniform gives, in a tenth of its time
    multiples = rule.get("multiple", [1])
    multiple = int(multiples[rng.integers(len(multiples))]) if len(multiples) > 1 else int(multiples[0])
    return max(multiple, round(value / multiple) * multiple)


def _power(rule: Mapping[str, Any], rng: np.random.Generator, _: Mapping[str, Any]) -> int:
    low, high = rule["pow2"]
    return int(2 ** rng.integers(round(math.log2(low)), round(math.log2(high)) + 1))


def _choice(rule: Mapping[str, Any], rng: np.random.Generator, _: Mapping[str, Any]) -> Any:
    return rule["choice"][rng.integers(len(rule["choice"]))]


def _same(rule: Mapping[str, Any], _: np.random.Generator, params: Mapping[str, Any]) -> Any:
    return params[rule["same"]]


SAMPLERS = {"log": _log, "pow2": _power, "choice": _choice, "same": _same}
