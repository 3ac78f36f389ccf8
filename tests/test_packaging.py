"""What is in the repository is in the package, folders import from their left, and the README's commands are run."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import kernelcast

ROOT = Path(kernelcast.__file__).parent
OUTSIDE = (".", "build", "dist", "tests")
ORDER = ("configs", "analytic", "features", "training", "registry", "service")
MAY_IMPORT = {folder: set(ORDER[: place + 1]) for place, folder in enumerate(ORDER)}
MAY_IMPORT |= {
    "service": {*ORDER, "measure"},  # its command line offers measuring
    "measure": {"configs", "analytic", "features", "training", "measure"},  # runs on a GPU, knows the table format
    "bench": {*ORDER, "bench", ""},  # instruments: ask everything, the public face ("") too; nobody asks them
    "": {*ORDER},  # the public face, and `python -m kernelcast`
}
DOORS = {"kernelcast.__main__": "kernelcast.service.cli.main"}  # alone outside of it may import the command line


def modules(root: Path) -> dict[str, Path]:
    """Module name → file, for the package whose root is `root`."""
    found = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        if not parts[0].startswith(OUTSIDE):
            found[".".join(["kernelcast", *(parts[:-1] if parts[-1] == "__init__" else parts)])] = path
    return found


def imports(name: str, known: Mapping[str, Path]) -> Iterator[tuple[int, str]]:
    """(line, module of this package) of every import in a module, those in functions and for types among them.

    `__version__` is a word of the root, not its face: whoever writes a file says by which version."""
    package = name if known[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(known[name].read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, item.name) for item in node.names if item.name.split(".")[0] == "kernelcast")
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            if source.split(".")[0] != "kernelcast":
                continue
            for item in node.names:
                whole = f"{source}.{item.name}"
                if whole != "kernelcast.__version__":
                    yield node.lineno, whole if whole in known else source


def folder(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else ""


def offences(known: Mapping[str, Path]) -> list[str]:
    """Imports that go to the right, into nothing, an instrument, or the command line from outside of it."""
    found = []
    for name in sorted(known):
        for line, target in imports(name, known):
            if target not in known:
                found.append(f"{name}:{line} imports {target}, which is not there")
                continue
            command = target.startswith("kernelcast.service.cli")
            inside = name.startswith("kernelcast.service.cli") or DOORS.get(name) == target
            measuring = folder(target) == "measure" and folder(name) == "service" and not inside
            if folder(target) not in MAY_IMPORT[folder(name)] or (command and not inside) or measuring:
                found.append(f"{name}:{line} imports {target}")
    return found


def circle(known: Mapping[str, Path]) -> list[str]:
    """Modules that import each other in a circle, the first one found; none: empty."""
    graph = {name: {target for _, target in imports(name, known) if target in known and target != name}
             for name in known}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as fault:
        return list(fault.args[1])
    return []


def settings() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_folder_of_code_is_listed() -> None:
    """All but bench/, whose instruments stay out of the wheel."""
    listed = set(settings()["tool"]["setuptools"]["packages"])
    found = {
        ".".join(["kernelcast", *path.parent.relative_to(ROOT).parts])
        for path in ROOT.rglob("__init__.py")
        if not path.relative_to(ROOT).parts[0].startswith((*OUTSIDE, "bench"))
    }
    assert found == listed
    assert not any(name.startswith(("kernelcast.bench", "kernelcast.tests")) for name in listed)


def test_every_folder_of_code_has_its_place() -> None:
    assert {folder(name) for name in modules(ROOT)} == set(MAY_IMPORT)


def test_folders_import_only_from_their_left() -> None:
    """configs → analytic → features → training → registry → service, imports inside functions too."""
    assert offences(modules(ROOT)) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle(modules(ROOT)) == []


def test_an_import_to_the_right_is_seen_wherever_it_stands(tmp_path: Path) -> None:
    lines = {
        "analytic/one.py": "def late():\n    from ..training import two\n    return two\n",
        "training/two.py": "import os\nfrom .three import x\n",
        "training/three.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .two import y\nx = 1\n",
        "service/answer.py": "def ask():\n    from ..measure import gpu\n    from .cli.main import run\n",
        "service/cli/main.py": "from ...measure import gpu\nfrom ... import __version__\n",
        "measure/gpu.py": "import kernelcast.bench.ship\n",
        "bench/ship.py": "from ..training import three\nimport kernelcast\n",
        "__main__.py": "from .service.cli.main import run\n",
        "__init__.py": "",
    }
    for name, text in lines.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    known = modules(tmp_path)
    assert offences(known) == [
        "kernelcast.analytic.one:2 imports kernelcast.training.two",
        "kernelcast.measure.gpu:1 imports kernelcast.bench.ship",
        "kernelcast.service.answer:2 imports kernelcast.measure.gpu",
        "kernelcast.service.answer:3 imports kernelcast.service.cli.main",
    ]
    (tmp_path / "features").mkdir()
    (tmp_path / "features" / "four.py").write_text("def late():\n    from ..analytic.moved import x\n")
    gone = "kernelcast.features.four:2 imports kernelcast.analytic.moved, which is not there"
    assert gone in offences(modules(tmp_path))
    assert set(circle(known)) == {"kernelcast.training.two", "kernelcast.training.three"}


def test_ci_runs_the_readme_commands() -> None:
    """In a fresh environment, the checks first; the README's test command is the last, so its summary is the last line.

    The runner counts on two workers, said in the README's command: one test alone starts none."""
    readme, script = (ROOT / "README.md").read_text(), (ROOT / ".ci" / "run").read_text()
    commands = [line for block in readme.split("```sh\n")[1:3] for line in block.split("```")[0].strip().splitlines()]
    first, second = commands
    assert first.endswith("&& .venv/bin/kernelcast demo")
    install = first.removesuffix(" && .venv/bin/kernelcast demo")
    assert install == "python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]'"
    assert second == ".venv/bin/pytest -n 2"
    assert "-n" not in settings()["tool"]["pytest"]["ini_options"]["addopts"].split()
    lines = [line for line in script.splitlines() if line and not line.startswith("#")]
    wanted = ["rm -rf .venv", install, ".venv/bin/pip install -q -e '.[dev]'", ".venv/bin/ruff check",
              ".venv/bin/mypy", second]
    own = [line.replace(".venv", ".venv-ci") for line in wanted]  # an environment of its own: it is removed first
    assert lines == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', *own]
