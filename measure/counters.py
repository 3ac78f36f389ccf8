"""Hardware counters with Nsight Compute: FLOP by precision, bytes by boundary, launch shape, for a sample of a suite.

The sample is replayed once a configuration under `ncu`; times come from the table, never from the profiler's run.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..analytic.errors import InputError, KernelcastError
from .case import Case
from .families import BUILDERS, measured
from .gpu import Gpu, Skip
from .rough import LATTICES
from .suite import Config

SAMPLE_BYTE = (3e4, 8e8)  # effort of the configurations that are counted; ncu saves all memory held, kernel by kernel
MANY_LAUNCHES = 12  # a kernel under ncu costs a quarter of a second: of longer calls only the shortest are counted
FEW_LAUNCHES = 2  # once every kind has been counted, only calls as short as this are
LAUNCH = (
    "launch__registers_per_thread", "launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic",
    "sm__maximum_warps_per_active_cycle_pct",
)
TRAFFIC = ("dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum")
OCCUPANCY = ("sm__warps_active.avg.pct_of_peak_sustained_active",)
# weight of an instruction in operations
SINGLE = {
    f"smsp__sass_thread_inst_executed_op_{kind}{name}_pred_on.sum": weight
    for kind in "fdh"
    for name, weight in (("add", 1.0), ("mul", 1.0), ("fma", 2.0))
}
# three in one, but a multiply-add counts once in them: instructions, not operations
SUMMED = {kind: f"smsp__sass_thread_inst_executed_ops_{kind}add_{kind}mul_{kind}fma_pred_on.sum" for kind in "fdh"}
INTEGER = "smsp__sass_thread_inst_executed_op_integer_pred_on.sum"
TENSOR = re.compile(r"^sm__ops_path_tensor_src_(?!int1$)[a-z0-9_]+$")
CACHES = ("cold", "warm")  # ncu flushes before every pass, or leaves the caches as the call before left them
FLUSH = {"cold": "all", "warm": "none"}
KEY = re.compile(r"kc:([0-9a-f]{16})")


@dataclass(frozen=True)
class Planned:
    """A configuration to count: its suite entry and, where the table already tells, its launches."""

    config: Config
    launches: int | None


def plan(configs: Sequence[Config], launches: Mapping[tuple[str, str, str, str], int], count: int) -> list[Planned]:
    """`count` configurations in turn over families, then kinds, then sizes, so that a cut-off run has of everything.

    `launches` by (family, implementation, precision, params text). Of a kind whose calls launch many kernels the
    smallest configurations are taken, and one only once it is known that they do: a longer call costs as much as many
    short ones and tells as little as one."""
    kinds: dict[tuple[str, str, str], list[Planned]] = {}
    usual = _usual_launches(launches)
    for config in configs:
        if SAMPLE_BYTE[0] <= config.effort <= SAMPLE_BYTE[1]:
            known = launches.get((*config.kind, params_text(config.params)), usual.get(config.kind))
            kinds.setdefault(config.kind, []).append(Planned(config, known))
    rank: dict[tuple[str, str, str], int] = {}
    seen: Counter[str] = Counter()
    for kind in sorted(kinds):
        rank[kind] = seen[kind[0]]
        seen[kind[0]] += 1
    queues = [_spread(kinds[kind]) for kind in sorted(kinds, key=lambda k: (rank[k], k))]
    chosen: list[Planned] = []
    for turn in range(max((len(q) for q in queues), default=0)):
        chosen += [q[turn] for q in queues if turn < len(q) and (turn == 0 or _short(q[turn], FEW_LAUNCHES))]
    return chosen[:count]


def _usual_launches(launches: Mapping[tuple[str, str, str, str], int]) -> dict[tuple[str, str, str], int]:
    """By kind: what half of its calls do not exceed. Stands in where inputs are drawn and parameters are theirs."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for (family, implementation, precision, _), number in launches.items():
        found.setdefault((family, implementation, precision), []).append(number)
    return {kind: int(np.median(numbers)) for kind, numbers in found.items()}


def _short(planned: Planned, most: int) -> bool:
    return planned.launches is None or planned.launches <= most


def _spread(group: list[Planned]) -> list[Planned]:
    """Middle, large, small, then the quarters …: every prefix spans the sizes. Many launches: smallest first."""
    ordered = sorted(group, key=lambda p: (p.config.effort, p.config.key))
    short = [p for p in ordered if p.launches is not None and p.launches <= MANY_LAUNCHES]
    unknown = measured(ordered[0].config.family).launches_vary
    if unknown or (not short and any(p.launches is not None for p in ordered)):
        return [p for p in ordered if p.config.params.get("structure") not in LATTICES][:3]
    ordered = short or ordered
    places, step = [0.5, 0.95, 0.1], 0.125
    while len(places) < len(ordered) and step > 1e-4:
        places += list(np.arange(step, 1.0, 2 * step))
        step /= 2
    picks = dict.fromkeys(min(len(ordered) - 1, int(place * len(ordered))) for place in places)
    picks |= dict.fromkeys(range(len(ordered)))  # two places may name one size: then one is still missing
    return [ordered[i] for i in picks]


def params_text(params: Any) -> str:
    """Parameters as the table writes them."""
    from .runner import plain

    return json.dumps(plain({k: v for k, v in params.items() if k != "seed"}), separators=(",", ":"))


def replay(gpu: Gpu, configs: Iterable[Config], journal: Path, budget_s: float) -> int:
    """Run under ncu: build every configuration, call it once unseen, then once between profiler start and stop.

    Writes a line a configuration; ends by itself at the budget, since ncu writes its report when we return."""
    begun, done = time.monotonic(), 0
    gpu.forget()
    profiler, nvtx = gpu.torch.cuda.profiler, gpu.torch.cuda.nvtx
    with journal.open("w") as stream:
        for config in configs:
            if time.monotonic() - begun > budget_s:
                break
            line: dict[str, Any] = {"key": config.key}
            case: Case | None = None
            try:
                gpu.seed(config.seed)
                builder = BUILDERS[(config.family, config.implementation)]
                case = builder(gpu, {**config.params, "seed": config.seed}, config.precision)
                _twice(gpu, profiler, nvtx, case, config.key)
                line["params"] = params_text(case.params or config.params)
            except Skip as error:
                line["skip"] = str(error)
            except Exception as error:
                line["skip"] = f"{type(error).__name__}: {str(error)[:200]}"
            line |= {"kernel": config.family, "implementation": config.implementation, "precision": config.precision}
            stream.write(json.dumps({**line, "at_s": round(time.monotonic() - begun, 2)}) + "\n")
            stream.flush()
            case = None
            gpu.forget()  # what is held is saved and restored around every counted kernel
            done += 1
    return done


def _twice(gpu: Any, profiler: Any, nvtx: Any, case: Case, key: str) -> None:
    for counted in (False, True):
        if case.reset:
            case.reset()
        gpu.sync()
        if counted:
            nvtx.range_push(f"kc:{key}")
            profiler.start()
        case.call()
        gpu.sync()
        if counted:
            profiler.stop()
            nvtx.range_pop()


def available_metrics(ncu: str, chip: str = "") -> set[str]:
    """Base names that this ncu knows (for the GPU present, or for `chip`)."""
    command = [ncu, "--query-metrics", *(("--chip", chip) if chip else ())]
    text = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout
    return {line.split()[0] for line in text.splitlines() if line[:1].isalpha() and line.split()}


def metrics_for(names: set[str], tensor: bool) -> list[str]:
    """What to collect. A pass more costs little beside what ncu needs to begin with each kernel."""
    chosen = [*LAUNCH, *TRAFFIC, *OCCUPANCY, *SINGLE, INTEGER]
    if tensor:
        chosen += [f"{name}.sum" for name in sorted(names) if TENSOR.match(name) and "sparsity" not in name]
    return chosen


def ncu_command(ncu: str, metrics: Sequence[str], cache: str, report: Path, program: Sequence[str]) -> list[str]:
    return [
        ncu, "--profile-from-start", "off", "--nvtx", "--clock-control", "none", "--cache-control", FLUSH[cache],
        "--metrics", ",".join(metrics), "-f", "-o", str(report), *program,
    ]


def save_plan(planned: Sequence[Planned], suite: str, platform_id: str, path: Path) -> None:
    """Write the sample, so that it is drawn once and replayed as often as counters need."""
    items = [{**asdict(p.config), "key": p.config.key} for p in planned]
    path.write_text(json.dumps({"suite": suite, "platform": platform_id, "configs": items}) + "\n")


def load_plan(path: Path) -> tuple[str, list[Config]]:
    """The platform and the configurations of a written sample. InputError if the file is not one."""
    try:
        document = json.loads(path.read_text())
        configs = [Config(**{k: v for k, v in item.items() if k != "key"}) for item in document["configs"]]
        return document["platform"], configs
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a plan of configurations to count: {error!r}") from None


def count(plan_file: Path, folder: Path, budget_s: float, say: Callable[[str], None] = print) -> list[Path]:
    """Replay a plan under ncu, cold and warm, within about `budget_s`; returns the CSV files, by group and cache state.

    Raises KernelcastError: no ncu, or ncu counted nothing."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise KernelcastError("counting needs Nsight Compute: no `ncu` on the path")
    platform_id, configs = load_plan(plan_file)
    folder.mkdir(parents=True, exist_ok=True)
    names = available_metrics(ncu)
    (folder / "metrics.txt").write_text("\n".join(sorted(names)) + "\n")
    groups: dict[str, list[Config]] = {"vector": [], "tensor": []}
    for config in configs:
        groups["tensor" if measured(config.family).tensor else "vector"].append(config)
    written = []
    for group, members in groups.items():
        part = folder / f"{group}.plan.json"
        save_plan([Planned(c, None) for c in members], "", platform_id, part)
        for cache in CACHES:
            share = budget_s * len(members) / len(configs) / len(CACHES)
            stem = folder / f"{group}-{cache}"
            program = [
                sys.executable, "-m", "kernelcast.measure.counted", "replay", "--plan", str(part),
                "--journal", f"{stem}.journal.jsonl", "--budget", f"{share:.0f}",
            ]
            written.append(_profile(ncu, metrics_for(names, group == "tensor"), cache, stem, program, say))
    return written


def _profile(
    ncu: str, metrics: list[str], cache: str, stem: Path, program: list[str], say: Callable[[str], None]
) -> Path:
    begun = time.monotonic()
    report = stem.with_name(f"{stem.name}.ncu-rep")
    with stem.with_name(f"{stem.name}.log").open("w") as log:
        subprocess.run(
            ncu_command(ncu, metrics, cache, report, program), stdout=log, stderr=subprocess.STDOUT, env=os.environ,
            check=False,
        )
    out = stem.with_name(f"{stem.name}.csv")
    command = [ncu, "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]
    _print(command, out)
    if not KEY.search(out.read_text()):  # an ncu without range columns can still put the range in the kernel's place
        _print([*command, "--print-nvtx-rename", "kernel"], out)
    say(f"{stem.name}: {max(0, len(out.read_text().splitlines()) - 2)} kernels, {time.monotonic() - begun:.0f} s")
    return out


def _print(command: list[str], out: Path) -> None:
    with out.open("w") as stream:
        subprocess.run(command, stdout=stream, stderr=subprocess.DEVNULL, check=False)
