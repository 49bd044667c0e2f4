"""Every file of a run against its receipt: whole runs pass, and whatever is changed, cut or lost is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from medground.errors import RunError
from medground.running.fsck import SUMS, check_folder, refuse_damaged
from medground.running.options import Options
from medground.running.run import execute


@pytest.fixture
def folder(fake, tmp_path):
    execute(fake.two_tasks(), tmp_path, options=Options(chunk=4, workers=0, on_error="skip"))
    return tmp_path


def files(folder: Path) -> list[Path]:
    kept, no_result = ("predictions", "readings"), {"current", "made_of"}
    return sorted(p for name in kept for p in (folder / name).rglob("*") if p.is_file() and p.name not in no_result)


def test_a_whole_run_passes_and_every_file_is_counted(folder):
    audit = check_folder(folder)
    assert (audit.damaged, audit.unfinished, audit.unsealed) == ((), (), ())
    assert audit.files == len([path for path in files(folder) if path.name != SUMS])
    refuse_damaged(folder)


def test_every_changed_cut_and_lost_file_is_named(folder):
    for path in files(folder):
        whole = path.read_bytes()
        for content in (whole[:-1], whole[: len(whole) // 2] + b"x" + whole[len(whole) // 2 + 1 :]):
            path.write_bytes(content)
            (line, *_) = check_folder(folder).damaged
            assert path.name in line or path.name == SUMS
            if "predictions" not in path.parts:
                with pytest.raises(RunError, match="not what was written"):
                    refuse_damaged(folder)
        path.unlink()
        audit = check_folder(folder)
        # Without its receipt a chunk was never finished; without sums a reading is unsealed.
        assert audit.damaged or audit.unfinished or audit.unsealed
        path.write_bytes(whole)
    assert not check_folder(folder).damaged


def test_rows_of_other_predictions_are_named(folder):
    receipt = next((folder / "readings").rglob("rows/a/data/*.json"))
    record = json.loads(receipt.read_text())
    del record["seal"]
    import hashlib

    record["made_from"] = "0" * 64
    seal = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
    receipt.write_text(json.dumps(record | {"seal": seal}))
    (line,) = check_folder(folder).damaged
    assert line.endswith("made of predictions that are not here")


def test_readings_of_before_are_told_apart(folder):
    next((folder / "readings").rglob(SUMS)).unlink()
    audit = check_folder(folder)
    assert not audit.damaged
    assert len(audit.unsealed) == 1


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(RunError, match="not a run folder"):
        check_folder(tmp_path)
