"""The arrows of the architecture: who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "medground"
LEAVES = {"errors", "escaping", "identity", "spending"}
ALLOWED: dict[str, set[str]] = {
    "metrics": LEAVES,
    "imaging": LEAVES,
    "tables": LEAVES,
    "worlds": LEAVES | {"metrics", "imaging", "tables", "paths"},
    "datasets": LEAVES | {"metrics", "imaging", "tables", "worlds", "paths"},
    "importing": LEAVES | {"tables"},
    "models": LEAVES | {"metrics", "imaging", "tables", "worlds", "paths"},
    "tools": LEAVES | {"metrics", "imaging", "worlds"},
    "readers": LEAVES | {"models.base", "paths"},
    "judges": LEAVES | {"metrics", "models.base", "readers", "tools", "paths"},
    "explainers": LEAVES | {"metrics", "imaging", "paths", "models.base"},
    "training": LEAVES | {"metrics", "imaging", "tables", "worlds", "paths", "models", "datasets"},
    "verification": LEAVES | {"metrics", "imaging", "tables", "worlds", "paths", "models", "registry"},
    "benchmarks": LEAVES
    | {
        "metrics",
        "imaging",
        "tables",
        "worlds",
        "paths",
        "models",
        "datasets",
        "explainers",
        "tools",
        "readers",
        "judges",
    },
    "storage": LEAVES,
    "running": LEAVES | {"storage", "benchmarks.base", "benchmarks.requests", "benchmarks.results"},
}


def imported(path: Path) -> set[str]:
    """Return the modules of medground that a file imports anywhere, without the leading package."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: relative import"
            continue
        found |= {name.removeprefix("medground.") for name in names if name.startswith("medground.")}
    return found


def test_there_is_something_to_hold() -> None:
    assert {p.name for p in SOURCE.iterdir() if p.is_dir()} >= {"metrics", "imaging", "worlds", "models", "running"}
    assert any(imported(p) for p in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    allowed = ALLOWED[package] | {package}
    for path in (SOURCE / package).rglob("*.py"):
        for name in imported(path):
            inside = any(name == a or name.startswith(f"{a}.") for a in allowed)
            # `from medground.models import base` names the package on the way to the module.
            on_the_way = any(a.startswith(f"{name}.") for a in allowed)
            assert inside or on_the_way, f"{path.relative_to(SOURCE)} imports medground.{name}"


def test_importing_medground_loads_nothing_heavy() -> None:
    heavy = "torch transformers polars numba scipy plotly pydantic pydicom PIL numpy rich typer"
    code = f"import medground, sys; print([m for m in {heavy.split()!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    heavy = "torch transformers polars numba scipy plotly pydicom"
    code = (
        "import sys; sys.argv = ['medground', '--help']\n"
        "from medground.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"print('loaded', [m for m in {heavy.split()!r} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip().splitlines()[-1] == "loaded []"


def test_the_public_names_are_what_they_say() -> None:
    import medground

    for name in medground.__all__:
        assert getattr(medground, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        medground.nonsense  # noqa: B018  (the access is the test)
