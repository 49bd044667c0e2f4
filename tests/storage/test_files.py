from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from medground.storage.files import remove_leftovers, write_atomic


def test_a_file_is_written_whole_and_its_folders_are_made(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_when_writing_fails_the_old_file_stands_and_nothing_is_left(tmp_path, monkeypatch, moment):
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*{"fsync": (os, "fsync"), "replace": (Path, "replace")}[moment], full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_bytes_reach_the_disk_before_the_name_and_the_name_before_the_return(tmp_path, monkeypatch):
    events = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (events.append("sync"), fsync(handle)))
    monkeypatch.setattr(Path, "replace", lambda self, to: (events.append("rename"), replace(self, to)))
    write_atomic(tmp_path / "file", b"x")
    assert events == ["sync", "rename", "sync"]


def test_leftovers_of_a_killed_process_are_removed_and_nothing_else(tmp_path):
    (tmp_path / "rows" / "a").mkdir(parents=True)
    (tmp_path / "rows" / "a" / ".partial-123-4.tmp").write_bytes(b"half")
    (tmp_path / "rows" / "a" / "notes.tmp").write_bytes(b"keep")
    assert remove_leftovers(tmp_path) == 1
    assert [p.name for p in (tmp_path / "rows" / "a").iterdir()] == ["notes.tmp"]
