from __future__ import annotations

import json

import numpy as np
import pytest

from medground.errors import RunError
from medground.running.options import Options
from medground.running.reading import read_manifest, read_rows, read_summary, read_transcripts, readings, task_paths
from medground.running.run import execute


@pytest.fixture
def folder(fake, tmp_path):
    execute(fake.two_tasks(), tmp_path, options=Options(chunk=4, workers=3, on_error="skip"))
    return tmp_path


def test_rows_come_in_the_order_of_the_plan(folder):
    assert task_paths(folder) == [("a", "data"), ("b", "data")]
    assert read_rows(folder, ("a", "data"))["item_id"].to_list() == [f"s{i:02d}" for i in range(23)]


def test_transcripts_come_in_the_order_of_the_plan_and_as_asked(fake, folder):
    held = {t.item_id: t for t in read_transcripts(folder, ("a", "data"))}
    assert list(held) == [f"s{i:02d}" for i in range(23) if i != 4]
    (answer,) = held["s07"].answers("model", "look")
    np.testing.assert_array_equal(answer.arrays["map"], fake.pixels("s07").astype(np.float32))
    assert held["s07"].notes == {"size": 6}
    assert held["s07"].exchanges[0].key == {"item": "s07"}
    some = read_transcripts(folder, ("a", "data"), only={"s22", "s07", "s04"})
    assert [t.item_id for t in some] == ["s07", "s22"]


def test_summaries_are_read_by_reading(folder):
    (own,) = readings(folder)
    assert own.startswith("plain-")
    assert read_summary(folder).data["a/data"]["n"] == 22
    assert read_summary(folder, own) == read_summary(folder)
    with pytest.raises(RunError, match="no such reading"):
        read_summary(folder, "another")


def test_a_chunk_without_arrays_has_no_file(fake, tmp_path):
    benchmark = fake.FakeBenchmark(fake.FakeTask(("a",), 4, 2, bad=("s00", "s01")))
    execute(benchmark, tmp_path, options=Options(chunk=2, on_error="skip"))
    assert len(list(tmp_path.rglob("*.npz"))) == 1
    assert [t.item_id for t in read_transcripts(tmp_path, ("a",))] == ["s02", "s03"]


def test_an_empty_task_has_no_rows(fake, tmp_path):
    execute(fake.FakeBenchmark(fake.FakeTask(("a",), 0), fake.FakeTask(("b",), 2)), tmp_path)
    assert len(read_rows(tmp_path, ("a",))) == 0


def test_what_is_no_run_is_told(tmp_path):
    with pytest.raises(RunError, match="not a run folder"):
        read_manifest(tmp_path)


def test_an_unknown_task_is_told_with_those_there_are(folder):
    with pytest.raises(RunError, match="one of a/data, b/data"):
        read_rows(folder, ("c", "data"))


def test_an_unfinished_run_is_told(folder):
    next(folder.glob("readings/*/rows/a/data/00003-*.json")).unlink()
    with pytest.raises(RunError, match="5 of 6 chunks"):
        read_rows(folder, ("a", "data"))
    assert len(read_rows(folder, ("b", "data"))) == 10


def test_a_damaged_chunk_is_told(folder):
    next(folder.glob("predictions/a/data/00003-*.npz")).write_bytes(b"PK")
    with pytest.raises(RunError, match=r"00003-.*npz is not what was written"):
        next(read_transcripts(folder, ("a", "data")))


def test_reading_changes_nothing(folder, contents):
    before = contents(folder)
    read_rows(folder, ("a", "data"))
    list(read_transcripts(folder, ("a", "data")))
    assert contents(folder) == before
    assert json.loads(before["manifest.json"])["format"] == 2
