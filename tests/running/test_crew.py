"""The owner of a run: who gets which chunk, and what becomes of deaths, errors and limits. No process is started."""

from __future__ import annotations

import itertools

import pytest

from medground.errors import LimitError, RunError
from medground.running.allowance import Allowance
from medground.running.chunk_store import ChunkStore
from medground.running.chunks import Failure
from medground.running.crew import Died, Ended, Owner, Ready
from medground.running.plan import make_plan
from medground.running.progress import Progress
from medground.running.worker import Done
from medground.storage import FolderStorage


class Script:
    """A crew that does what it is told: the worker whose turn it is ends its first order."""

    def __init__(self, size, *, late=(), fates=None):
        self.size, self.late, self.fates = size, set(late), fates or {}
        self.given = {worker: [] for worker in range(size)}
        self.history, self.events, self.stopped, self.starts, self.turn = [], [], False, [], 0
        self.most_waiting = 0

    def start(self, worker):
        self.starts.append(worker)
        if worker not in self.late:
            self.events.append(Ready(worker))

    def submit(self, worker, order):
        self.given[worker].append(order)
        self.history.append((worker, order.task, order.chunk))
        self.most_waiting = max(self.most_waiting, len(self.given[worker]))

    def wait(self, timeout):
        if self.events:
            events, self.events = self.events, []
            return events
        busy = [worker for worker, orders in self.given.items() if orders]
        worker = busy[self.turn % len(busy)]
        self.turn += 1
        order = self.given[worker][0]
        fate = self.fates.get((order.task, order.chunk), [])
        outcome = fate.pop(0) if fate else done(order)
        if outcome == "dies":
            self.given[worker] = []
            return [Died(worker, "signal 9")]
        self.given[worker].pop(0)
        return [Ended(worker, order, outcome(order) if callable(outcome) else outcome)]

    def stop(self):
        self.stopped = True


def done(order, failures=(), asked=None):
    return Done(order, f"seal-{order.name}", tuple(failures), {"infer": 1.0}, 1.0, asked or {})


class Listener(Progress):
    def __init__(self):
        self.items, self.failed, self.said = 0, 0, []

    def advance(self, *, failed=False):
        self.items += 1
        self.failed += failed

    def say(self, message):
        self.said.append(message)


@pytest.fixture
def plan(fake):
    return make_plan([fake.FakeTask(("a", "d"), 24), fake.FakeTask(("b", "d"), 12)], chunk_size=4)


def run(plan, crew, tmp_path, allowance=None, asked=lambda *_: None):
    store, progress = ChunkStore(FolderStorage(tmp_path), reading="plain"), Listener()
    work = [(planned, planned.chunks) for planned in plan.tasks]
    owner = Owner(crew, work, store, progress, allowance or Allowance(), asked)
    return owner, store, progress


def test_every_chunk_is_computed_once_and_known(plan, tmp_path):
    crew = Script(3)
    owner, store, progress = run(plan, crew, tmp_path)
    profiles = owner.run()
    assert sorted((task, chunk) for _, task, chunk in crew.history) == [
        *((0, i) for i in range(6)),
        *((1, i) for i in range(3)),
    ]
    assert all(store.seal(chunk) == f"seal-{chunk.name}" for chunk in plan.chunks)
    assert (progress.items, store.n_written, crew.stopped) == (36, 9, True)
    assert [(p.path, p.items, p.seconds["infer"]) for p in profiles] == [(("a", "d"), 24, 6.0), (("b", "d"), 12, 3.0)]


def test_a_worker_keeps_its_model_as_long_as_there_is_work_for_it(plan, tmp_path):
    crew = Script(2)
    run(plan, crew, tmp_path)[0].run()
    tasks = {worker: [task for who, task, _ in crew.history if who == worker] for worker in (0, 1)}
    changes = sum(a != b for some in tasks.values() for a, b in itertools.pairwise(some))
    assert {some[0] for some in tasks.values()} == {0, 1}
    assert changes <= 1


def test_no_worker_holds_more_than_two_chunks(plan, tmp_path):
    crew = Script(2)
    run(plan, crew, tmp_path)[0].run()
    assert crew.most_waiting == 2


def test_a_worker_that_never_gets_ready_holds_nobody_up(plan, tmp_path):
    crew = Script(3, late=(1,))
    run(plan, crew, tmp_path)[0].run()
    assert not [who for who, _, _ in crew.history if who == 1]


def test_a_death_costs_the_chunks_in_flight_and_nothing_else(plan, tmp_path):
    crew = Script(2, fates={(0, 2): ["dies"]})
    owner, _, progress = run(plan, crew, tmp_path)
    owner.run()
    counts = {(t, c): sum((t, c) == entry[1:] for entry in crew.history) for t, c in {e[1:] for e in crew.history}}
    assert sum(counts.values()) - 9 in (1, 2)
    assert counts[0, 2] == 2
    assert progress.items == 36
    assert len(crew.starts) == 3
    assert "has ended (signal 9)" in progress.said[0]


def test_a_chunk_that_ends_every_worker_is_named(plan, tmp_path):
    crew = Script(2, fates={(0, 2): ["dies"] * 3})
    with pytest.raises(RunError, match="one worker after another") as caught:
        run(plan, crew, tmp_path)[0].run()
    assert caught.value.where == "a/d, chunk 2 (items 's08' and on)"
    assert crew.stopped


def test_after_an_error_nothing_is_handed_out_and_the_first_is_raised(plan, tmp_path):
    crew = Script(2, fates={(0, 1): [ValueError("first")], (1, 0): [ValueError("second")]})
    owner, store, _ = run(plan, crew, tmp_path)
    with pytest.raises(ValueError, match="first"):
        owner.run()
    assert store.n_written < 9
    assert not any(crew.given.values())


def test_failures_are_counted_where_the_run_is_owned(plan, tmp_path):
    bad = [lambda order: done(order, [Failure("s00", "cut", "cut"), Failure("s01", "cut", "cut")])]
    owner, store, progress = run(plan, Script(2, fates={(0, 0): list(bad)}), tmp_path, Allowance(failures=2))
    owner.run()
    assert (progress.failed, len(store.failures(plan.chunks[0]))) == (2, 2)
    with pytest.raises(LimitError, match="max_failures"):
        run(plan, Script(2, fates={(0, 0): list(bad)}), tmp_path, Allowance(failures=1))[0].run()


def test_the_deadline_ends_every_worker(plan, tmp_path):
    crew = Script(2)
    allowance = Allowance(deadline=0.0)
    with pytest.raises(LimitError, match="deadline"):
        run(plan, crew, tmp_path, allowance)[0].run()
    assert crew.stopped


def test_a_worker_that_cannot_be_made_is_an_error_of_the_run(plan, tmp_path):
    crew = Script(1)
    crew.start = lambda worker: crew.events.append(Died(worker, "x", RunError("no such table")))
    with pytest.raises(RunError, match="no such table"):
        run(plan, crew, tmp_path)[0].run()


def test_what_was_asked_is_summed_over_workers(plan, tmp_path):
    counts = {}

    def asked(label, player):
        counts[label] = player.ledger.record()

    def said(n):
        return [lambda order: done(order, asked={"chat": {"requests": n, "model": "m"}})]

    # The tasks go to different workers; counts of one worker grow.
    crew = Script(2, fates={(0, c): said(c + 1) for c in range(6)} | {(1, c): said(10 * (c + 1)) for c in range(3)})
    run(plan, crew, tmp_path, asked=asked)[0].run()
    assert counts["chat"]["model"] == "m"
    last = [[c + 1 if task == 0 else 10 * (c + 1) for who, task, c in crew.history if who == w][-1] for w in (0, 1)]
    assert counts["chat"]["requests"] == sum(last)
