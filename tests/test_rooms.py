"""Nothing outside a benchmark's rooms knows it by name, and no package enters another's private modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "medground"
BENCHMARKS = sorted(p.name for p in (SOURCE / "benchmarks").iterdir() if (p / "__init__.py").exists())
ROOMS = ("benchmarks", "reporting")
"""A benchmark's folder in these may name it, and no other file of them."""
SHARED = sorted(p.relative_to(SOURCE).as_posix() for p in SOURCE.iterdir() if p.suffix == ".py" or p.is_dir())
"""Files and packages: none may know any benchmark by name."""
DATA = {
    "commands/demo.py",  # a run file
}
"""Files that are data; models and worlds of a benchmark say whose they are."""
OF_MODELS = ("models", "training", "worlds")


def files_of(place: str) -> Iterator[Path]:
    root = SOURCE / place
    for path in [root] if root.suffix else sorted(root.rglob("*.py")):
        parts = path.relative_to(SOURCE).parts
        room = parts[0] in ROOMS and len(parts) > 2 and parts[1] in BENCHMARKS
        if not room and "/".join(parts) not in DATA:
            yield path


def docstrings(tree: ast.AST) -> set[int]:
    """Return the ids of the constants that document something: they may give an example."""
    found = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                found.add(id(statement.value))
    return found


def named(path: Path) -> set[str]:
    """Return the benchmarks that a file imports from, or names in a string of its code."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = docstrings(tree)
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
    ]
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    words = {word for text in texts for word in text.replace("/", " ").replace(".", " ").split()}
    entered = {part for module in modules if ".benchmarks." in module for part in module.split(".")}
    return {name for name in BENCHMARKS if name in words | entered}


def test_there_are_benchmarks_and_shared_files() -> None:
    assert {"xbench", "gridvqa_x"} <= set(BENCHMARKS)
    assert sum(1 for package in SHARED for _ in files_of(package)) > 60


@pytest.mark.parametrize("place", [place for place in SHARED if place not in OF_MODELS])
def test_nothing_shared_names_a_benchmark(place: str) -> None:
    for path in files_of(place):
        assert not named(path), f"{path.relative_to(SOURCE)} names {', '.join(named(path))}"


@pytest.mark.parametrize("place", SHARED)
def test_nothing_shared_enters_a_benchmark(place: str) -> None:
    for path in files_of(place):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        modules += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        entered = [m for m in modules if any(f".{room}.{name}" in m for room in ROOMS for name in BENCHMARKS)]
        assert not entered, f"{path.relative_to(SOURCE)} imports {', '.join(entered)}"


def test_what_is_data_is_there_and_names_one() -> None:
    assert all(named(SOURCE / name) for name in DATA)


def test_no_capability_is_guessed() -> None:
    """What a benchmark can do stands in its doors; nobody looks for its methods."""
    for place in ("commands", "running", "reporting", "benchmarks", "session.py", "suite.py"):
        for path in files_of(place):
            calls = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Call)]
            guessed = [n.lineno for n in calls if isinstance(n.func, ast.Name) and n.func.id == "hasattr"]
            assert not guessed, f"{path.relative_to(SOURCE)}, line {guessed[0]}: hasattr"


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_enters_another_benchmark_s(room: str) -> None:
    for name in BENCHMARKS:
        for path in sorted((SOURCE / room / name).rglob("*.py")) if (SOURCE / room / name).is_dir() else []:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
            others = {
                other
                for module in modules
                for other in BENCHMARKS
                if other != name and (f".benchmarks.{other}" in module or f".reporting.{other}" in module)
            }
            assert not others, f"{path.relative_to(SOURCE)} enters {', '.join(others)}"


def test_no_package_enters_another_s_private_modules() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        package = path.relative_to(SOURCE).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("medground."):
                continue
            parts = (node.module or "").split(".")[1:]
            private = [p for p in (*parts, *(a.name for a in node.names)) if p.startswith("_") and p != "__version__"]
            assert not private or parts[0] == package, f"{path.relative_to(SOURCE)} enters {node.module}: {private}"
