"""An `ncu` made of paper: it answers as Nsight Compute 2025.3 does on the command lines that `measure.counters` uses.

fake_ncu.py --query-metrics | … -o REPORT … --plan PLAN --journal JOURNAL … | --import REPORT --csv --page raw …
The kernels of a call and their counters are made up in `kernels`; the layout of the page is that of a real report.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on"
TENSOR = ("sm__ops_path_tensor_src_bf16_dst_fp32", "sm__ops_path_tensor_src_fp16", "sm__ops_path_tensor_src_int1")
RANGE = "PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
NAMES = ("ID", "Process ID", "Process Name", "Host Name", f"thread Domain:Push/Pop_Range:{RANGE}",
         f"Id:Domain:Start/Stop_Range:{RANGE}", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device",
         "CC", "device__attribute_l2_cache_size", "launch__uses_vgpu", "launch__tpc_enabled")


def kernels(line: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    """(name, counters) of a call: `triad` is n multiply-adds, `bmm` a tile padded to twice its work and a reduction."""
    sizes = json.loads(line["params"])
    if line["kernel"] == "triad":
        n = sizes["n"]
        return [("triad<float>(int, float *)", {"ffma": n, "dram__bytes_read": 8 * n, "dram__bytes_write": 4 * n})]
    work = sizes["batch"] * sizes["m"] * sizes["n"] * sizes["k"]
    return [("tile_kernel", {TENSOR[0]: 4 * work, "fadd": 100, "fmul": 50, "ffma": 25, "dram__bytes_read": 1e9}),
            ("splitKreduce", {"fadd": 1000, "dmul": 3, "dfma": 4, "hadd": 7, "dram__bytes_read": 5})]


def metrics(words: list[str]) -> list[str]:
    return words[words.index("--metrics") + 1].split(",")


def profile(words: list[str]) -> None:
    """The journal of the replayed program and, in place of a binary report, what `page` needs."""
    plan, journal = (Path(words[words.index(name) + 1]) for name in ("--plan", "--journal"))
    configs = json.loads(plan.read_text())["configs"]
    with journal.open("w") as stream:
        for config in configs:
            line = {"key": config["key"], "params": json.dumps(config["params"], separators=(",", ":")),
                    "kernel": config["family"], "implementation": config["implementation"],
                    "precision": config["precision"]}
            stream.write(json.dumps(line) + "\n")
    Path(words[words.index("-o") + 1]).write_text(json.dumps({"metrics": metrics(words), "journal": str(journal)}))


def page(report: Path) -> None:
    """The raw page: names, units, a row a kernel; thousands have separators, and each sum has its mean, most, least."""
    content = json.loads(report.read_text())
    wanted = [m.removesuffix(".sum") for m in content["metrics"] if m.endswith(".sum")]
    columns = [f"{name}.{kind}" for name in wanted for kind in ("avg", "max", "min", "sum")]
    others = [
        "launch__registers_per_thread",
        "launch__shared_mem_per_block_static",
        "sm__maximum_warps_per_active_cycle_pct",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
    ]
    print("==PROF== Connected to process 790")
    out = csv.writer(sys.stdout, quoting=csv.QUOTE_ALL)
    out.writerow([*NAMES, *columns, *others])
    units = ["byte" if "bytes" in c else "inst" if "inst" in c else "" for c in columns]
    out.writerow(["", *[""] * (len(NAMES) - 1), *units, "register/thread", "byte/block", "%", "%"])
    number = 0
    for text in Path(content["journal"]).read_text().splitlines():
        line = json.loads(text)
        for name, counted in kernels(line):
            full = {SASS.format(k) if k[0] in "fdh" and len(k) == 4 else k: v for k, v in counted.items()}
            cells = []
            for column in columns:
                base, _, kind = column.rpartition(".")
                value = full.get(base, 0.0)
                cells.append(f"{value:,.0f}" if kind == "sum" else f"{value / 132:,.2f}")
            start = f'790  "<default domain>:kc:{line["key"]}:none:none:none:none:none:none" '
            out.writerow([number, "790", "python3.12", "127.0.0.1", start, "", name, "1", "7", "(256, 1, 1)",
                          "(1024, 1, 1)", "0", "9.0", "62,914,560", "0", "all", *cells, "32", "1,024", "100",
                          "61.90"])
            number += 1


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if "--query-metrics" in arguments:
        sass = [SASS.format(f"{kind}{op}") for kind in "fdh" for op in ("add", "mul", "fma")]
        print("Device NVIDIA H200 (GH100)\n" + "\n".join(f"{m}  Counter  inst" for m in (*sass, *TENSOR)))
    elif "--import" in arguments:
        page(Path(arguments[arguments.index("--import") + 1]))
    else:
        profile(arguments)
