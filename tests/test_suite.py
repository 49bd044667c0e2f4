"""A suite: every model asked what it can, the rest said, resumable as one, one trust report, limits that exit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from medground.errors import ConfigError, RunError
from medground.reporting.report import write_report
from medground.suite import Suite, parts_of, read_suite, run_suite, suite_of


@pytest.fixture
def spec(tiny_manifest: Path) -> dict[str, Any]:
    grid = {"name": "gridvqa_x", "per_bucket": 2, "pictures": 0, "replicates": 20, "explainers": [{"name": "emap"}]}
    return {
        "name": "small",
        "benchmarks": [
            {"name": "xbench", "replicates": 20, "datasets": [{"name": "manifest", "root": str(tiny_manifest)}]},
            grid,
        ],
        "models": [{"name": "baseline_centre"}, {"name": "gridvqa_rule"}, {"name": "gridvqa_counter", "label": "twin"}],
        "engine": {"chunk": 64, "workers": 0, "torch_threads": 1},
    }


def suite(spec: dict[str, Any], **changes: Any) -> Suite:
    return suite_of(spec | changes, Path())


def test_every_model_is_asked_what_it_can(spec: dict[str, Any]) -> None:
    xbench, grid = suite(spec).parts
    assert [m.label for m in xbench.run.models] == ["baseline_centre"]
    assert [m.label for m in grid.run.models] == ["gridvqa_rule", "twin"]
    assert xbench.left_out == {"gridvqa_rule": ("ground",), "twin": ("ground",)}
    assert grid.left_out == {"baseline_centre": ("logits",)}
    assert (xbench.run.name, grid.run.name) == ("small-xbench", "small-gridvqa_x")


def test_models_of_one_benchmark_may_be_named(spec: dict[str, Any]) -> None:
    spec["benchmarks"][1]["models"] = ["twin"]
    assert [m.label for m in suite(spec).parts[1].run.models] == ["twin"]
    spec["benchmarks"][1]["models"] = ["tvin"]
    with pytest.raises(ConfigError, match="no model 'tvin'") as caught:
        suite(spec)
    assert "twin" in str(caught.value.fix)


def test_what_nobody_can_be_asked_is_said(spec: dict[str, Any]) -> None:
    made = suite(spec, models=[{"name": "baseline_centre"}])
    assert ([part.label for part in made.parts], made.unasked) == (["xbench"], ("gridvqa_x",))


@pytest.mark.parametrize(
    "changes",
    [
        {"benchmarks": []},
        {"benchmarks": {"name": "xbench"}},
        {"benchmark": {"name": "xbench"}},
        {"models": None},
        {"name": 3},
        {"surplus": 1},
        {"limits": [{"metric": "auc"}]},
    ],
)
def test_what_is_no_suite_is_refused(spec: dict[str, Any], changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        suite(spec, **changes)


def test_a_suite_runs_resumes_and_gives_one_trust_report(spec: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(yaml.safe_dump(spec))
    first = run_suite(read_suite(file), tmp_path / "runs")
    again = run_suite(read_suite(file), tmp_path / "runs")
    assert [label for label, _ in first.parts] == ["xbench", "gridvqa_x"]
    assert all(report.reused == report.chunks for _, report in again.parts)
    assert [r.summary.to_json() for _, r in first.parts] == [r.summary.to_json() for _, r in again.parts]
    path = write_report([first.folder])
    html = path.read_text()
    assert path == first.folder / "report.html"
    assert "Not asked: gives no scores to answers" in html
    assert "Not asked: gives no maps" in html
    assert (first.folder / "report-details.html").exists()


def test_limits_have_an_exit_code(spec: dict[str, Any], tmp_path: Path) -> None:
    spec["benchmarks"] = spec["benchmarks"][:1]
    for limit, code in (({"at_least": 0}, 5), ({"model": "baseline_centre", "at_most": 100}, 0)):
        file = tmp_path / "suite.yaml"
        file.write_text(yaml.safe_dump(spec | {"limits": [{"metric": "auc", **limit}]}))
        command = [sys.executable, "-m", "medground", "-q", "run", str(file), "--out", str(tmp_path / "runs")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert "auc" in done.stdout


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"format": 9, "parts": []}', '{"format": 1, "parts": [{"label": "../x"}]}']
)
def test_a_damaged_list_of_parts_is_named(tmp_path: Path, content: str) -> None:
    assert parts_of(tmp_path) == {}
    (tmp_path / "suite.json").write_text(content)
    with pytest.raises(RunError, match="damaged"):
        parts_of(tmp_path)


def test_the_list_of_parts_says_what_could_not_be_asked(spec: dict[str, Any], tmp_path: Path) -> None:
    listed = {
        "format": 1,
        "name": "small",
        "unasked": [],
        "parts": [{"label": "xbench", "left_out": {"twin": ["ground"]}}],
    }
    (tmp_path / "suite.json").write_text(json.dumps(listed))
    assert parts_of(tmp_path) == {tmp_path / "xbench": {"twin": ("ground",)}}


def test_the_example_is_a_suite_whose_models_are_all_asked_something() -> None:
    made = read_suite(Path(__file__).parents[1] / "examples" / "phantom_suite.yaml")
    assert not made.unasked
    asked = {model.label for part in made.parts for model in part.run.models}
    assert {"reference", "small chat", "reasons", "counts"} <= asked
    assert made.parts[2].left_out["reference"] == ("reply",)
