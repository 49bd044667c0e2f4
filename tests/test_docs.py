"""The documentation is run: every complete example is taken from its page and used as a reader would use it."""

from __future__ import annotations

import ast
import csv
import doctest
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def named(page: Path, language: str, name: str) -> str:
    """Return the block whose first line names a file."""
    (found,) = [b for b in blocks(page, language) if b.startswith(f"# {name}\n")]
    return found


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the working directory, and from which modules are imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("my_lab", "my_model", "my_dataset", "my_metric"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def medground(*arguments: str, cwd: Path) -> str:
    """Run a command as a reader does."""
    command = [sys.executable, "-m", "medground", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_ten_line_model_of_the_readme_runs(workplace: Path, tiny_manifest: Path) -> None:
    (workplace / "my_lab.py").write_text(named(ROOT / "README.md", "python", "my_lab.py"))
    run = {
        "name": "ten",
        "benchmark": {
            "name": "xbench",
            "replicates": 20,
            "datasets": [{"name": "manifest", "root": str(tiny_manifest)}],
        },
        "models": [{"name": "my_lab:Brightness"}],
    }
    (workplace / "run.yaml").write_text(yaml.safe_dump(run))
    medground("validate", "run.yaml", cwd=workplace)
    out = json.loads(medground("run", "run.yaml", "--json", cwd=workplace))
    pointing = [c for c in out["summary"]["cells"] if c["metric"] == "pointing" and c["scope"] == "pairs"]
    # Its boxes are the brightest thing in the drawn pictures.
    assert pointing[0]["value"] > 0.5


def test_the_pytorch_model_of_the_guide_runs(workplace: Path, tiny_manifest: Path) -> None:
    from safetensors.torch import save_file

    page = ROOT / "docs" / "adding.md"
    (workplace / "my_model.py").write_text(named(page, "python", "my_model.py"))
    text = named(page, "yaml", "my_model.yaml").replace("DATA", str(tiny_manifest))
    (workplace / "my_model.yaml").write_text(text)
    module = importlib.import_module("my_model")
    save_file(module.Network().state_dict(), workplace / "my_model.safetensors")
    out = json.loads(medground("run", "my_model.yaml", "--json", cwd=workplace))
    (task,) = out["summary"]["data"]["tasks"]
    assert (task["model"], task["pairs"], task["cases_failed"]) == ("OurModel", 12, 0)


def test_the_dataset_of_the_guide_reads(workplace: Path, tiny_manifest: Path) -> None:
    (workplace / "my_dataset.py").write_text(named(ROOT / "docs" / "adding.md", "python", "my_dataset.py"))
    (workplace / "images").mkdir()
    (workplace / "images/case01.png").write_bytes((tiny_manifest / "case01.png").read_bytes())
    with (workplace / "boxes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["image", "finding", "x0", "y0", "x1", "y1"], ["case01.png", "Mass", 1, 2, 30, 40]])
    run = {
        "name": "own",
        "benchmark": {"name": "xbench", "replicates": 0, "datasets": [{"name": "my_dataset:OurDataset", "root": "."}]},
        "models": [{"name": "baseline_centre"}],
    }
    (workplace / "run.yaml").write_text(yaml.safe_dump(run))
    out = json.loads(medground("run", "run.yaml", "--json", cwd=workplace))
    assert out["summary"]["data"]["tasks"][0]["pairs"] == 1


def test_the_metric_of_the_guide_is_right(workplace: Path) -> None:
    (workplace / "my_metric.py").write_text(named(ROOT / "docs" / "adding.md", "python", "my_metric.py"))
    module = importlib.import_module("my_metric")
    assert doctest.testmod(module).failed == 0
    assert module.energy_inside(np.zeros((2, 2)), np.ones((2, 2))).reason == "no positive saliency"


def test_the_metric_over_counts_of_the_guide_runs(workplace: Path, tiny_manifest: Path) -> None:
    (workplace / "my_counts.py").write_text(named(ROOT / "docs" / "adding.md", "python", "my_counts.py"))
    run = {
        "name": "counted",
        "benchmark": {
            "name": "xbench",
            "replicates": 0,
            "datasets": [{"name": "manifest", "root": str(tiny_manifest)}],
        },
        "models": [{"name": "baseline_all_foreground"}],
        "roles": {"metrics": [{"name": name} for name in ("precision", "recall", "my_counts:Marked")]},
    }
    (workplace / "run.yaml").write_text(yaml.safe_dump(run))
    out = json.loads(medground("run", "run.yaml", "--json", cwd=workplace))
    cells = {c["metric"]: c["value"] for c in out["summary"]["cells"] if c["scope"] == "pairs"}
    assert cells["marked"] == cells["recall"] == 1.0
    assert 0 < cells["precision"] == cells["iou_floor"] < 1


def test_the_reference_of_the_run_file_is_up_to_date() -> None:
    from medground.commands.run_file_page import run_file_reference

    assert (ROOT / "docs" / "run_file.md").read_text() == run_file_reference()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_prompts_show_what_they_print(page: Path) -> None:
    text = page.read_text()
    if re.search(r"^>>>", text, re.MULTILINE):
        tests = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(tests).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_that_are_shown_exist(page: Path) -> None:
    from medground.cli import app

    known = {c.name or c.callback.__name__ for c in app.registered_commands} | {g.name for g in app.registered_groups}  # type: ignore[union-attr]  # every command has a callback
    shown = re.findall(r"^\$ medground (\w+)", page.read_text(), re.MULTILINE)
    assert set(shown) <= known


def test_every_page_stands_in_the_site() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    listed = [page for entry in site["nav"] for page in _pages(entry)]
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))
    assert site["theme"]["font"] is False  # it would come from the network
    assert not any(key in site for key in ("extra_css", "extra_javascript"))


def _pages(entry: object) -> list[str]:
    if isinstance(entry, dict):
        return [page for inner in entry.values() for page in _pages(inner)]
    return [page for inner in entry for page in _pages(inner)] if isinstance(entry, list) else [str(entry)]


def test_the_reference_names_what_the_package_offers() -> None:
    import medground

    page = (ROOT / "docs" / "reference.md").read_text()
    for name in set(medground.__all__) - {"__version__"}:
        module = getattr(medground, name).__module__
        assert f"::: {module}.{name}" in page or f"::: {module}\n" in page, name


def test_no_message_points_into_a_checkout() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text())
        told = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}  # documentation may
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
                pointing = re.search(r"\bdocs/\w+\.md|\btests/|\bexamples/", node.value)
                assert pointing is None or path.name == "run_file_page.py", f"{path}: {node.value}"
