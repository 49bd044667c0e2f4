from __future__ import annotations

import gc
import random
import threading
import time

import polars as pl
import pytest

from medground.benchmarks.requests import Exchange, Transcript
from medground.errors import DataError, LimitError, RunError
from medground.running.allowance import Allowance
from medground.running.local import run_local
from medground.running.options import Options
from medground.running.plan import make_plan
from medground.running.profile import Profile, total
from medground.running.progress import Progress
from medground.running.store import Store

CONFIG = {"benchmark": {"name": "fake"}}


class Listener(Progress):
    def __init__(self):
        self.titles, self.done, self.failed = [], 0, 0
        self._lock = threading.Lock()

    def title(self, text):
        self.titles.append(text)

    def advance(self, *, failed=False):
        with self._lock:
            self.done += 1
            self.failed += failed


def run(folder, tasks, *, progress=None, todo=None, **options):
    """Run everything that is not finished in a folder; return the rows by task."""
    options = Options(**{"chunk": 4} | options)
    plan = make_plan(tasks, chunk_size=options.chunk)
    with Store(folder, CONFIG, reading="plain") as store:
        work = [(p, [c for c in p.chunks if store.finished(c) is None]) for p in plan.tasks]
        profiles = run_local(work, store, options, progress)
        return [store.rows(p) for p in plan.tasks], profiles


def oracle(task, chunk):
    stages, measurer, rows = task.open({}), task.measurer(), []
    items = task.items()
    for start in range(0, len(items), chunk):
        part = items[start : start + chunk]
        for first in range(0, len(part), task.batch_size):
            batch = part[first : first + task.batch_size]
            answers = stages.answer("model", "look", [{"x": stages.load(item)} for item in batch])
            for item, answer in zip(batch, answers, strict=True):
                transcript = Transcript(item.item_id, (Exchange("model", "look", {}, answer),))
                rows += measurer.measure(item, transcript).rows
    return rows


@pytest.mark.parametrize("workers", [0, 1, 2, 5])
@pytest.mark.parametrize("memory_items", [1, 7, None])
def test_rows_equal_the_engine_without_overlap(fake, tmp_path, workers, memory_items):
    task = fake.FakeTask(n=23, batch_size=3)
    rows, _ = run(tmp_path, [task], workers=workers, memory_items=memory_items)
    assert rows[0].to_dicts() == oracle(task, 4)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_any_order_of_finishing_gives_the_same_files(fake, tmp_path, workers):
    def shake(_):
        time.sleep(random.random() * 0.004)

    trees = []
    for name, probe in [("still", fake.Probe()), ("shaken", fake.Probe(on_load=shake, on_measure=shake))]:
        run(tmp_path / name, [fake.FakeTask(n=30, batch_size=3, probe=probe)], workers=workers if probe.on_load else 0)
        files = (p for p in (tmp_path / name).rglob("*") if p.is_file())
        trees.append({str(p.relative_to(tmp_path / name)): p.read_bytes() for p in files})
    assert trees[0] == trees[1]


def test_batches_follow_the_plan_and_only_one_thread_infers(fake, tmp_path):
    probe, threads = fake.Probe(), set()
    probe.on_infer = lambda _: threads.add(threading.get_ident())
    run(tmp_path, [fake.FakeTask(n=10, batch_size=3, probe=probe)], workers=3)
    assert probe.batches == [3, 1, 3, 1, 2]
    assert threads == {threading.get_ident()}


def test_with_workers_nothing_but_the_model_runs_in_the_calling_thread(fake, tmp_path):
    threads = set()
    probe = fake.Probe(on_load=lambda _: threads.add(threading.get_ident()))
    probe.on_measure = probe.on_load
    run(tmp_path, [fake.FakeTask(n=20, probe=probe)], workers=2)
    assert threading.get_ident() not in threads
    assert len(threads) <= 2


def test_a_finished_task_is_never_opened(fake, tmp_path):
    first, second = fake.FakeTask(("a", "d")), fake.FakeTask(("b", "d"))
    run(tmp_path, [first], workers=1)
    progress = Listener()
    _, profiles = run(tmp_path, [first, second], workers=1, progress=progress)
    assert first.probe.opened == [("a", "d")]
    assert second.probe.opened == [("b", "d")]
    assert progress.titles == ["b/d"]
    assert progress.done == 20
    assert [p.path for p in profiles] == [("b", "d")]


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("memory_items", [3, 8, 30])
def test_the_bound_on_memory_holds(fake, tmp_path, workers, memory_items):
    alive, most, lock = [0], [0], threading.Lock()

    class Decoded:
        def __init__(self, array):
            self.array = array
            with lock:
                alive[0] += 1
                most[0] = max(most[0], alive[0])

        def __del__(self):
            with lock:
                alive[0] -= 1

    class Stages(fake.FakeStages):
        def load(self, item):
            return Decoded(super().load(item))

        def converse(self, item, loaded):
            return super().converse(item, loaded.array)

    probe = fake.Probe(on_measure=lambda _: time.sleep(0.002))
    task = fake.FakeTask(n=60, batch_size=3, infer_time=0.001, probe=probe)
    task.open = lambda _: Stages(task)
    run(tmp_path, [task], workers=workers, memory_items=memory_items, chunk=15)
    gc.collect()
    assert alive == [0]
    assert most[0] <= memory_items
    assert workers == 0 or most[0] >= min(memory_items, 6)


def test_the_model_is_overlapped_by_decoding_and_measuring(fake, tmp_path):
    probe = fake.Probe()

    def wait_for_the_workers(n):
        # While the model is at batch n, the next batch is decoded and the one before is measured.
        deadline = time.monotonic() + 20
        while len(probe.loaded) < min(6 * (n + 1), 60) or len(probe.measured) < 6 * (n - 1):
            assert time.monotonic() < deadline, "nothing overlaps with the model"
            time.sleep(0.001)

    probe.on_infer = wait_for_the_workers
    task = fake.FakeTask(n=60, batch_size=6, load_time=0.001, infer_time=0.002, probe=probe)
    _, (profile,) = run(tmp_path, [task], workers=2, chunk=30)
    assert profile.items == 60
    assert profile.seconds["load"] >= 60 * 0.001
    assert 10 * 0.002 <= profile.seconds["infer"] <= profile.clock
    assert profile.seconds["wait"] < profile.clock
    assert all(spent > 0 for spent in profile.seconds.values())


def test_profiles_add_up():
    one, two = Profile(("a",)), Profile(("b",))
    with one.on_the_clock(), one.timing("load"), two.on_the_clock(), two.timing("load"):
        time.sleep(0.001)
    one.items, two.items = 3, 4
    both = total([one, two]).as_dict()
    assert both["items"] == 7
    assert both["clock"] == one.clock + two.clock
    assert both["seconds"]["load"] == one.seconds["load"] + two.seconds["load"]
    assert both["items_per_second"] == 7 / both["clock"]
    assert total([]).as_dict()["items_per_second"] is None


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("trouble", ["bad", "bad_truth"])
def test_skip_lists_and_counts_what_cannot_be_read(fake, tmp_path, workers, trouble):
    progress = Listener()
    task = fake.FakeTask(n=12, batch_size=4, **{trouble: ("s03", "s04", "s05", "s06", "s07", "s11")})
    rows, _ = run(tmp_path, [task], workers=workers, on_error="skip", progress=progress)
    states = dict(zip(rows[0]["item_id"], rows[0]["state"], strict=True))
    assert list(states) == [f"s{i:02d}" for i in range(12)]
    reason = {"bad": "the picture is cut short", "bad_truth": "the mask is cut short"}[trouble]
    assert {item for item, state in states.items() if state == reason} == getattr(task, trouble)
    assert (progress.done, progress.failed) == (12, 6)
    # The second batch has nothing that can be read: the model is not asked.
    assert task.probe.batches == ([3, 3] if trouble == "bad" else [4, 4, 4])


@pytest.mark.parametrize("workers", [0, 2])
def test_of_a_batch_that_the_model_cannot_read_each_item_is_tried(fake, tmp_path, workers):
    task = fake.FakeTask(n=12, batch_size=4, bad_map=("s05", "s06"))
    rows, _ = run(tmp_path, [task], workers=workers, on_error="skip")
    states = dict(zip(rows[0]["item_id"], rows[0]["state"], strict=True))
    assert {item for item, state in states.items() if state == "the map is cut short"} == {"s05", "s06"}
    assert task.probe.batches == [4, 4, 1, 1, 1, 1, 4]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("trouble", ["bad", "bad_truth", "bad_map"])
def test_stop_names_the_item_and_keeps_what_is_finished(fake, tmp_path, workers, trouble):
    task = fake.FakeTask(n=20, batch_size=2, **{trouble: ("s09",)})
    with pytest.raises(RunError, match=r"'s09' of model/data") as caught:
        run(tmp_path, [task], workers=workers)
    assert "on_error: skip" in str(caught.value)
    assert "s09" in caught.value.got
    assert isinstance(caught.value.__cause__, DataError)
    assert len(list(tmp_path.rglob("rows/**/*.parquet"))) >= 2
    setattr(task, trouble, set())
    rows, _ = run(tmp_path, [task], workers=workers)
    assert len(rows[0]) == 20


def test_of_several_unreadable_items_the_first_is_named(fake, tmp_path):
    slow_first = fake.Probe(on_load=lambda item: time.sleep(0.05 if item.item_id == "s00" else 0))
    task = fake.FakeTask(n=20, batch_size=2, bad=("s01", "s05", "s06"), probe=slow_first)
    with pytest.raises(RunError, match="'s01'"):
        run(tmp_path, [task], workers=4)


class BoomError(Exception):
    pass


def boom(what):
    def raise_it(got):
        if what in (got, getattr(got, "item_id", None)):
            raise BoomError("boom")

    return raise_it


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize(
    ("hook", "what", "note"),
    [
        ("on_load", "s09", "while item 's09' of model/data was being loaded"),
        ("on_infer", 5, "while model of model/data was asked to look"),
        ("on_measure", "s09", "while item 's09' of model/data was being measured"),
    ],
)
def test_any_other_error_ends_the_run_cleanly(fake, tmp_path, workers, hook, what, note):
    before = threading.active_count()
    probe = fake.Probe(**{hook: boom(what)})
    with pytest.raises(BoomError) as caught:
        run(tmp_path, [fake.FakeTask(n=20, batch_size=2, probe=probe)], workers=workers)
    assert caught.value.__notes__ == [note]
    assert any(entry.name == "raise_it" for entry in caught.traceback)
    assert threading.active_count() == before
    assert len(list(tmp_path.rglob("rows/**/*.json"))) >= 2
    rows, _ = run(tmp_path, [fake.FakeTask(n=20, batch_size=2)], workers=workers)
    assert len(rows[0]) == 20


def test_ctrl_c_in_the_model_keeps_what_the_model_had_finished(fake, tmp_path):
    def interrupt(n):
        if n == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, [fake.FakeTask(n=20, batch_size=2, probe=fake.Probe(on_infer=interrupt))], workers=2)
    assert len(list(tmp_path.rglob("rows/**/*.parquet"))) == 2


def test_a_model_that_loses_an_item_is_found_out(fake, tmp_path):
    task = fake.FakeTask(n=6, batch_size=3)
    stages = fake.FakeStages(task)
    answer = stages.answer
    stages.answer = lambda *asked: answer(*asked)[1:]
    task.open = lambda _: stages
    with pytest.raises(RuntimeError, match=r"0 answers to 1 requests of model\.look"):
        run(tmp_path, [task], workers=1)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_while_storing_stops_the_run(fake, tmp_path, workers):
    task = fake.FakeTask(n=200, batch_size=2, infer_time=0.002)
    task.schema = pl.Schema({"other": pl.String})
    with pytest.raises(RunError, match="columns"):
        run(tmp_path, [task], workers=workers)
    assert len(task.probe.batches) < 100
    assert not list(tmp_path.rglob("rows/**/*.parquet"))


def test_the_opened_hook_runs_in_the_thread_of_the_model(fake, tmp_path):
    calls = []
    plan = make_plan([fake.FakeTask(("a",)), fake.FakeTask(("b",), n=0)])
    with Store(tmp_path, CONFIG, reading="plain") as store:
        work = [(p, p.chunks) for p in plan.tasks]
        run_local(work, store, Options(workers=1), opened=lambda: calls.append(threading.get_ident()))
    assert set(calls) == {threading.get_ident()}


def test_with_skip_no_error_of_a_plug_in_ends_a_run(fake, tmp_path):
    probe = fake.Probe(on_measure=boom("s09"))
    rows, _ = run(tmp_path, [fake.FakeTask(n=20, batch_size=2, probe=probe)], workers=2, on_error="skip")
    states = dict(zip(rows[0]["item_id"], rows[0]["state"], strict=True))
    assert {item: state for item, state in states.items() if state != "ok"} == {"s09": "BoomError while being measured"}


@pytest.mark.parametrize(("failures", "ends"), [(1, True), (2, False), (None, False)])
def test_a_run_ends_when_more_items_fail_than_are_allowed(fake, tmp_path, failures, ends):
    task = fake.FakeTask(n=20, batch_size=2, bad=("s03", "s11"))
    plan = make_plan([task], chunk_size=4)
    with Store(tmp_path, CONFIG, reading="plain") as store:
        work, options = [(p, p.chunks) for p in plan.tasks], Options(chunk=4, workers=1, on_error="skip")
        if ends:
            with pytest.raises(LimitError, match="more items failed"):
                run_local(work, store, options, allowance=Allowance(failures))
        else:
            run_local(work, store, options, allowance=Allowance(failures))


def test_a_deadline_ends_a_run_with_its_chunks_safe(fake, tmp_path):
    task = fake.FakeTask(n=40, batch_size=2, infer_time=0.2)
    plan = make_plan([task], chunk_size=4)
    with Store(tmp_path, CONFIG, reading="plain") as store:
        allowance = Allowance(deadline=time.monotonic() + 1.5)
        with pytest.raises(LimitError, match="deadline"):
            run_local([(p, p.chunks) for p in plan.tasks], store, Options(chunk=4, workers=0), allowance=allowance)
        assert 1 <= store.n_finished < 10


def test_another_reading_asks_nothing_and_its_rows_follow_from_what_was_said(fake, tmp_path):
    task = fake.FakeTask(n=23, batch_size=3, bad=("s04",))
    first, _ = run(tmp_path, [task], workers=2, on_error="skip")
    asked = len(task.probe.batches)
    other = fake.FakeTask(n=23, batch_size=3, bad=("s04",), thresholds=(0.5,), probe=task.probe)
    rows, _ = run(tmp_path, [other], workers=2, on_error="skip")
    assert len(task.probe.batches) == asked
    assert rows[0]["score"].to_list() == first[0]["score"].to_list()
    assert rows[0]["state"].to_list() == first[0]["state"].to_list()
    assert [c and c[1:2] for c in first[0]["counts"].to_list()] == rows[0]["counts"].to_list()


def test_a_picture_that_changes_costs_its_chunk_and_no_other(fake, tmp_path):
    files = {f"s{i:02d}": (tmp_path / f"s{i:02d}.png",) for i in range(12)}
    for (path,) in files.values():
        path.write_text("as it was")
    task = fake.FakeTask(n=12, batch_size=2, files=files)
    run(tmp_path / "run", [task], workers=2)
    asked = len(task.probe.batches)
    files["s05"][0].touch()
    run(tmp_path / "run", [task], workers=2)
    assert len(task.probe.batches) == asked, "the same content at another time is the same picture"
    files["s05"][0].write_text("another one")
    run(tmp_path / "run", [task], workers=2)
    assert len(task.probe.batches) == asked + 2
