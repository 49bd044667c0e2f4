"""Independent items: spread over processes as far as these are free, or one after another in this thread.

::

    processes     item  item  item ...         of this task and of those after it, in the order of the plan
    this thread        -> journal, measure     in the order in which they come

Each is asked about alone, with one thread of torch, so its bytes depend neither on the process nor on what else runs.
Answers of expensive items are journalled as they come: a kill costs what was in flight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from pickle import PicklingError

from medground.benchmarks.base import Stages
from medground.benchmarks.requests import Outcomes, Transcript
from medground.errors import RunError
from medground.running import workers
from medground.running.chunks import Picture
from medground.running.journal import Journal
from medground.running.measuring import Measuring
from medground.running.pictures import look_at
from medground.running.plan import Chunk
from medground.running.units import Unit, units_of

Reply = tuple[Outcomes, list[Picture]]
_AHEAD = 2
"""Items a process that are handed over at once, so that none waits for this thread."""


class Independent:
    """A task whose items are asked about one by one.

    Args:
        measuring: what lies behind the models.
        chunks: those of which nothing is kept.
    """

    def __init__(self, measuring: Measuring, chunks: Sequence[Chunk]) -> None:
        self.behind, self._chunks = measuring, chunks
        self._planned = measuring.planned
        self._journals: dict[str, Journal] = {}

    def units(self) -> Iterator[Unit]:
        """Yield the units that must be asked about; those that the journal holds are measured at once."""
        held: Mapping[str, Transcript] = {}
        for unit in units_of(self._chunks):
            if self.behind.stopping:
                return
            chunk = unit.gathering.chunk
            if chunk.name not in self._journals:
                self._journals[chunk.name] = self.behind.shared.store.journal(chunk)
                held = self._journals[chunk.name].read() if self._planned.task.expensive else {}
            if unit.item.item_id in held:
                unit.transcript = held[unit.item.item_id]
                unit.gathering.pictures[unit.position] = look_at(unit.item)
                self.behind.read([unit])
            else:
                yield unit

    def take(self, unit: Unit, reply: Reply) -> None:
        """Journal what was said about an item, and have it measured."""
        outcome, unit.gathering.pictures[unit.position] = reply
        if self.behind.settle(unit, outcome):
            assert unit.transcript is not None
            if self._planned.task.expensive:
                self._journals[unit.gathering.chunk.name].add(unit.transcript)
            self.behind.read([unit])

    def ask_here(self, stages: Stages) -> None:
        """Ask about one item after another in this thread."""
        for unit in self.units():
            self.behind.shared.allowance.check_time()
            with self.behind.profile.timing("infer"):
                reply = workers.converse(stages, unit.item, self._planned.batch_size)
            self.take(unit, reply)

    def submit(self, unit: Unit, pool: Executor) -> Future[Reply]:
        """Hand an item over to another process."""
        index = unit.gathering.chunk.index * self._planned.chunk_size + unit.position
        return workers.submit(pool, self._planned.task, self._planned.fingerprint, index)


class Flight:
    """Items of one task after another, on their way through processes.

    Args:
        pool: the processes.
        size: how many they are.
    """

    def __init__(self, pool: Executor, size: int) -> None:
        self._pool, self._bound = pool, _AHEAD * size
        self._flying: dict[Future[Reply], tuple[Independent, Unit]] = {}
        self._stopping = False

    def ask(self, task: Independent) -> None:
        """Hand over every item of a task as processes get free; the last are still on their way on return."""
        for unit in task.units():
            if self._stopping:
                return
            self._flying[task.submit(unit, self._pool)] = task, unit
            while len(self._flying) >= self._bound:
                self._land()

    def land_all(self) -> None:
        """Wait for everything that is on its way."""
        while self._flying:
            self._land()

    def cancel(self) -> None:
        """Call back what no process has begun, and take what the others say."""
        self._call_back()
        self.land_all()

    def _call_back(self) -> None:
        self._stopping = True
        for future in [future for future in self._flying if future.cancel()]:
            del self._flying[future]

    def _land(self) -> None:
        """Take the items that have come back; at least one. After an error nothing more is handed over."""
        first, _ = next(iter(self._flying.values()))
        allowance = first.behind.shared.allowance
        with first.behind.profile.timing("infer"):
            wait(self._flying, allowance.left(), FIRST_COMPLETED)
        allowance.check_time()
        for future in [future for future in self._flying if future.done()]:
            task, unit = self._flying.pop(future)
            try:
                task.take(unit, _reply(task, unit, future))
            except Exception as error:  # of several the one whose item comes first is raised in the end
                task.behind.record(unit.order, error)
            if task.behind.stopping:
                self._call_back()


def _reply(task: Independent, unit: Unit, future: Future[Reply]) -> Reply:
    where = f"{unit.item.item_id!r} of {task.behind.name}"
    try:
        return future.result()
    except BrokenExecutor as error:
        raise RunError(
            "a worker process ended while it was asked about an item",
            where=where,
            got=error,
            fix="give it more memory, put a class of your own where `import` finds it, or engine.workers: 1",
        ) from error
    except (PicklingError, AttributeError, TypeError) as error:
        if "pickle" not in str(error):
            raise
        raise RunError(
            "a task cannot be handed to another process",
            where=where,
            got=error,
            fix="keep its components in modules that `import` finds, or engine.workers: 1",
        ) from error
