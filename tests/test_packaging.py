"""What is in the repository is in the package, and the README's commands are those that run."""

from __future__ import annotations

import tomllib
from pathlib import Path

import kernelcast

ROOT = Path(kernelcast.__file__).parent


def test_every_folder_of_code_is_listed() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    hidden = (".", "bench", "build", "dist", "tests")
    found = {
        ".".join(["kernelcast", *path.parent.relative_to(ROOT).parts])
        for path in ROOT.rglob("__init__.py")
        if not path.relative_to(ROOT).parts[0].startswith(hidden)
    }
    assert found == listed


def test_folders_import_only_from_their_left() -> None:
    """configs → analytic → features → training → registry; the command line is imported by nobody."""
    order = ["configs", "analytic", "features", "training", "registry", "service"]
    offences = []
    for place, folder in enumerate(order):
        for path in (ROOT / folder).rglob("*.py"):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                words = line.split()
                if not line[:1].isspace() and words[:1] == ["from"] and words[1].startswith("..") and len(words[1]) > 2:
                    target = words[1].lstrip(".").partition(".")[0]
                    if target == "cli" or (target in order and order.index(target) > place):
                        offences.append(f"{path.relative_to(ROOT)}:{number}: {line}")
    assert offences == []


def test_ci_runs_the_readme_commands() -> None:
    readme, script = (ROOT / "README.md").read_text(), (ROOT / ".ci" / "run").read_text()
    commands = [line for block in readme.split("```sh\n")[1:3] for line in block.split("```")[0].strip().splitlines()]
    first, second = commands
    assert first.endswith("&& .venv/bin/kernelcast demo")
    assert first.removesuffix(" && .venv/bin/kernelcast demo") in script
    assert script.rstrip().splitlines()[-1] == second == ".venv/bin/pytest"
