"""``medground compare``: which runs can be compared, and what is said where they cannot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from medground.commands.compare import WHOLE, compare_runs
from medground.commands.score import score_run
from medground.errors import ConfigError, RunError
from medground.session import run_file as run_a_file


@pytest.fixture
def runs(run_file: Path, tmp_path: Path) -> Path:
    run_a_file(run_file, out=tmp_path / "runs")
    return tmp_path / "runs"


def altered(tiny_manifest: Path, folder: Path, change: dict[str, str]) -> Path:
    """Copy a dataset with other words in its table."""
    shutil.copytree(tiny_manifest, folder)
    text = (tiny_manifest / "manifest.jsonl").read_text()
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "manifest.jsonl").write_text(text)
    return folder


def another(run_file: Path, runs: Path, root: Path) -> Path:
    where = f"benchmark.datasets.0={{name: manifest, root: {root}}}"
    run_a_file(run_file, ["name=other", where], out=runs)
    return runs / "other"


def test_the_models_of_one_run_are_compared_with_each_other(runs: Path) -> None:
    found = compare_runs(runs / "tiny")
    assert {(record["first"], record["second"]) for record in found.data["records"]} == {
        ("baseline_centre", "baseline_random")
    }
    assert {"pointing", "dice@best", "dice@crossfit", "auc"} <= {record["metric"] for record in found.data["records"]}
    assert compare_runs(runs / "tiny", runs / "tiny").data["records"] == found.data["records"]
    json.dumps(found.data, allow_nan=False)
    assert set(found.table["group"]) >= {"mean of groups"}


def test_across_runs_every_pair_is_compared_and_equal_labels_keep_apart(runs: Path, run_file: Path) -> None:
    run_a_file(run_file, ["name=again", "seed=1"], out=runs)
    found = compare_runs(runs / "tiny", runs / "again")
    pairs = {(record["first"], record["second"]) for record in found.data["records"]}
    assert len(pairs) == 6
    same = ("tiny:baseline_centre", "again:baseline_centre")
    wanted = {"first": same[0], "second": same[1], "metric": "pointing", "group": ""}
    (record,) = [r for r in found.data["records"] if wanted.items() <= r.items()]
    assert (record["difference"], record["p"]) == (0.0, 1.0)


def test_models_are_chosen_by_label_and_the_first_comes_first(runs: Path) -> None:
    found = compare_runs(runs / "tiny", models=["baseline_random", "baseline_centre"])
    assert {(r["first"], r["second"]) for r in found.data["records"]} == {("baseline_random", "baseline_centre")}
    with pytest.raises(ConfigError, match="no such model") as caught:
        compare_runs(runs / "tiny", models=["baseline_center"])
    assert "baseline_centre" in str(caught.value)
    with pytest.raises(RunError, match="no two models"):
        compare_runs(runs / "tiny", models=["baseline_centre"])


def test_runs_over_other_cases_share_nothing(runs: Path, run_file: Path, tiny_manifest: Path, tmp_path: Path) -> None:
    data = altered(tiny_manifest, tmp_path / "data", {'"case_id": "': '"case_id": "other '})
    with pytest.raises(RunError, match="share no item"):
        compare_runs(runs / "tiny", another(run_file, runs, data))


def test_cases_with_the_same_name_and_another_truth_are_told(
    runs: Path, run_file: Path, tiny_manifest: Path, tmp_path: Path
) -> None:
    data = altered(tiny_manifest, tmp_path / "data", {'"boxes": {"Mass": [[': '"boxes": {"Mass": [[0, 0, 9, 9], ['})
    with pytest.raises(RunError, match="another truth about the same case"):
        compare_runs(runs / "tiny", another(run_file, runs, data))


def test_another_reading_is_compared_beside_the_first(runs: Path) -> None:
    first = compare_runs(runs / "tiny")
    with pytest.raises(RunError, match="not read so") as caught:
        compare_runs(runs / "tiny", choice=("protocol", "medklip"))
    assert "--protocol medklip" in str(caught.value)
    score_run(runs / "tiny", "protocol", "medklip")
    other = compare_runs(runs / "tiny", choice=("protocol", "medklip"))
    assert other.data["settings"]["protocol"]["name"] == "medklip"
    values = [{(r["metric"], r["group"]): r["n"] for r in c.data["records"]} for c in (first, other)]
    assert set(values[0]) != set(values[1])
    assert compare_runs(runs / "tiny").data == first.data


def test_runs_under_other_protocols_are_refused(runs: Path, run_file: Path) -> None:
    run_a_file(run_file, ["name=other", "benchmark.protocol=medklip"], out=runs)
    with pytest.raises(RunError, match="another protocol"):
        compare_runs(runs / "tiny", runs / "other")


DIALOGUES = """
name: {name}
benchmark: {{name: cxreasondial, phantoms: 3, size: 64, judge: {judge}, allow_self_judge: true}}
models:
  - {{name: "medground.benchmarks.cxreasondial.baselines:AllNormal", label: normal}}
  - {{name: "medground.benchmarks.cxreasondial.baselines:Refuser", label: refuser}}
roles: {roles}
"""
SCENES = """
name: scenes
benchmark: {name: gridvqa_x, per_bucket: 2, replicates: 0, pictures: 0, explainers: [{name: emap}, {name: intershap}]}
models: [{name: gridvqa_rule}, {name: gridvqa_counter}]
"""


def ran(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    return run_a_file(file, out=tmp_path / "runs").folder


def test_runs_of_dialogues_are_compared_and_other_judges_refused(tmp_path: Path) -> None:
    own = ran(tmp_path, DIALOGUES.format(name="rules", judge="evidence", roles="{}"))
    found = compare_runs(own)
    faith = next(r for r in found.data["records"] if r["metric"] == "faithfulness")
    assert (faith["first"], faith["second"], faith["n_undefined"]) == ("normal", "refuser", 0)
    assert faith["difference"] > 0
    assert set(found.overall["group"]) == {WHOLE["all"]}
    judge = '{judges: [{name: "medground.benchmarks.cxreasondial.baselines:Parrot"}]}'
    other = ran(tmp_path, DIALOGUES.format(name="judged", judge="llm", roles=judge))
    with pytest.raises(RunError, match="under another judge"):
        compare_runs(own, other)


def test_a_run_of_scenes_is_compared_and_runs_of_other_benchmarks_are_refused(tmp_path: Path, runs: Path) -> None:
    folder = ran(tmp_path, SCENES)
    found = compare_runs(folder, models=["gridvqa_counter", "gridvqa_rule"])
    (record,) = found.data["records"]
    assert (record["metric"], record["dataset"], record["n"]) == ("accuracy", "pure", 38)
    assert record["difference"] < 0
    with pytest.raises(RunError, match="different benchmarks"):
        compare_runs(folder, runs / "tiny")
