"""Limits on failures and time, and work that hangs."""

from __future__ import annotations

import threading
import time

import pytest

from medground.errors import LimitError, RunError
from medground.running import allowance as module
from medground.running.allowance import Allowance
from medground.running.chunks import Failure
from medground.running.options import Options
from medground.running.run import execute


def test_without_a_deadline_work_is_done_in_this_thread():
    assert Allowance().within(threading.get_ident) == threading.get_ident()
    assert Allowance().left() is None


def test_work_in_time_gives_its_result_or_its_error():
    allowance = Allowance(deadline=time.monotonic() + 60)
    assert allowance.within(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        allowance.within(lambda: 1 // 0)
    with pytest.raises(TimeoutError):  # the work's own
        allowance.within(lambda: (_ for _ in ()).throw(TimeoutError()))


def test_work_that_hangs_is_left_to_itself():
    released = threading.Event()
    allowance = Allowance(deadline=time.monotonic() + 0.01)
    with pytest.raises(LimitError, match="deadline"):
        allowance.within(released.wait, patience=0.01)
    with pytest.raises(LimitError):
        allowance.check_time()
    released.set()


@pytest.mark.parametrize(
    ("allowed", "items", "failures"),
    [(None, 100, None), (0, 100, 0), (3, 100, 3), (0.01, 100, 1), (0.01, 99, 0), (0.5, 3, 1), (1, 100, 1)],
)
def test_failures_are_a_count_or_a_share(allowed, items, failures):
    assert Options(max_failures=allowed).failures_allowed(items) == failures


def test_one_failure_too_many_ends_the_run():
    allowance = Allowance(failures=1)
    allowance.count(Failure("a", "why", "why"))
    with pytest.raises(LimitError, match="max_failures"):
        allowance.count(Failure("b", "why", "why"))


@pytest.mark.parametrize("stage", ["on_load", "on_infer", "on_measure"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_hang_anywhere_ends_the_run_with_its_chunks_safe(fake, tmp_path, monkeypatch, contents, stage, workers):
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    released = threading.Event()

    def hang(what):
        if what == 5 or getattr(what, "item_id", None) == "s09":
            released.wait(60)

    def benchmark(**hooks):
        return fake.FakeBenchmark(fake.FakeTask(n=20, batch_size=2, probe=fake.Probe(**hooks)))

    try:
        with pytest.raises(LimitError, match="deadline"):
            execute(
                benchmark(**{stage: hang}), tmp_path / "hung", options=Options(chunk=4, workers=workers, deadline=1.5)
            )
        safe = len(list((tmp_path / "hung").rglob("rows/**/*.json")))
        assert safe >= 1
        report = execute(benchmark(), tmp_path / "hung", options=Options(chunk=4, workers=workers))
        assert report.reused == safe
    finally:
        released.set()
    for thread in threading.enumerate():
        if thread.name.startswith("medground"):
            thread.join(10)
    execute(benchmark(), tmp_path / "whole", options=Options(chunk=4, workers=0))
    assert contents(tmp_path / "hung") == contents(tmp_path / "whole")


def test_what_comes_back_after_the_end_is_not_written(fake, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    released = threading.Event()
    probe = fake.Probe(on_infer=lambda n: released.wait(60))
    task = fake.FakeTask(n=2, batch_size=2, probe=probe)
    with pytest.raises(RunError, match="deadline"):
        execute(fake.FakeBenchmark(task), tmp_path, options=Options(workers=1, deadline=0.3))
    released.set()
    for thread in threading.enumerate():
        if thread.name == "medground-engine":
            thread.join(10)
    assert not list(tmp_path.rglob("*.parquet"))
