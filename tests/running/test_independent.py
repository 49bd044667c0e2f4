"""Independent items in processes: same bytes, first error, nothing lost, no process left behind."""

from __future__ import annotations

import importlib
import multiprocessing
from pathlib import Path

import pytest

from medground.errors import LimitError, RunError
from medground.running.options import Options
from medground.running.run import execute
from medground.running.store import Store


@pytest.fixture
def apart(monkeypatch):
    """The module of tasks; its folder is told to other processes with ``sys.path``."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    return importlib.import_module("apart")


def test_bytes_do_not_depend_on_the_number_of_processes(apart, tmp_path, contents):
    tasks = [apart.Task("a", 9), apart.Task("b", 1), apart.Task("c", 6)]
    reports = [
        execute(apart.Squares(*tasks), tmp_path / str(n), options=Options(chunk=4, workers=n)) for n in (0, 1, 2, 3)
    ]
    assert reports[0].summary.data == {"a": 204, "b": 0, "c": 55}
    whole = contents(tmp_path / "0")
    assert all(contents(tmp_path / str(n)) == whole for n in (1, 2, 3))
    assert not list(tmp_path.rglob("*.journal"))
    assert [task["items"] for task in reports[2].profile["tasks"]] == [9, 1, 6]
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("workers", [1, 3])
def test_of_several_errors_the_first_in_the_order_of_the_plan_is_raised(apart, tmp_path, workers):
    broken = apart.Squares(apart.Task("a", 2), apart.Task("b", 12, fails=(3, 4, 5)), apart.Task("c", 3))
    with pytest.raises(ValueError, match="3 is not liked") as caught:
        execute(broken, tmp_path, options=Options(chunk=12, workers=workers))
    assert "while item 'n03' of b was being asked about" in caught.value.__notes__
    assert list(tmp_path.rglob("readings/**/rows/a/*.parquet"))
    (journal,) = tmp_path.rglob("predictions/b/*.journal")
    assert all(f"n{i:02d}".encode() in journal.read_bytes() for i in range(3))


def test_with_skip_each_error_costs_its_own_item(apart, tmp_path):
    report = execute(
        apart.Squares(apart.Task("b", 12, fails=(3, 4, 5))), tmp_path, options=Options(workers=2, on_error="skip")
    )
    assert report.failures == 3
    assert report.summary.data == {"b": sum(i * i for i in range(12)) - 9 - 16 - 25}


def test_a_process_that_dies_is_told(apart, tmp_path):
    with pytest.raises(RunError, match="a worker process ended"):
        execute(apart.Squares(apart.Task("a", 4, dies=(2,))), tmp_path, options=Options(workers=2))
    assert not multiprocessing.active_children()


def test_a_task_that_cannot_be_pickled_is_told(apart, tmp_path):
    task = apart.Task("a", 4, fails=(lambda: 0,))
    with pytest.raises(RunError, match="cannot be handed to another process"):
        execute(apart.Squares(task), tmp_path, options=Options(workers=2))


def test_a_process_that_hangs_ends_with_the_deadline(apart, tmp_path):
    done = apart.Task("a", 4)
    execute(apart.Squares(done), tmp_path, options=Options(workers=1))
    with pytest.raises(LimitError, match="deadline"):
        execute(apart.Squares(done, apart.Task("b", 4, hangs=(2,))), tmp_path, options=Options(workers=2, deadline=3))
    for process in multiprocessing.active_children():  # one that started late has a second more
        process.join(60)
    assert not multiprocessing.active_children()
    report = execute(apart.Squares(done, apart.Task("b", 4)), tmp_path, options=Options(workers=1))
    assert report.reused == 1


def test_a_journal_that_a_kill_left_beside_a_finished_chunk_is_removed(apart, tmp_path, contents, monkeypatch):
    task = apart.Squares(apart.Task("a", 4))
    execute(task, tmp_path / "whole", options=Options(workers=1))
    # Stopped between the receipt of the predictions and the removal of the journal.
    with monkeypatch.context() as patched:
        patched.setattr(Store, "_remove_journal", interrupt)
        with pytest.raises(KeyboardInterrupt):
            execute(task, tmp_path / "killed", options=Options(workers=0))
    assert list(tmp_path.rglob("killed/**/*.journal"))
    execute(task, tmp_path / "killed", options=Options(workers=1))
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def interrupt(*_):
    raise KeyboardInterrupt
