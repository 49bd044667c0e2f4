"""``--limit N``: the first items of every task, under another name, and said to be no result."""

from __future__ import annotations

import pickle
from pathlib import Path

import yaml
from typer.testing import CliRunner

from medground.cli import app
from medground.commands.run import limited
from medground.config import parse_run_file
from medground.session import assemble

RUN = {
    "name": "whole",
    "benchmark": {"name": "xbench", "replicates": 0, "datasets": [{"name": "phantom", "cases": 9, "size": 64}]},
    "models": [{"name": "baseline_centre"}],
}


def test_a_trial_asks_the_first_items_in_a_folder_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(RUN))
    made = CliRunner().invoke(app, ["run", str(file), "--limit", "4", "--out", str(tmp_path / "runs")])
    assert made.exit_code == 0, made.output
    assert [p.name for p in (tmp_path / "runs").iterdir()] == ["whole-first-4"]
    config = yaml.safe_load((tmp_path / "runs/whole-first-4/run.yaml").read_text())
    assert config["first"] == 4
    assert "first 4 items of each task" in next((tmp_path / "runs/whole-first-4").rglob("summary.json")).read_text()


def test_tasks_are_cut_short_travel_and_the_summary_says_so(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEDGROUND_CACHE", str(tmp_path))
    whole = assemble(parse_run_file(RUN)).benchmark
    short = assemble(parse_run_file(RUN | {"first": 4})).benchmark
    (task,), (cut,) = whole.tasks(), short.tasks()
    assert [item.item_id for item in cut.items()] == [item.item_id for item in task.items()][:4]
    assert cut.path == task.path
    travelled = pickle.loads(pickle.dumps(cut))
    assert [item.item_id for item in travelled.items()] == [item.item_id for item in cut.items()]
    rows = {tuple(task.path): task.schema.to_frame()}
    assert "first 4 items" in short.summarise(rows).notes[0]


def test_the_name_of_a_trial_follows_the_overrides(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(RUN))
    assert limited(file, ["name=other"], 3) == ["name=other", "first=3", "name=other-first-3"]
    assert limited(file, ["a=b"], None) == ["a=b"]
