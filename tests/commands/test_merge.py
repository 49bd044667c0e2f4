"""``medground run --shard`` and ``medground merge``, on a real run file, in a folder and behind an address."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from medground.cli import app
from medground.errors import ConfigError, RunError
from medground.models.chat.remote.cache import FOLDER_VARIABLE, ReplyCache, cache_file, plain_file
from medground.running.ledger import NAME
from medground.running.shards import Shard
from medground.shard_replies import join_replies, replies_of_shard
from medground.storage import FolderStorage, open_storage


@pytest.fixture
def file(tmp_path: Path) -> Path:
    run: dict[str, Any] = {
        "name": "small",
        "benchmark": {"name": "xbench", "datasets": [{"name": "phantom", "cases": 6, "size": 224}]},
        "models": [{"name": "baseline_all_foreground"}, {"name": "baseline_centre"}],
        "engine": {"chunk": 2, "workers": 1, "torch_threads": 1},
    }
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump(run))
    return path


def call(*arguments: object) -> str:
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def kept(folder: Path) -> dict[str, bytes]:
    names = ("predictions", "readings", "failures.jsonl", "run.yaml")
    files = [p for p in folder.rglob("*") if p.is_file() and p.relative_to(folder).parts[0] in names]
    files = [p for p in files if p.name != "made_of"]  # a stamp of what code and data a summary came from
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def test_shards_behind_an_address_are_merged_into_a_folder(file: Path, tmp_path: Path, bucket: str) -> None:
    call("run", file, "--out", tmp_path / "whole")
    there = f"{bucket}/runs"
    assert "medground merge " + there in call("run", file, "--out", there, "--shard", "2/2")
    with pytest.raises(RunError, match="chunks are missing"):
        call("merge", f"{there}/small", "--out", tmp_path / "merged")
    shard = json.loads(call("run", file, "--out", there, "--shard", "1/2", "--json"))
    assert shard == {"folder": f"{there}/small", "shard": [1, 2], "chunks": 3, "reused": 0, "failures": 0}
    call("merge", f"{there}/small", "--out", tmp_path / "merged")
    assert kept(tmp_path / "merged/small") == kept(tmp_path / "whole/small")
    assert (
        call("report", tmp_path / "merged/small", "--out", tmp_path / "report.html").split()[0].endswith("report.html")
    )


def test_where_there_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no run"):
        call("merge", tmp_path)


def test_a_suite_has_no_shards(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text("name: s\nbenchmarks: [{name: xbench}]\nmodels: [{name: baseline_centre}]\n")
    with pytest.raises(ConfigError, match="a suite has no shards"):
        call("run", path, "--shard", "1/2")


def test_a_shard_removes_nothing(file: Path) -> None:
    done = CliRunner().invoke(app, ["run", str(file), "--shard", "1/2", "--fresh"])
    assert done.exit_code == 2


@pytest.fixture(params=["folder", "address"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "folder":
        return FolderStorage(tmp_path / "run")
    return open_storage(f"{request.getfixturevalue('bucket')}/run")


def test_replies_are_kept_a_shard_and_joined(storage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    named = tmp_path / "named here.db"
    for index, key in ((1, "a"), (2, "b"), (1, "c")):
        with replies_of_shard(storage, Shard(index, 2)):
            for one in (None, named):
                cache = ReplyCache(cache_file(one))
                assert cache.get("a") == ({"text": "1"} if key == "c" else None)  # its own from before, and no other's
                cache.put(key, {"text": str(index)})
                if one is None:
                    cache.close()  # the other is still open, as a model that nobody let go of
    assert FOLDER_VARIABLE not in os.environ
    assert not plain_file("default.sqlite3").exists()
    assert join_replies(storage) == 6
    assert join_replies(storage) == 0
    for file in (cache_file(None), named):
        assert [ReplyCache(file).get(key) for key in "abc"] == [{"text": "1"}, {"text": "2"}, {"text": "1"}]


def test_ledgers_of_shards_are_joined(file: Path, tmp_path: Path) -> None:
    for index in (1, 2):
        call("run", file, "--out", tmp_path, "--shard", f"{index}/2")
        (tmp_path / f"small/shards/{index}-of-2" / NAME).write_text(f'{{"started": {index}}}\n')
    for _ in range(2):
        call("merge", tmp_path / "small")
    assert (tmp_path / "small" / NAME).read_text() == '{"started": 1}\n{"started": 2}\n'
