"""The same contract in a folder and behind an address: whole values by key."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from medground.errors import ConfigError
from medground.storage import FolderStorage, is_address, open_storage
from medground.storage.copying import copy_missing
from medground.storage.opening import joined


@pytest.fixture(params=["folder", "address"])
def storage(request, tmp_path):
    if request.param == "folder":
        return FolderStorage(tmp_path / "deep" / "root")
    return open_storage(f"{request.getfixturevalue('bucket')}/runs/one")


def keys(storage, prefix=""):
    return [stored.key for stored in storage.list(prefix)]


def test_values_come_back(storage):
    storage.put("rows/a b/%2E.json", b"1")
    storage.put("rows/a b/%2E.json", b"22")
    assert storage.get("rows/a b/%2E.json") == b"22"
    assert [(s.key, s.size) for s in storage.list()] == [("rows/a b/%2E.json", 2)]


def test_what_is_not_there(storage):
    assert not storage.exists("x")
    assert keys(storage) == []
    with pytest.raises(FileNotFoundError) as caught:
        storage.get("x")
    assert len(str(caught.value)) < 300
    storage.delete("x")


def test_lists_are_ordered_and_end_at_a_folder(storage):
    for key in ("rows/b", "rows/a/2", "rows/a/10", "rowsx", "r"):
        storage.put(key, b"")
    assert keys(storage, "rows/") == ["rows/a/10", "rows/a/2", "rows/b"]
    assert keys(storage, "rows/a/") == ["rows/a/10", "rows/a/2"]
    assert storage.exists("rows/b")
    assert not storage.exists("rows")


def test_a_prefix_is_removed_with_all_below_it_and_nothing_beside(storage):
    for key in ("a/1", "a/2/3", "ab", "b"):
        storage.put(key, b"x")
    storage.delete("a")
    storage.delete("b")
    assert keys(storage) == ["ab"]


def test_only_one_creates(storage):
    assert storage.create("leases/run", b"1")
    assert not storage.create("leases/run", b"2")
    assert storage.get("leases/run") == b"1"
    assert keys(storage) == ["leases/run"]


@pytest.mark.parametrize("safe", ["process", "content", "name"])
def test_a_folder_waits_for_the_disk_as_often_as_it_is_told(tmp_path, monkeypatch, safe):
    calls = []
    monkeypatch.setattr(os, "fsync", calls.append)
    FolderStorage(tmp_path).put("a/b", b"1", safe=safe)
    assert len(calls) == {"process": 0, "content": 1, "name": 2}[safe]


def test_no_key_leads_out_of_a_folder(tmp_path):
    for key in ("../x", "/etc/passwd", "a/../../x"):
        with pytest.raises(ValueError, match="no key"):
            FolderStorage(tmp_path / "run").put(key, b"")


def test_a_file_that_is_being_written_is_not_listed(tmp_path):
    (tmp_path / ".partial-1-1.tmp").write_bytes(b"half")
    assert keys(FolderStorage(tmp_path)) == []


def test_a_bucket_that_is_not_there_is_an_error_of_the_system(bucket):
    with pytest.raises(OSError, match="nobucket"):
        open_storage("s3://nobucket/run").put("a", b"1")


def test_addresses_are_known(tmp_path):
    assert is_address("s3://b/x")
    assert not is_address("runs/s3")
    assert not is_address(tmp_path)
    assert joined("s3://b/x/", "n") == "s3://b/x/n"
    assert joined("runs", "n") == Path("runs/n")
    with pytest.raises(ConfigError, match=r"s3://, gs://, az://"):
        open_storage("ftp://host/run")


def test_without_the_library_the_extra_is_named():
    code = (
        "import sys; sys.modules['obstore'] = None\n"
        "from medground.storage import open_storage\n"
        "from medground.errors import ConfigError\n"
        "try: open_storage('s3://b/x')\nexcept ConfigError as error: print(error.fix)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "pip install 'medground[cloud]'"


def test_copying_brings_what_is_missing_and_what_changed(storage, tmp_path):
    target = FolderStorage(tmp_path / "copy")
    for key, value in {"p/1.parquet": b"a", "p/1.json": b"r", "p/2.npz": b"m", "run.yaml": b"y", "x": b"-"}.items():
        storage.put(key, value)
    assert copy_missing(storage, target, ["run.yaml", "p/", "none.yaml"]) == 4
    assert keys(target) == ["p/1.json", "p/1.parquet", "p/2.npz", "run.yaml"]
    storage.put("p/1.parquet", b"b")
    storage.put("p/1.json", b"s")  # the same sizes
    copy_missing(storage, target, ["p/"])
    assert (target.get("p/1.parquet"), target.get("p/1.json")) == (b"b", b"s")


def test_a_copy_that_breaks_off_has_no_receipt(tmp_path):
    source, target = FolderStorage(tmp_path / "a"), FolderStorage(tmp_path / "b")
    source.put("p/1.json", b"r")
    source.put("p/1.parquet", b"a")
    put = target.put

    def breaks(key, data, **options):
        put(key, data, **options)
        raise OSError("gone")

    target.put = breaks
    with pytest.raises(OSError, match="gone"):
        copy_missing(source, target, ["p/"])
    assert keys(FolderStorage(tmp_path / "b")) == ["p/1.parquet"]
