"""Signal 9 at random moments and at every kind of write, then a resume with other workers: not a byte differs."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from medground.running.options import Options
from medground.running.run import execute


@pytest.fixture(scope="module")
def uninterrupted(fake, contents, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    execute(fake.two_tasks(), folder, options=Options(chunk=4, workers=0, on_error="skip"))
    return contents(folder)


def start(fake, folder, *arguments):
    command = [sys.executable, str(Path(fake.__file__)), str(folder), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_a_random_moment(fake, tmp_path, contents, uninterrupted, seed):
    chance = random.Random(seed)
    done = start(fake, tmp_path, "--workers", chance.randrange(4), "--die-after", chance.uniform(0.0, 0.12))
    assert done.returncode == -signal.SIGKILL, done.stderr
    execute(fake.two_tasks(), tmp_path, options=Options(chunk=4, workers=chance.randrange(4), on_error="skip"))
    assert contents(tmp_path) == uninterrupted


# Of a chunk: arrays, predictions, their receipt and rows take names; then the rows' receipt, which is waited for.
@pytest.mark.parametrize("write", [1, 2, 3, *range(6, 14), 30])
def test_killed_at_every_kind_of_write(fake, tmp_path, contents, uninterrupted, write):
    done = start(fake, tmp_path, "--workers", 0, "--die-at-write", write)
    assert done.returncode == -signal.SIGKILL, done.stderr
    report = execute(fake.two_tasks(), tmp_path, options=Options(chunk=4, workers=2, on_error="skip"))
    # Without workers nothing is under way but the chunk that is being written; two files were written before.
    assert report.reused == max(0, (write - 7) // 6)
    assert contents(tmp_path) == uninterrupted


def test_killed_again_and_again(fake, tmp_path, contents, uninterrupted):
    chance = random.Random(7)
    for workers in (3, 1, 0):
        start(fake, tmp_path, "--workers", workers, "--die-after", chance.uniform(0.01, 0.04))
    assert start(fake, tmp_path, "--workers", 2).returncode == 0
    assert contents(tmp_path) == uninterrupted


def test_a_limit_on_the_size_of_files_is_a_full_disk(fake, tmp_path, contents, uninterrupted):
    done = start(fake, tmp_path, "--workers", 1, "--file-limit", 1700)
    assert done.returncode == 1
    assert "RunError: the run folder cannot be written" in done.stderr
    assert "File too large" in done.stderr
    assert not list(tmp_path.rglob("*.tmp"))
    execute(fake.two_tasks(), tmp_path, options=Options(chunk=4, workers=1, on_error="skip"))
    assert contents(tmp_path) == uninterrupted


def test_a_second_process_is_refused(fake, tmp_path):
    command = [sys.executable, str(Path(fake.__file__)), str(tmp_path), "--wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "ready\n"
        second = start(fake, tmp_path)
        first.kill()
    assert second.returncode == 1
    assert "another process is working in this run folder" in second.stderr
    assert f"process {first.pid}" in second.stderr
