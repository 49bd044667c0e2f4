from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from medground.errors import RunError
from medground.running.lock import LOCK_FILE, FolderLock, NoLocksError


def test_a_second_lock_is_refused_and_names_the_holder(tmp_path):
    first, second = FolderLock(tmp_path), FolderLock(tmp_path)
    first.acquire()
    with pytest.raises(RunError, match=f"process {os.getpid()} on "):
        second.acquire()
    first.release()
    assert (tmp_path / LOCK_FILE).read_bytes() == b""
    second.acquire()
    second.release()
    second.release()  # once more does no harm


def test_a_process_that_is_killed_leaves_no_lock(fake, tmp_path):
    command = [sys.executable, str(Path(fake.__file__)), str(tmp_path), "--wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        with pytest.raises(RunError, match=f"process {process.pid} "):
            FolderLock(tmp_path).acquire()
        process.send_signal(signal.SIGKILL)
        process.wait()
    lock = FolderLock(tmp_path)
    lock.acquire()
    lock.release()


def test_a_file_system_without_locks_is_found_out(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(NoLocksError, match="No locks available"):
        FolderLock(tmp_path).acquire()


def test_shards_share_the_folder_and_a_whole_run_has_it_alone(tmp_path):
    first, second, whole = FolderLock(tmp_path, shared=True), FolderLock(tmp_path, shared=True), FolderLock(tmp_path)
    first.acquire()
    second.acquire()
    with pytest.raises(RunError, match="another process"):
        whole.acquire()
    first.release()
    second.release()
    whole.acquire()
    with pytest.raises(RunError, match=f"process {os.getpid()} on "):
        first.acquire()
    whole.release()


def test_a_full_disk_does_not_keep_the_lock_from_holding(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    lock = FolderLock(tmp_path)
    lock.acquire()
    with pytest.raises(RunError, match="only just started"):
        FolderLock(tmp_path).acquire()
    lock.release()
