"""The local engine: worker threads decode ahead of the model and measure behind it.

::

    workers       load ... load ...                  measure -> chunk complete
    this thread             infer, infer, infer, ... batch after batch in the order of the plan
    a writer                                                               -> store

Only ``infer`` has an order, and it is the plan's; everything else may finish in any order and lands in its place in
its chunk. So the number of workers, zero included, changes the time and nothing else.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from medground.benchmarks.base import Item, Measured, Stages
from medground.errors import DataError, ModelError, RunError
from medground.running.chunks import Failure
from medground.running.options import Options
from medground.running.plan import Chunk, TaskPlan
from medground.running.profile import Profile
from medground.running.progress import Progress
from medground.running.store import Store

_Outcome = tuple[Measured, Failure | None]
_UNWRITTEN_CHUNKS = 3
Work = Sequence[tuple[TaskPlan, Sequence[Chunk]]]


def run_local(
    work: Work,
    store: Store,
    options: Options,
    progress: Progress | None = None,
    opened: Callable[[], None] = lambda: None,
) -> list[Profile]:
    """Compute chunks and store each as soon as it is complete.

    Args:
        work: tasks with those of their chunks that are to be computed; a task without any is never opened.
        store: where the chunks go.
        options: workers, memory, what to do with an item that cannot be read.
        progress: what is told about it.
        opened: called after a task was opened, in the thread of the model.

    Returns:
        One profile for each task that was opened.

    Raises:
        RunError: an item cannot be read and ``on_error`` is ``stop``; or a chunk cannot be stored.
        Exception: whatever a stage raised, with a note that says where. All that the model had finished by then
            is measured first, and complete chunks are stored.
    """
    profiles = []
    # Storing waits for the disk: in a thread of its own, so that decoding does not.
    with _pool(options.n_workers) as pool, _pool(min(options.n_workers, 1)) as writer:
        for planned, chunks in work:
            if chunks:
                profile = Profile(planned.path)
                profiles.append(profile)
                with profile.on_the_clock():
                    task = _TaskRun(planned, pool, writer, store, options, progress or Progress(), profile)
                    task.run(chunks, opened)
    return profiles


class _Inline(Executor):
    """Runs what is submitted at once, in the calling thread: the engine without workers."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _pool(workers: int) -> Executor:
    return ThreadPoolExecutor(workers, thread_name_prefix="medground") if workers else _Inline()


@dataclass
class _Gathering:
    """A chunk whose items arrive in any order."""

    chunk: Chunk
    measured: dict[int, Measured] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)

    def complete(self) -> bool:
        return len(self.measured) == len(self.chunk.items)


@dataclass
class _Unit:
    """One item on its way through the stages. It holds its data only as long as a stage needs them."""

    order: int
    item: Item
    gathering: _Gathering
    position: int
    loaded: Any = None
    inferred: Any = None


class _TaskRun:
    """One task on its way."""

    def __init__(
        self,
        planned: TaskPlan,
        pool: Executor,
        writer: Executor,
        store: Store,
        options: Options,
        progress: Progress,
        profile: Profile,
    ) -> None:
        self._planned, self._store, self._progress, self._profile = planned, store, progress, profile
        self._pool, self._writer = pool, writer
        # Complete chunks that wait for a slow disk; measuring waits when there are more.
        self._unwritten = threading.BoundedSemaphore(_UNWRITTEN_CHUNKS)
        self._schema = planned.task.schema
        self._skip = options.on_error == "skip"
        self._bound = options.in_memory(planned.batch_size)
        self._waits = options.n_workers > 0
        self._name = "/".join(planned.path)
        # Guards what follows. Re-entrant, because without workers a submitted job runs inside it.
        self._changed = threading.Condition(threading.RLock())
        self._units: Iterator[_Unit] = iter(())
        self._loading: deque[tuple[_Unit, Future[Any]]] = deque()
        self._in_memory = 0
        self._jobs: set[Future[None]] = set()
        self._errors: list[tuple[int, BaseException]] = []
        self._stopping = False

    def run(self, chunks: Sequence[Chunk], opened: Callable[[], None]) -> None:
        """Open the task, compute the chunks, let go of the model."""
        self._progress.title(self._name)
        with self._profile.timing("open"):
            self._stages: Stages = self._planned.task.open()
            opened()
        self._units = _units(chunks)
        try:
            for batch in (batch for chunk in chunks for batch in chunk.batches()):
                units = self._next_loaded(len(batch))
                if self._stopping:
                    break
                self._infer(units)
        except BaseException:
            self._stop()
            raise
        finally:
            # What the model has finished is measured and its complete chunks are stored, whatever happened.
            while jobs := self._unfinished():
                wait(jobs)
        if self._errors:
            raise min(self._errors, key=lambda entry: entry[0])[1]

    def _stop(self) -> None:
        with self._changed:
            self._stopping = True
            for _, future in self._loading:
                future.cancel()
            self._loading.clear()
            self._changed.notify_all()

    # Decoding, ahead of the model.

    def _feed(self) -> None:
        """Start decoding as far ahead as memory allows. Called with the lock held."""
        while not self._stopping and self._in_memory < self._bound:
            unit = next(self._units, None)
            if unit is None:
                return
            self._in_memory += 1
            self._loading.append((unit, self._pool.submit(self._load, unit.item)))

    def _load(self, item: Item) -> Any:
        with self._profile.timing("load"):
            return self._stages.load(item)

    def _next_loaded(self, count: int) -> list[_Unit]:
        """Return the units of the next batch, those left out that could not be read. Nothing once stopping."""
        with self._changed:
            self._feed()
            with self._waiting():
                self._changed.wait_for(lambda: self._stopping or len(self._loading) >= count)
            taken = [self._loading.popleft() for _ in range(0 if self._stopping else count)]
        units = []
        for unit, future in taken:
            try:
                with self._waiting():
                    unit.loaded = future.result()
            except DataError as error:
                self._submit(unit, self._unreadable(unit, error))
            except Exception as error:
                error.add_note(f"while item {unit.item.item_id!r} of {self._name} was being loaded")
                raise
            else:
                units.append(unit)
        return units

    def _waiting(self) -> AbstractContextManager[None]:
        # Without workers the model's thread decodes by itself: that is no waiting.
        return self._profile.timing("wait") if self._waits else nullcontext()

    # The model.

    def _infer(self, units: Sequence[_Unit]) -> None:
        if not units:
            return
        ids = ", ".join(unit.item.item_id for unit in units)
        try:
            with self._profile.timing("infer"):
                inferred = self._stages.infer([unit.loaded for unit in units])
        except DataError as error:
            self._infer_apart(units, error)
            return
        except Exception as error:
            error.add_note(f"while the model of {self._name} was given {ids}")
            raise
        if len(inferred) != len(units):
            raise ModelError(
                "the model did not return one result an item",
                where=f"{self._name}: {ids}",
                expected=len(units),
                got=len(inferred),
            )
        for unit, result in zip(units, inferred, strict=True):
            unit.inferred = result
            self._submit(unit)

    def _infer_apart(self, units: Sequence[_Unit], error: DataError) -> None:
        """Find the items of a batch that the model could not read: each is asked for alone."""
        if len(units) == 1:
            self._submit(units[0], self._unreadable(units[0], error))
            return
        for unit in units:
            self._infer([unit])

    # Measuring and storing, behind the model.

    def _submit(self, unit: _Unit, known: _Outcome | None = None) -> None:
        self._track(self._pool.submit(self._recording, unit.order, self._finish, unit, known))

    def _track(self, future: Future[None]) -> None:
        with self._changed:
            self._jobs.add(future)
        future.add_done_callback(self._forget)

    def _forget(self, future: Future[None]) -> None:
        with self._changed:
            self._jobs.discard(future)

    def _unfinished(self) -> tuple[Future[None], ...]:
        with self._changed:
            return tuple(self._jobs)

    def _recording(self, order: int, job: Callable[..., None], *args: Any) -> None:
        """Run a job; its error stops the task, and is raised where the model runs."""
        try:
            job(*args)
        except BaseException as error:
            with self._changed:
                self._errors.append((order, error))
            self._stop()

    def _finish(self, unit: _Unit, known: _Outcome | None) -> None:
        """Measure a unit unless its outcome is known, put it in its place, have its chunk stored if it was the last."""
        measured, failure = known or self._measure(unit)
        with self._changed:
            self._in_memory -= 1
            self._feed()
            self._changed.notify_all()
        self._put(unit, measured, failure)
        self._progress.advance(failed=failure is not None)

    def _measure(self, unit: _Unit) -> _Outcome:
        loaded, inferred = unit.loaded, unit.inferred
        unit.loaded = unit.inferred = None
        try:
            with self._profile.timing("measure"):
                return self._stages.measure(unit.item, loaded, inferred), None
        except DataError as error:
            return self._unreadable(unit, error)
        except Exception as error:
            error.add_note(f"while item {unit.item.item_id!r} of {self._name} was being measured")
            raise

    def _unreadable(self, unit: _Unit, error: DataError) -> _Outcome:
        detail = " | ".join(line.strip() for line in str(error).splitlines())
        if not self._skip:
            raise RunError(
                "an item cannot be read",
                where=f"{unit.item.item_id!r} of {self._name}",
                got=detail,
                fix="mend or remove the file, or let the run skip and list such items: on_error: skip",
            ) from error
        return self._stages.failed(unit.item, error.what), Failure(unit.item.item_id, error.what, detail)

    def _put(self, unit: _Unit, measured: Measured, failure: Failure | None) -> None:
        gathering = unit.gathering
        with self._changed:
            gathering.measured[unit.position] = measured
            if failure is not None:
                gathering.failures[unit.position] = failure
            complete = gathering.complete()
            self._profile.items += 1
        if complete:
            self._unwritten.acquire()
            self._track(self._writer.submit(self._recording, unit.order, self._write, gathering))

    def _write(self, gathering: _Gathering) -> None:
        chunk = gathering.chunk
        measured = [(item.item_id, gathering.measured[i]) for i, item in enumerate(chunk.items)]
        failures = [failure for _, failure in sorted(gathering.failures.items())]
        try:
            with self._profile.timing("write"):
                self._store.write(chunk, self._schema, measured, failures)
        finally:
            self._unwritten.release()


def _units(chunks: Sequence[Chunk]) -> Iterator[_Unit]:
    order = count()
    for chunk in chunks:
        gathering = _Gathering(chunk)
        for position, item in enumerate(chunk.items):
            yield _Unit(next(order), item, gathering, position)
