from __future__ import annotations

import errno
import json
import os

import polars as pl
import pytest
import yaml

from medground.benchmarks.base import Measured
from medground.benchmarks.requests import Transcript
from medground.benchmarks.results import Summary
from medground.errors import RunError
from medground.running.plan import make_plan
from medground.running.store import Store

CONFIG = {"name": "r", "benchmark": {"name": "fake", "protocol": "p"}, "engine": {"batch_size": 8}}


def measured_of(chunk):
    return [
        (item.item_id, Measured([{"item_id": item.item_id, "score": 0.5, "counts": [1], "state": "ok"}]))
        for item in chunk.items
    ]


def fill(store, fake, chunk):
    said = [Transcript(item.item_id, ()) for item in chunk.items]
    seal = store.write_predictions(chunk, said, [], [])
    store.write_rows(chunk, fake.SCHEMA, measured_of(chunk), [], seal)


def test_an_empty_folder_becomes_a_run(tmp_path):
    with Store(tmp_path / "deep" / "run", CONFIG, reading="plain") as store:
        assert yaml.safe_load((store.folder / "run.yaml").read_text()) == CONFIG


def test_a_second_store_on_the_folder_is_refused(tmp_path):
    with (
        Store(tmp_path, CONFIG, reading="plain"),
        pytest.raises(RunError, match="another process"),
        Store(tmp_path, CONFIG, reading="plain"),
    ):
        pass


def test_leftovers_are_cleaned(tmp_path):
    with Store(tmp_path, CONFIG, reading="plain"):
        (tmp_path / ".partial-1-1.tmp").write_bytes(b"half")
    with Store(tmp_path, CONFIG, reading="plain"):
        assert not list(tmp_path.glob(".partial*"))


@pytest.mark.parametrize("change", [{"name": "s"}, {"benchmark": {"name": "other"}}, {"benchmark": "fake"}])
def test_the_folder_of_another_run_is_refused_with_the_difference(tmp_path, change):
    with Store(tmp_path, CONFIG, reading="plain"):
        pass
    with pytest.raises(RunError, match=f"{next(iter(change))}.*->"), Store(tmp_path, CONFIG | change, reading="plain"):
        pass
    assert yaml.safe_load((tmp_path / "run.yaml").read_text()) == CONFIG
    with Store(tmp_path, CONFIG | change, fresh=True, reading="plain"):
        assert yaml.safe_load((tmp_path / "run.yaml").read_text()) == CONFIG | change


def test_what_changed_in_the_same_run_is_told(tmp_path):
    messages = []
    with Store(tmp_path, CONFIG, reading="plain"):
        pass
    with Store(tmp_path, CONFIG, say=messages.append, reading="plain"):
        pass
    assert messages == []
    with Store(tmp_path, CONFIG | {"engine": {"batch_size": 4}, "models": []}, say=messages.append, reading="plain"):
        pass
    assert messages[0].endswith("since the last session: engine.batch_size: 8 -> 4; models: nothing -> []")
    many = {f"k{i:02d}": [{"x": i}] for i in range(20)}
    with Store(
        tmp_path, CONFIG | {"engine": {"batch_size": 4}, "models": []} | many, say=messages.append, reading="plain"
    ):
        pass
    assert messages[1].endswith("k07[0].x: nothing -> 7 and 12 more")


@pytest.mark.parametrize("text", ["[1", "just words", "\udcff", "name: 2020-99-99"])
def test_a_run_file_that_cannot_be_read_is_not_overwritten(tmp_path, text):
    (tmp_path / "run.yaml").write_text(text, errors="surrogateescape")
    with pytest.raises(RunError, match="start afresh"), Store(tmp_path, CONFIG, reading="plain"):
        pass
    assert (tmp_path / "run.yaml").read_text(errors="surrogateescape") == text


def test_a_folder_with_other_files_is_refused_even_afresh(tmp_path):
    for i in range(6):
        (tmp_path / f"thesis{i}.tex").write_text("x")
    for fresh in (False, True):
        with (
            pytest.raises(RunError, match=r"thesis0.tex.*\.\.\."),
            Store(tmp_path, CONFIG, fresh=fresh, reading="plain"),
        ):
            pass
    assert len(list(tmp_path.glob("thesis*"))) == 6


def test_afresh_removes_the_run_and_follows_no_link(fake, tmp_path):
    run, outside = tmp_path / "run", tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    chunk = make_plan([fake.FakeTask()], chunk_size=8).chunks[0]
    with Store(run, CONFIG, reading="plain") as store:
        fill(store, fake, chunk)
        (run / "tables").symlink_to(outside)
        (store.reading / "tables").symlink_to(outside)
    with Store(run, CONFIG, fresh=True, reading="plain") as store:
        assert store.finished(chunk) is None
        assert sorted(p.name for p in run.iterdir()) == [".lock", "run.yaml"]
    assert (outside / "keep").exists()


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "run").write_text("x")
    with pytest.raises(RunError, match="cannot be written"), Store(tmp_path / "run", CONFIG, reading="plain"):
        pass


def test_rows_come_in_the_order_of_the_plan_whatever_the_order_of_writing(fake, tmp_path):
    planned = make_plan([fake.FakeTask(n=10)], chunk_size=3).tasks[0]
    with Store(tmp_path, CONFIG, reading="plain") as store:
        for chunk in reversed(planned.chunks):
            fill(store, fake, chunk)
        assert store.rows(planned)["item_id"].to_list() == [f"s{i:02d}" for i in range(10)]
        assert store.n_finished == store.n_written == 4


def test_a_task_without_items_has_rows_without_lines(fake, tmp_path):
    planned = make_plan([fake.FakeTask(n=0)]).tasks[0]
    with Store(tmp_path, CONFIG, reading="plain") as store:
        assert store.rows(planned).schema == fake.SCHEMA


def test_a_damaged_chunk_is_announced(fake, tmp_path):
    chunk = make_plan([fake.FakeTask()], chunk_size=8).chunks[1]
    messages = []
    with Store(tmp_path, CONFIG, say=messages.append, reading="plain") as store:
        fill(store, fake, chunk)
        assert store.finished(chunk) is not None
        path = next(tmp_path.glob("readings/*/rows/*/*/*.parquet"))
        path.write_bytes(path.read_bytes()[:-5])
    with Store(tmp_path, CONFIG, say=messages.append, reading="plain") as store:
        assert store.finished(chunk) is None
        assert store.n_finished == 0
    assert messages[0].startswith("chunk 1 of model/data is damaged and will be computed again: 00001-")


def test_summary_and_tables_replace_older_ones(tmp_path):
    table = pl.DataFrame({"x": [1]})
    with Store(tmp_path, CONFIG, reading="plain") as store:
        store.put_summary(Summary(data={"b": 1, "a": 2}, tables={"old": table}), "key")
        store.put_summary(Summary(data={"b": 1, "a": 2}, tables={"new": table}), "key")
        text = (store.reading / "summary.json").read_text()
        assert list(json.loads(text)["data"]) == ["a", "b"]
        assert sorted(p.name for p in (store.reading / "tables").iterdir()) == ["new.csv", "new.md", "new.tex"]
        store.remove_summary()
        assert not (store.reading / "summary.json").exists()
        assert not (store.reading / "tables").exists()


def test_a_summary_with_nan_replaces_nothing(tmp_path):
    with Store(tmp_path, CONFIG, reading="plain") as store:
        store.put_summary(Summary(data={"a": 1}), "key")
        with pytest.raises(RunError, match=r"summary\.data\.a"):
            store.put_summary(Summary(data={"a": float("nan")}), "key")
        assert (store.reading / "summary.json").exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_full_disk_is_told_with_what_is_safe(fake, tmp_path, monkeypatch, code):
    first, second, _ = make_plan([fake.FakeTask()], chunk_size=8).chunks
    with Store(tmp_path, CONFIG, reading="plain") as store:
        fill(store, fake, first)

        def full(_):
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(RunError, match=r"finished chunks are safe.*1 so far") as caught:
                fill(store, fake, second)
            assert os.strerror(code) in str(caught.value)
            with pytest.raises(RunError, match="cannot be written"):
                store.put("manifest.json", b"{}")
        assert store.finished(first) is not None
        assert store.finished(second) is None
        assert not list(tmp_path.rglob("*.tmp"))


def test_a_disk_that_is_full_from_the_start_leaves_no_lock(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunError, match="No space left"), Store(tmp_path, CONFIG, reading="plain"):
            pass
        patch.setattr(os, "scandir", full)
        patch.setattr(os, "listdir", full)
        with pytest.raises(RunError, match="cannot be written"), Store(tmp_path, CONFIG, reading="plain"):
            pass
    with Store(tmp_path, CONFIG, reading="plain"):
        pass
