"""What a suite would measure is said without a GPU, and a family is measured by one file of its own."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path

import pytest
from kernelcast.analytic import families as records
from kernelcast.analytic.errors import InputError
from kernelcast.measure import families
from kernelcast.measure.__main__ import main
from kernelcast.measure.costs import CONFIG_S, KIND_S, effort
from kernelcast.measure.dry import plan_suite
from kernelcast.service.cli.main import app
from typer.testing import CliRunner

SUITE = """
seed: 1
draws:
  - family: FAMILY
    count: 6
    effort: [1.0e+3, 1.0e+7]
    params: {n: {log: [256, 1.0e+6]}}
    variants:
      - {implementation: thread_element, precision: fp32}
      - {implementation: torch, precision: fp64}
"""
NEW = '''
from kernelcast.measure.case import Case, Measured


def build(gpu, params, precision):
    return Case(lambda: None, lambda: 0.0)


FAMILIES = (Measured("bloom_probe", {"thread_element": build, "torch": build}, lambda p: (0.0, 12.0 * p["n"])),)
'''


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "one.yaml"
    path.write_text(SUITE.replace("FAMILY", "relu"))
    return path


def test_a_dry_run_counts_kinds_configurations_rows_and_seconds(suite: Path) -> None:
    plan = plan_suite(suite)
    (relu,) = plan.families
    assert (relu.family, relu.implementations, relu.precisions) == ("relu", ("thread_element", "torch"),
                                                                   ("fp32", "fp64"))
    assert (plan.kinds, plan.configurations, plan.rows) == (2, 12, 24)  # 6 draws of 2 variants, cold and warm
    assert plan.seconds == pytest.approx(2 * KIND_S + 12 * CONFIG_S)
    assert 0.5e3 <= relu.smallest_byte < relu.largest_byte <= 1e7
    quick = plan_suite(suite, quick=True)
    assert (quick.kinds, quick.configurations) == (2, 4)


def test_a_dry_run_is_reached_from_both_commands(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--suite", str(suite), "--dry"]) == 0
    assert "12 configurations of 2 kinds, at most 24 rows" in capsys.readouterr().out
    result = CliRunner().invoke(app, ["measure", "--suite", str(suite), "--dry", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["rows"] == 24


def test_measuring_without_a_table_to_write_is_refused(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--suite", str(suite)]) == 2
    assert "--platform" in capsys.readouterr().err


def test_families_are_measured_in_the_file_of_their_record() -> None:
    """What stands in analytic/families/X.py is measured in measure/families/X.py."""
    names = [item.name for item in pkgutil.iter_modules(records.__path__)]
    homes = {record.name: name for name in names
             for record in importlib.import_module(f"{records.__name__}.{name}").FAMILIES}
    for name, item in families.MEASURED.items():
        builders = {builder.__module__.rpartition(".")[2] for builder in item.builders.values()}
        assert builders == {homes[name]}, name


def test_a_family_without_a_cost_is_as_large_as_its_work() -> None:
    assert families.MEASURED["triad"].cost is None
    assert effort("triad", {"n": 1000}) == 3 * 4.0 * 1000  # two arrays read, one written, 4 bytes a value


def test_a_new_family_is_a_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: Path) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "bloom.py").write_text(NEW)
    suite.write_text(SUITE.replace("FAMILY", "bloom_probe"))
    with pytest.raises(InputError, match="bloom_probe"):
        plan_suite(suite)
    for name in ("MEASURED", "BUILDERS"):
        monkeypatch.setattr(families, name, dict(getattr(families, name)))
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(folder)])
    families.find()
    assert ("bloom_probe", "torch") in families.BUILDERS
    plan = plan_suite(suite)
    assert [item.family for item in plan.families] == ["bloom_probe"]
    assert plan.families[0].largest_byte == 12.0 * max(c.params["n"] for c in families_configs(suite))


def families_configs(suite: Path) -> list:
    from kernelcast.measure.suite import load_suite

    return load_suite(suite)
