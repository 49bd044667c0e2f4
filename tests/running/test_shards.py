"""Shards of a run and their merge: the bytes of a run without shards, or a refusal that says what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from medground.errors import ConfigError, RunError
from medground.running.options import Options
from medground.running.run import execute
from medground.running.shard_session import execute_shard
from medground.running.shards import Shard, parse_shard
from medground.storage import FolderStorage, open_storage
from medground.storage.copying import copy_missing

CONFIG = {"name": "r", "benchmark": {"name": "fake"}, "models": [{"name": "m"}], "engine": {"workers": 1}}
OPTIONS = Options(chunk=4, workers=0, on_error="skip", torch_threads=1)


def whole(fake, folder):
    execute(fake.two_tasks(), folder, config=CONFIG, options=OPTIONS)


def shard(fake, place, index, of, *, config=CONFIG, options=OPTIONS, **task):
    return execute_shard(fake.two_tasks(**task), place, Shard(index, of), config=config, options=options)


def merge(fake, place, **task):
    return execute(fake.two_tasks(**task), place, config=CONFIG, options=OPTIONS, merging=True)


def results(folder):
    """Everything of a run that shards must not change."""
    files = {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}
    return {
        name: data
        for name, data in files.items()
        if not name.startswith(("shards/", "leases/", ".lock", "manifest.json", "profile.json"))
    }


@pytest.mark.parametrize("of", [1, 2, 3, 20])
def test_merged_shards_are_the_run_without_shards(fake, tmp_path, of):
    whole(fake, tmp_path / "whole")
    reports = [shard(fake, tmp_path / "shards", i, of) for i in range(of, 0, -1)]
    assert sum(report.chunks for report in reports) == 9
    report = merge(fake, tmp_path / "shards")
    assert (report.failures, report.reused) == (2, 9)
    assert results(tmp_path / "shards") == results(tmp_path / "whole")


def test_a_shard_that_runs_twice_computes_nothing_again(fake, tmp_path):
    first = shard(fake, tmp_path, 1, 2)
    again = shard(fake, tmp_path, 1, 2)
    assert (first.reused, again.reused) == (0, first.chunks)
    shard(fake, tmp_path, 2, 2)
    merge(fake, tmp_path)


def test_a_missing_shard_is_named_with_its_command(fake, tmp_path):
    for index in (1, 3):
        shard(fake, tmp_path, index, 4)
    with pytest.raises(RunError, match="chunks are missing") as caught:
        merge(fake, tmp_path)
    assert caught.value.fix == "medground run FILE --shard 2/4, 4/4"
    assert caught.value.got.startswith("4 missing: a/data chunk 1, a/data chunk 3")
    assert not list(tmp_path.rglob("summary.json"))
    shard(fake, tmp_path, 2, 4)
    shard(fake, tmp_path, 4, 4)
    merge(fake, tmp_path)


def test_shards_of_different_cuts_fill_the_same_run(fake, tmp_path):
    whole(fake, tmp_path / "whole")
    for index, of in ((1, 2), (2, 4), (4, 4)):
        shard(fake, tmp_path / "run", index, of)
    merge(fake, tmp_path / "run")
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def test_a_shard_of_another_run_file_is_refused_with_the_difference(fake, tmp_path):
    shard(fake, tmp_path, 1, 2)
    other = CONFIG | {"models": [{"name": "another"}]}
    with pytest.raises(RunError, match=r"models\[0\].name: m -> another"):
        shard(fake, tmp_path, 2, 2, config=other)
    faster = CONFIG | {"engine": {"workers": 4}}
    shard(fake, tmp_path, 2, 2, config=faster, options=Options(chunk=4, workers=4, on_error="skip", torch_threads=1))
    merge(fake, tmp_path)


def test_a_shard_of_other_data_is_found_out_at_the_merge(fake, tmp_path):
    shard(fake, tmp_path, 1, 2)
    shard(fake, tmp_path, 2, 2, version="2")
    with pytest.raises(RunError, match="planned from another run file, or from other data") as caught:
        merge(fake, tmp_path)
    assert "shard 2/2" in caught.value.got
    assert "shard 1/2" not in caught.value.got


def test_a_damaged_file_of_a_shard_is_found_at_the_merge(fake, tmp_path):
    for index in (1, 2):
        shard(fake, tmp_path, index, 2)
    table = next(tmp_path.glob("readings/*/rows/a/data/*.parquet"))
    table.write_bytes(table.read_bytes()[:-1])
    with pytest.raises(RunError, match="1 missing"):
        merge(fake, tmp_path)
    shard(fake, tmp_path, 1, 2)
    shard(fake, tmp_path, 2, 2)
    merge(fake, tmp_path)


def test_failures_that_the_run_file_does_not_accept_are_missing(fake, tmp_path):
    strict = Options(chunk=4, workers=0, torch_threads=1)
    for index in (1, 2):
        shard(fake, tmp_path, index, 2)
    with pytest.raises(RunError, match=r"2 missing \(2 of them with items that failed\)"):
        execute(fake.two_tasks(), tmp_path, config=CONFIG, options=strict, merging=True)


def test_shards_agree_on_the_threads_of_torch(fake, tmp_path, monkeypatch):
    free = Options(chunk=4, workers=0, on_error="skip")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    shard(fake, tmp_path, 1, 2, options=free)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # another machine
    shard(fake, tmp_path, 2, 2, options=free)
    report = execute(fake.two_tasks(), tmp_path, config=CONFIG, options=free, merging=True)
    assert report.reused == 9
    assert json.loads((tmp_path / "manifest.json").read_text())["settings"]["torch_threads"] == 3


def test_the_record_of_a_shard_says_how_it_ended(fake, tmp_path):
    with pytest.raises(RunError, match="cannot be read"):
        shard(fake, tmp_path, 1, 1, options=Options(chunk=4, workers=0, torch_threads=1))
    path = tmp_path / "shards/1-of-1/shard.json"
    assert json.loads(path.read_text())["outcome"] == "stopped by RunError"
    shard(fake, tmp_path, 1, 1)
    assert json.loads(path.read_text()) | {"plan": ""} == {
        "shard": [1, 1],
        "plan": "",
        "outcome": "finished",
        "failures": 2,
    }
    path.write_text("{")
    with pytest.raises(RunError, match="record of a shard is damaged"):
        merge(fake, tmp_path)


def test_a_live_shard_keeps_the_whole_run_out(fake, tmp_path):
    probe = fake.Probe()
    refused = []

    def second(_):
        for index, of in ((1, 2), (1, 1)):
            other = execute_shard if of == 2 else execute
            arguments = (Shard(index, of),) if of == 2 else ()
            with pytest.raises(RunError, match="another process"):
                other(fake.two_tasks(), tmp_path, *arguments, config=CONFIG, options=OPTIONS)
            refused.append(of)
        shard(fake, tmp_path, 2, 2)
        probe.on_infer = None

    probe.on_infer = second
    shard(fake, tmp_path, 1, 2, probe=probe)
    assert refused == [2, 1]
    merge(fake, tmp_path)


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "-1/2", "1/2/3", ""])
def test_what_is_no_shard(text):
    with pytest.raises(ConfigError, match="not a shard"):
        parse_shard(text)


def test_shards_behind_an_address_are_the_run_in_a_folder(fake, tmp_path, bucket):
    whole(fake, tmp_path / "whole")
    place = f"{bucket}/runs/r"
    shard(fake, place, 1, 3)
    shard(fake, place, 1, 3)  # one twice
    shard(fake, place, 3, 3)
    with pytest.raises(RunError, match=r"3 missing.*") as caught:
        merge(fake, place)
    assert caught.value.fix == "medground run FILE --shard 2/3"
    shard(fake, place, 2, 3)
    storage = open_storage(place)
    assert not list(storage.list("leases/"))
    copy_missing(storage, FolderStorage(tmp_path / "copy"), ["run.yaml", "predictions/", "readings/", "shards/"])
    merge(fake, tmp_path / "copy")
    assert results(tmp_path / "copy") == results(tmp_path / "whole")
    merge(fake, place)
    there = {stored.key: storage.get(stored.key) for stored in storage.list("readings/")}
    assert there == {k: v for k, v in results(tmp_path / "whole").items() if k.startswith("readings/")}


def test_a_whole_run_behind_an_address(fake, tmp_path, bucket):
    whole(fake, tmp_path / "whole")
    place = f"{bucket}/r"
    with pytest.raises(RunError, match="cannot be read"):
        execute(fake.two_tasks(), place, config=CONFIG, options=Options(chunk=4, workers=0, torch_threads=1))
    report = execute(fake.two_tasks(), place, config=CONFIG, options=OPTIONS)
    assert report.reused == 1
    storage = open_storage(place)
    there = {stored.key: storage.get(stored.key) for stored in storage.list()}
    wanted = results(tmp_path / "whole")
    assert {k: v for k, v in there.items() if k in wanted} == wanted
