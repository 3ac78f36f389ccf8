"""The command as a process: start-up cost, pipes, and what is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "kernelcast"]


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=120, check=False, **options
    )  # type: ignore[call-overload]
    return done


def test_predict_prints_one_document_and_nothing_else(stored: Path) -> None:
    done = run("predict", "gemm", "m=1024", "n=2048", "k=512", "precision=fp16", "-p", "t4", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["model"] == "kernelcast-t4@1"


def test_bad_input_is_a_message_on_standard_error(home: Path) -> None:
    done = run("predict", "gemm", "m=0", "n=1", "k=1", "-p", "h200")
    assert (done.returncode, done.stdout) == (2, "") and "at least 1" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="pipes close this way on POSIX only")
def test_a_reader_that_leaves_is_no_fault(home: Path) -> None:
    process = subprocess.Popen([*COMMAND, "platforms", "h200"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()  # as `| head -0` does
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0 and said == b""


LIGHT: dict[str, tuple[list[str], set[str]]] = {
    "--help": (["--help"], {"numpy", "pandas", "xgboost", "mlflow", "sklearn", "pint"}),
    "platforms": (["platforms"], {"pandas", "xgboost", "mlflow", "sklearn", "pint"}),
    "analytic prediction": (
        ["predict", "gemm", "m=64", "n=64", "k=64", "-p", "mi210", "--json"], {"mlflow", "matplotlib", "sqlalchemy"},
    ),
}


@pytest.mark.parametrize("case", LIGHT)
def test_what_a_command_does_not_import(home: Path, case: str) -> None:
    words, heavy = LIGHT[case]
    code = (
        "import sys\nfrom kernelcast.service.cli.main import status_of\n"
        f"status = status_of({words!r})\n"
        f"print(sorted({{m.partition('.')[0] for m in sys.modules}} & {heavy!r}), file=sys.stderr)\nsys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")
