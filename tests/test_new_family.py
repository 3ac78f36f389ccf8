"""A kernel family from outside: a file of one name in each folder of families, and nothing else is touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RECORD = '''
import numpy as np

from ..work import Family, Param, make_work


def _rotate(a, byte):
    size = a["rows"] * a["cols"]
    return make_work(0.0, size * byte, size * byte, threads=size)


FAMILIES = (
    Family("rotate_rows", (Param("rows", meaning="rows", unit="rows"), Param("cols", meaning="columns", unit="columns"),
                           Param("way", "text", required=False, meaning="where to", words=("left", "right"))),
           _rotate, "memory", meaning="each row rotated by one", example={"rows": 4096, "cols": 4096, "way": "left"},
           statistics=("way",), asked_without=(("way",),)),
)
'''
COLUMNS = '''
import numpy as np

from ..numbers import log2


def edge(a, base, byte, platform):
    return {"log2_edge_share": log2(1.0 / np.asarray(a["cols"]))}


COLUMNS = {"rotate_rows": edge}
'''
MEASURED = '''
from ..case import Case, Measured


def build(gpu, params, precision):
    return Case(lambda: None, lambda: 0.0)


FAMILIES = (Measured("rotate_rows", {"mine": build}),)
'''
SUITE = """
seed: 1
draws:
  - family: rotate_rows
    count: 6
    effort: [1.0e+6, 1.0e+8]
    params: {rows: {log: [256, 8192]}, cols: {log: [256, 8192]}}
    variants: [{implementation: mine, precision: fp32}]
"""
PLACES = {"analytic": RECORD, "features": COLUMNS, "measure": MEASURED}
"""What a new family puts into which folder."""

USE = '''
import json, sys
from importlib import import_module

for folder in sys.argv[2:]:
    package = import_module(f"kernelcast.{folder}.families")
    package.__path__.append(f"{sys.argv[1]}/{folder}")
    package.find()

import kernelcast as kc
import numpy as np
import pandas as pd
from kernelcast.features.describe import describe
from kernelcast.training.hybrid.fit import fit_model

said = {"rows": 4096, "cols": 8192, "way": "LEFT"}
alone = kc.predict("rotate_rows", platform="h200", analytic=True, **said)
try:
    kc.predict("rotate_rows", platform="h200", **said | {"way": "up"})
    refused = ""
except kc.InputError as fault:
    refused = str(fault)

draw = np.random.default_rng(0)
sizes = 2.0 ** draw.integers(6, 13, (240, 2))
runs = pd.DataFrame({
    "platform": "h200", "kernel": "rotate_rows", "precision": "fp32", "implementation": "mine", "cache": "warm",
    "params": [json.dumps({"rows": int(r), "cols": int(c), "way": "left"}) for r, c in sizes],
    "group": [f"g{i}" for i in range(240)],
})
# three times the analytic time and a tenth of noise, made up
runs["time_s"] = 3.0 * describe(runs).baseline_s * np.exp(0.1 * draw.standard_normal(240))
model = fit_model(runs, quick=True)
learned = kc.predict("rotate_rows", platform="h200", model=model, implementation="MINE", **said)
from kernelcast.measure.dry import plan_suite

plan = plan_suite(f"{sys.argv[1]}/suite.yaml")
print(json.dumps({
    "planned": [plan.families[0].family, plan.configurations, plan.rows],
    "alone": alone.predicted_s, "refused": refused, "way": alone.params["way"],
    "columns": list(model.families["rotate_rows"].encoder.names), "learned": learned.predicted_s,
    "base": learned.baseline_s, "upper": learned.upper_s, "note": learned.note,
    "record": kc.families("rotate_rows"),
}))
'''


def test_a_family_from_outside_is_predicted_trained_and_measured_dry(tmp_path: Path) -> None:
    import json

    for folder, text in PLACES.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rotation.py").write_text(text)
    (tmp_path / "suite.yaml").write_text(SUITE)
    done = subprocess.run([sys.executable, "-c", USE, str(tmp_path), *PLACES], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    # 2 * 4096 * 8192 * 4 B = 268 MB at 4.8e12 B/s take 56 µs; twice that at most
    assert 50e-6 < found["alone"] < 120e-6
    assert found["way"] == "left" and "'way' is 'up' (valid: left, right)" in found["refused"]
    assert "log2_edge_share" in found["columns"]
    assert found["planned"] == ["rotate_rows", 6, 12]  # six draws, each cold and warm
    assert 2.5 < found["learned"] / found["base"] < 3.5 and found["upper"] > found["learned"]
    assert "taken for" not in found["note"] and "not in training" not in found["note"]
    assert found["record"]["parameters"][2]["words"] == ["left", "right"]
    assert found["record"]["example"]["command"].startswith("kernelcast predict rotate_rows rows=4096 cols=4096")
