"""``medground compare``: which runs can be compared, and what is said where they cannot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from medground.commands.compare import compare_runs
from medground.errors import RunError
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


def test_a_run_does_not_differ_from_itself(runs: Path) -> None:
    found = compare_runs(runs / "tiny", runs / "tiny")
    assert {record["difference"] for record in found.data["records"]} <= {0.0, None}
    assert {(record["first"], record["second"]) for record in found.data["records"]} == {
        ("baseline_centre", "baseline_centre"),
        ("baseline_random", "baseline_random"),
    }
    json.dumps(found.data, allow_nan=False)


def test_runs_over_other_cases_share_nothing(runs: Path, run_file: Path, tiny_manifest: Path, tmp_path: Path) -> None:
    data = altered(tiny_manifest, tmp_path / "data", {'"case_id": "': '"case_id": "other '})
    with pytest.raises(RunError, match="share no case and finding"):
        compare_runs(runs / "tiny", another(run_file, runs, data))


def test_cases_with_the_same_name_and_another_truth_are_told(
    runs: Path, run_file: Path, tiny_manifest: Path, tmp_path: Path
) -> None:
    data = altered(tiny_manifest, tmp_path / "data", {'"boxes": {"Mass": [[': '"boxes": {"Mass": [[0, 0, 9, 9], ['})
    with pytest.raises(RunError, match="another truth about the same case"):
        compare_runs(runs / "tiny", another(run_file, runs, data))


def test_runs_under_other_protocols_are_refused(runs: Path, run_file: Path) -> None:
    run_a_file(run_file, ["name=other", "benchmark.protocol=medklip"], out=runs)
    with pytest.raises(RunError, match="different protocols"):
        compare_runs(runs / "tiny", runs / "other")
