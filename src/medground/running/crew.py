"""Handing chunks out to workers in other processes or on other machines, and taking their receipts: one owner a run.

::

    owner     order, order, ... -> a worker that is free, of the task whose model it holds
    workers   load, ask, measure, store                        -> receipt
    owner     <- receipts, failures, deaths; progress, limits

A worker has one chunk under way and one waiting, no more: what is slow holds nobody else up. One that dies costs these
two; they are handed to others, and a new worker takes its place. Nothing that a worker says is needed to go on: its
chunks are in the store, and an owner that dies is replaced by the same command.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol

from medground.errors import LimitError, RunError
from medground.running.allowance import Allowance
from medground.running.chunk_store import ChunkStore
from medground.running.plan import Chunk, TaskPlan
from medground.running.profile import Profile
from medground.running.progress import Progress
from medground.running.worker import Done, Order, orders_of

_AHEAD = 2
"""Chunks that a worker is given at once: one under way, and one so that it need not wait for the owner."""
_DEATHS = 3
"""Workers that may die at one chunk before it is held to be the cause."""


@dataclass(frozen=True)
class Ready:
    """A worker can take orders."""

    worker: int


@dataclass(frozen=True)
class Ended:
    """What became of an order: ``outcome`` is a receipt, or the error of a stage."""

    worker: int
    order: Order
    outcome: Done | Exception


@dataclass(frozen=True)
class Died:
    """A worker is no more; ``why`` in a sentence. ``lasting``: it never began, and another one would not either."""

    worker: int
    why: str
    lasting: Exception | None = None


Event = Ready | Ended | Died


class Crew(Protocol):
    """Workers by number, wherever they are."""

    size: int

    def start(self, worker: int) -> None:
        """Start a worker, or another one in its place; it reports ``Ready``."""

    def submit(self, worker: int, order: Order) -> None:
        """Give an order to a worker; it reports ``Ended``. Orders of one worker are carried out one after another."""

    def wait(self, timeout: float | None) -> Sequence[Event]:
        """Return what has been reported, at least one; nothing once the seconds have passed."""

    def stop(self) -> None:
        """End every worker at once."""


@dataclass
class _Hand:
    """What the owner knows of a worker."""

    ready: bool = False
    task: int | None = None
    orders: list[Order] = field(default_factory=list)


class Owner:
    """Hands out the chunks of a run.

    Args:
        crew: the workers.
        work: tasks with their chunks that are to be computed.
        store: of the run; workers write into the same place.
        progress: what is told.
        allowance: failures and time that the run may take.
        asked: told label and what was asked of it, whenever that is known.
    """

    def __init__(
        self,
        crew: Crew,
        work: Sequence[tuple[TaskPlan, Sequence[Chunk]]],
        store: ChunkStore,
        progress: Progress,
        allowance: Allowance,
        asked: Callable[[str, Any], None] = lambda *_: None,
    ) -> None:
        self._crew, self._store, self._progress, self._allowance = crew, store, progress, allowance
        self._chunks = {order: chunk for _, chunks in work for order, chunk in _with_chunks(chunks)}
        self._pending = {p.chunks[0].task_index: deque(orders_of(chunks)) for p, chunks in work if chunks}
        self._profiles = {p.chunks[0].task_index: Profile(p.path) for p, chunks in work if chunks}
        self._hands = [_Hand() for _ in range(crew.size)]
        self._deaths: Counter[Order] = Counter()
        self._errors: list[tuple[Order, Exception]] = []
        self._began: dict[int, float] = {}
        self._counts: dict[int, Mapping[str, Mapping[str, Any]]] = {}
        self._asked = asked

    def run(self) -> list[Profile]:
        """Have every chunk computed; return a profile a task.

        Raises:
            RunError: a chunk ends one worker after another, or none can be started.
            LimitError: more failures or time than allowed.
            Exception: of several errors of stages the one whose chunk comes first; what was under way is waited for.
        """
        try:
            for worker in range(self._crew.size):
                self._crew.start(worker)
            while self._unfinished():
                self._hand_out()
                events = self._crew.wait(self._allowance.left())
                self._allowance.check_time()
                for event in events:
                    self._take(event)
        finally:
            self._crew.stop()
        if self._errors:
            raise min(self._errors, key=lambda entry: (entry[0].task, entry[0].chunk))[1]
        return list(self._profiles.values())

    def _unfinished(self) -> bool:
        under_way = any(hand.orders for hand in self._hands)
        return under_way or (not self._errors and any(self._pending.values()))

    def _hand_out(self) -> None:
        """Give every worker that is ready what it lacks, those first who have least."""
        if self._errors:
            return
        for filled in range(_AHEAD):
            for worker, hand in enumerate(self._hands):
                if hand.ready and len(hand.orders) == filled and (order := self._next(worker)) is not None:
                    hand.task = order.task
                    hand.orders.append(order)
                    self._began.setdefault(order.task, time.perf_counter())
                    self._crew.submit(worker, order)

    def _next(self, worker: int) -> Order | None:
        """Return the next chunk for a worker: of its own task, else of the one with most to do a worker."""
        hand = self._hands[worker]
        waiting = {task: len(orders) for task, orders in self._pending.items() if orders}
        if not waiting:
            return None
        if hand.task in waiting:
            return self._pending[hand.task].popleft()
        if hand.orders:  # its task is done; it goes on with another once it is idle
            return None
        at_it = Counter(h.task for h in self._hands if h.orders)
        task = min(waiting, key=lambda t: (at_it[t] / waiting[t], t))
        return self._pending[task].popleft()

    def _take(self, event: Event) -> None:
        hand = self._hands[event.worker]
        if isinstance(event, Ready):
            hand.ready = True
        elif isinstance(event, Died):
            self._bury(event, hand)
        else:
            hand.orders.remove(event.order)
            if isinstance(event.outcome, Exception):
                self._errors.append((event.order, event.outcome))
            else:
                self._receive(event.worker, event.outcome)

    def _receive(self, worker: int, done: Done) -> None:
        chunk, profile = self._chunks[done.order], self._profiles[done.order.task]
        self._store.note(chunk, done.seal, done.failures)
        for stage, seconds in done.seconds.items():
            profile.seconds[stage] += seconds
        profile.items += len(chunk.items)
        profile.clock = time.perf_counter() - self._began[done.order.task]
        self._counts[worker] = done.asked
        for label in done.asked:
            self._asked(label, SimpleNamespace(ledger=SimpleNamespace(record=lambda one=label: self._total(one))))
        for position in range(len(chunk.items)):
            self._progress.advance(failed=position < len(done.failures))
        for failure in done.failures:
            self._allowance.count(failure)

    def _total(self, label: str) -> dict[str, Any]:
        """Return what was asked of somebody by all workers together; what is no count stands as the last one says."""
        total: dict[str, Any] = {}
        for counts in self._counts.values():
            for name, value in counts.get(label, {}).items():
                numbers = isinstance(value, (int, float)) and not isinstance(value, bool)
                total[name] = total.get(name, 0) + value if numbers else value
        return total

    def _bury(self, event: Died, hand: _Hand) -> None:
        lost, hand.orders, hand.ready, hand.task = hand.orders, [], False, None
        if event.lasting is not None:
            raise event.lasting
        for order in lost[:1]:  # the one that was under way
            self._deaths[order] += 1
            if self._deaths[order] >= _DEATHS:
                chunk = self._chunks[order]
                raise RunError(
                    "a chunk has ended one worker after another",
                    where=f"{'/'.join(chunk.path)}, chunk {chunk.index} (items {chunk.items[0].item_id!r} and on)",
                    got=f"{_DEATHS} workers; the last: {event.why}",
                    fix="give workers more memory, take fewer items a call (engine.batch_size), or look at these items",
                )
        for order in reversed(lost):
            self._pending[order.task].appendleft(order)
        count = f"{len(lost)} chunks" if len(lost) != 1 else "1 chunk"
        self._progress.say(f"worker {event.worker + 1} has ended ({event.why}): {count} are handed to others")
        self._crew.start(event.worker)


def _with_chunks(chunks: Sequence[Chunk]) -> list[tuple[Order, Chunk]]:
    return list(zip(orders_of(chunks), chunks, strict=True))


def refuse_no_worker(error: Exception) -> RunError:
    """Return the error of a worker that could not be made."""
    if isinstance(error, LimitError):
        return error
    return RunError(
        "a worker cannot be started",
        got=error,
        fix="what a run file names must be there on every machine, and its classes in modules that `import` finds",
    )
