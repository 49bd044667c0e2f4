"""``medground validate``: what is wrong is listed, all of it, before anything runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from medground.commands.validate import validate_file
from medground.errors import ConfigError


def test_a_sound_run_file_passes(run_file: Path) -> None:
    checks = validate_file(run_file)
    assert [check.ok for check in checks] == [True] * 4
    assert any("fingerprint" in line for check in checks for line in check.details)


def test_every_problem_of_a_table_is_listed(run_file: Path, tiny_manifest: Path, tmp_path: Path) -> None:
    data = shutil.copytree(tiny_manifest, tmp_path / "data")
    records = [json.loads(line) for line in (data / "manifest.jsonl").read_text().splitlines()]
    records[0]["boxes"] = {"Mass": [[0, 0, 9999, 9]]}
    records[1]["labels"] = {"Mass": "yes"}
    records[2]["boxs"] = {}
    (data / "manifest.jsonl").write_text("\n".join(map(json.dumps, records)))
    checks = validate_file(run_file, [f"benchmark.datasets.0.root={data}"])
    assert [check.ok for check in checks] == [True, False]
    text = "\n".join(checks[1].details)
    for place in ("line 1, boxes.Mass", "line 2, labels.Mass", "line 3"):
        assert f"manifest.jsonl {place}: " in text
    assert "lists every problem" not in text


def test_an_absent_dataset_is_a_failed_check(run_file: Path) -> None:
    checks = validate_file(run_file, ["benchmark.datasets.0.root=nowhere"])
    assert [check.ok for check in checks] == [True, False]
    assert "does not exist" in checks[1].details[0]


def test_a_wrong_key_is_an_error_at_once(run_file: Path) -> None:
    with pytest.raises(ConfigError, match="has no key"):
        validate_file(run_file, ["engin.workers=1"])
