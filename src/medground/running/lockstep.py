"""Items asked about side by side: workers decode ahead of the models, cohort after cohort in the order of the plan."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from medground.benchmarks.base import Stages
from medground.running.measuring import Measuring
from medground.running.pictures import look_at
from medground.running.plan import Chunk
from medground.running.units import Unit, units_of


class Lockstep:
    """The half of a task that lies before its models, and the models.

    Args:
        measuring: what lies behind them.
        stages: the opened task.
        players: role -> built component.
    """

    def __init__(self, measuring: Measuring, stages: Stages, players: Mapping[str, Any]) -> None:
        self._behind, self._stages, self._players = measuring, stages, players
        self._changed = measuring.changed
        planned, options = measuring.planned, measuring.shared.options
        self._bound = options.in_memory(planned.task.cohort or planned.batch_size)
        self._waits = options.n_workers > 0
        self._units: Iterator[Unit] = iter(())
        self._loading: deque[tuple[Unit, Future[Any]]] = deque()
        self._in_memory = 0
        measuring.on_stop, measuring.on_measured = self._cancel, self._make_room

    def run(self, chunks: Sequence[Chunk]) -> None:
        """Ask about every item of the chunks."""
        self._units = units_of(chunks)
        for size in (len(cohort) for chunk in chunks for cohort in chunk.cohorts()):
            self._behind.shared.allowance.check_time()
            units = self._next_loaded(size)
            if self._behind.stopping:
                break
            self._converse(units)

    # Decoding, ahead of the models. With the lock held:

    def _feed(self) -> None:
        """Start decoding as far ahead as memory allows."""
        while not self._behind.stopping and self._in_memory < self._bound:
            unit = next(self._units, None)
            if unit is None:
                return
            unit.in_memory = True
            self._in_memory += 1
            self._loading.append((unit, self._behind.shared.pool.submit(self._load, unit)))

    def _cancel(self) -> None:
        for _, future in self._loading:
            future.cancel()
        self._loading.clear()

    def _make_room(self, unit: Unit) -> None:
        if unit.in_memory:
            self._in_memory -= 1
            self._feed()

    # Without it:

    def _load(self, unit: Unit) -> Any:
        with self._behind.profile.timing("load"):
            unit.gathering.pictures[unit.position] = look_at(unit.item)
            return self._stages.load(unit.item)

    def _next_loaded(self, count: int) -> list[Unit]:
        """Return the units of the next cohort, those left out that could not be read. Nothing once stopping."""
        taken: list[tuple[Unit, Future[Any]]] = []
        while len(taken) < count:
            with self._changed:
                self._feed()
                # Wait for room, unless everything in memory is this cohort: it is asked about side by side, so a
                # cohort larger than memory allows is loaded all the same.
                self._changed.wait_for(self._ready(len(taken)))
                if self._behind.stopping:
                    return []
                if not self._loading:
                    self._bound = self._in_memory + 1
                    self._feed()
                taken.append(self._loading.popleft())
        units = []
        for unit, future in taken:
            try:
                with self._waiting():
                    unit.loaded = future.result()
            except Exception as error:
                self._behind.fail(unit, self._behind.failure(unit, error, "loaded"))
            else:
                units.append(unit)
        return units

    def _ready(self, taken: int) -> Callable[[], bool]:
        return lambda: self._behind.stopping or bool(self._loading) or self._in_memory <= taken

    def _waiting(self) -> AbstractContextManager[None]:
        # Without workers the models' thread decodes by itself: that is no waiting.
        return self._behind.profile.timing("wait") if self._waits else nullcontext()

    def _converse(self, units: Sequence[Unit]) -> None:
        """Ask about a cohort, then make its rows."""
        conversations = [self._stages.converse(unit.item, unit.loaded) for unit in units]
        outcomes = self._behind.ask(conversations, self._stages.answer, self._players)
        settled = [unit for unit, outcome in zip(units, outcomes, strict=True) if self._behind.settle(unit, outcome)]
        self._behind.read(settled)
