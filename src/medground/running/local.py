"""The local engine: worker threads decode ahead of the models and measure behind them.

::

    workers       load ... load ...                        measure -> chunk complete
    this thread             converse, converse, converse, ... cohort after cohort in the order of the plan
    a writer                                                      -> store

Only the conversations have an order, and it is the plan's; everything else may finish in any order and lands in its
place in its chunk. So the number of workers, zero included, changes the time and nothing else. A task whose items are
independent is spread over processes instead; a chunk of which predictions are kept is only measured.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from medground.benchmarks.base import Item, Measured, Measurer, Reading, Stages
from medground.benchmarks.requests import Answer, Outcomes, Transcript, in_lockstep
from medground.errors import DataError, LimitError, RunError
from medground.running import workers
from medground.running.cast import Cast
from medground.running.chunks import Failure, Picture
from medground.running.options import Options
from medground.running.pictures import look_at
from medground.running.plan import Chunk, TaskPlan
from medground.running.predictions import as_kept
from medground.running.profile import Profile
from medground.running.progress import Progress
from medground.running.store import Store
from medground.running.threads import fixed_torch_threads

_UNWRITTEN_CHUNKS = 3
Work = Sequence[tuple[TaskPlan, Sequence[Chunk]]]


class _HaltError(BaseException):
    """Carries an error that must stop the run through code that would treat it as one item's."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass
class Allowance:
    """How many failures and how much time a run may take.

    Attributes:
        failures: at most this many; None: any number.
        deadline: monotonic time at which the run ends; None: never.
    """

    failures: int | None = None
    deadline: float | None = None
    failed: int = 0

    def count(self, failure: Failure) -> None:
        """Count one failure.

        Raises:
            LimitError: it is one too many.
        """
        self.failed += 1
        if self.failures is not None and self.failed > self.failures:
            raise LimitError(
                "more items failed than max_failures allows",
                where=failure.item,
                expected=f"at most {self.failures}",
                got=f"{self.failed}, the last: {failure.detail}",
                fix="correct the cause (failures.jsonl lists them), or raise engine.max_failures",
            )

    def check_time(self) -> None:
        """Raise a LimitError once the deadline has passed."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise LimitError(
                "the run's deadline has passed",
                where="engine.deadline",
                fix="the same command goes on from the finished chunks; a larger engine.deadline lets it end",
            )


def run_local(
    work: Work,
    store: Store,
    options: Options,
    progress: Progress | None = None,
    opened: Callable[[], None] = lambda: None,
    allowance: Allowance | None = None,
    *,
    ask: bool = True,
    asked: Callable[[str, Any], None] = lambda *_: None,
) -> list[Profile]:
    """Compute chunks and store each as soon as it is complete.

    Args:
        work: tasks with those of their chunks that are to be computed; a task without any is never opened.
        store: where the chunks go.
        options: workers, memory, what to do with an item that cannot be read.
        progress: what is told about it.
        opened: called after a task was opened, in the thread of the model.
        allowance: failures and time that the run may take.
        ask: whether models may be asked; if not, only what was said before is read.
        asked: told label and component of whoever was asked, whenever a task ends.

    Returns:
        One profile for each task that was opened.

    Raises:
        RunError: an item cannot be read and ``on_error`` is ``stop``; a limit is reached; a chunk cannot be stored.
        Exception: whatever a stage raised, with a note that says where. All that the model had finished by then
            is measured first, and complete chunks are stored.
    """
    profiles, allowance = [], allowance or Allowance()
    cast = Cast((planned.task for planned, chunks in work if chunks), asked)
    # Storing waits for the disk: in a thread of its own, so that decoding does not.
    with _pool(options.n_workers) as pool, _pool(min(options.n_workers, 1)) as writer, _Processes(options) as processes:
        for planned, chunks in work:
            if chunks:
                profile = Profile(planned.path)
                profiles.append(profile)
                told = progress or Progress()
                try:
                    with profile.on_the_clock():
                        shared = _Shared(pool, writer, processes, store, options, told, cast, allowance, ask)
                        _TaskRun(planned, shared, profile).run(chunks, opened)
                finally:
                    cast.release(planned.task)
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


def _pool(size: int) -> Executor:
    return ThreadPoolExecutor(size, thread_name_prefix="medground") if size else _Inline()


class _Processes:
    """Starts processes when a task first wants them, and stops them at the end."""

    def __init__(self, options: Options) -> None:
        self._workers = options.n_workers
        self._pool: Executor | None = None

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    @property
    def pool(self) -> Executor | None:
        """The pool, or None where one process is to do everything."""
        if self._pool is None and self._workers > 1:
            self._pool = workers.process_pool(self._workers)
        return self._pool


@dataclass(frozen=True)
class _Shared:
    """What the tasks of a run share."""

    pool: Executor
    writer: Executor
    processes: _Processes
    store: Store
    options: Options
    progress: Progress
    cast: Cast
    allowance: Allowance
    ask: bool


@dataclass
class _Gathering:
    """A chunk whose items arrive in any order."""

    chunk: Chunk
    measured: dict[int, Measured] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)
    transcripts: dict[int, Transcript] = field(default_factory=dict)
    pictures: dict[int, list[Picture]] = field(default_factory=dict)
    replies: dict[int, Transcript] = field(default_factory=dict)
    seal: str | None = None
    unsaid: set[int] = field(default_factory=set)
    """Positions of items about which nothing was said: their failures belong to the predictions."""

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
    transcript: Transcript | None = None
    measured: Measured | None = None


class _TaskRun:
    """One task on its way."""

    def __init__(self, planned: TaskPlan, shared: _Shared, profile: Profile) -> None:
        self._planned, self._shared, self._profile = planned, shared, profile
        self._store, self._progress = shared.store, shared.progress
        # Complete chunks that wait for a slow disk; measuring waits when there are more.
        self._unwritten = threading.BoundedSemaphore(_UNWRITTEN_CHUNKS)
        self._schema = planned.task.schema
        self._skip = shared.options.on_error == "skip"
        self._bound = shared.options.in_memory(planned.task.cohort or planned.batch_size)
        self._waits = shared.options.n_workers > 0
        self._name = "/".join(planned.path)
        # Guards what follows. Re-entrant, because without workers a submitted job runs inside it.
        self._changed = threading.Condition(threading.RLock())
        self._units: Iterator[_Unit] = iter(())
        self._loading: deque[tuple[_Unit, Future[Any]]] = deque()
        self._in_memory = 0
        self._jobs: set[Future[None]] = set()
        self._errors: list[tuple[int, BaseException]] = []
        self._stopping = False
        self._stages: Stages | None = None
        self._players: Mapping[str, Any] = {}
        self._measurer: Measurer | None = None
        self._reading: Reading | None = None

    def run(self, chunks: Sequence[Chunk], opened: Callable[[], None]) -> None:
        """Measure the chunks whose predictions are kept, ask about the others, let go of everything."""
        task = self._planned.task
        self._progress.title(self._name)
        with self._profile.timing("open"):
            if task.reading_roles:
                self._reading = task.open_reading(self._shared.cast.players(task.reading_roles))
            else:
                self._measurer = task.measurer()
            opened()
        try:
            unsaid = [chunk for chunk in chunks if not self._from_kept(chunk)]
            if unsaid and not self._shared.ask:
                raise RunError(
                    "a dataset, a model or a setting has changed since the run: what was said no longer answers it",
                    where=self._name,
                    expected="kept predictions of every item",
                    got=f"{len(unsaid)} of {len(chunks)} chunks without",
                    fix="run the run file again: what changed is asked and measured",
                )
            if unsaid and not self._stopping:
                self._ask(unsaid, opened)
        except _HaltError as halt:
            self._stop()
            raise halt.error from None
        except BaseException:
            self._stop()
            raise
        finally:
            # What the model has finished is measured and its complete chunks are stored, whatever happened.
            while jobs := self._unfinished():
                wait(jobs)
        if self._errors:
            raise min(self._errors, key=lambda entry: entry[0])[1]

    def _from_kept(self, chunk: Chunk) -> bool:
        """Measure a chunk from its kept predictions; return False where there are none to go by."""
        kept = self._store.kept(chunk)
        if kept is None or (kept.failures and not self._shared.options.accepts_failures):
            return False
        gathering = _Gathering(chunk, seal=kept.seal)
        for start in range(0, len(chunk.items), chunk.cohort):
            units = []
            for position in range(start, min(start + chunk.cohort, len(chunk.items))):
                item = chunk.items[position]
                unit = _Unit(chunk.index, item, gathering, position, transcript=kept.transcripts.get(item.item_id))
                self._in_memory += 1
                if unit.transcript is None:
                    self._fail(unit, kept.failures[item.item_id])
                else:
                    units.append(unit)
            self._read(units)
        return True

    def _ask(self, chunks: Sequence[Chunk], opened: Callable[[], None]) -> None:
        """Ask about every item of the chunks, in processes or in this thread."""
        task = self._planned.task
        pool = self._shared.processes.pool if task.processes else None
        if pool is None:
            with self._profile.timing("open"):
                self._players = self._shared.cast.players(task.roles)
                self._stages = task.open(self._players)
                opened()
        if task.processes:
            with fixed_torch_threads(1):
                for chunk in chunks:
                    self._ask_apart(chunk, pool)
            return
        self._units = _units(chunks)
        for cohort in (cohort for chunk in chunks for cohort in chunk.cohorts()):
            self._shared.allowance.check_time()
            units = self._next_loaded(len(cohort))
            if self._stopping:
                break
            self._converse(units)

    # Independent items, in processes or one after another.

    def _ask_apart(self, chunk: Chunk, pool: Executor | None) -> None:
        task, gathering, journal = self._planned.task, _Gathering(chunk), self._store.journal(chunk)
        held = journal.read() if task.expensive else {}
        first = chunk.index * self._planned.chunk_size
        units = [_Unit(chunk.index, item, gathering, position) for position, item in enumerate(chunk.items)]
        futures: dict[int, Future[tuple[Outcomes, list[Picture]]]] = {}
        if pool is not None:
            futures = {
                unit.position: workers.submit(pool, task, self._planned.fingerprint, first + unit.position)
                for unit in units
                if unit.item.item_id not in held
            }
        for unit in units:
            self._shared.allowance.check_time()
            if self._stopping:
                break
            self._in_memory += 1
            if unit.item.item_id in held:
                unit.transcript = held[unit.item.item_id]
                gathering.pictures[unit.position] = look_at(unit.item)
                self._read([unit])
                continue
            with self._profile.timing("infer"):
                outcome, pictures = self._apart(unit, futures)
            gathering.pictures[unit.position] = pictures
            if self._settle(unit, outcome) and task.expensive:
                assert unit.transcript is not None
                journal.add(unit.transcript)
            if unit.transcript is not None:
                self._read([unit])

    def _apart(
        self, unit: _Unit, futures: Mapping[int, Future[tuple[Outcomes, list[Picture]]]]
    ) -> tuple[Outcomes, list[Picture]]:
        if unit.position in futures:
            try:
                return futures[unit.position].result()
            except BrokenExecutor as error:
                raise RunError(
                    "a worker process ended while it was asked about an item",
                    where=f"{unit.item.item_id!r} of {self._name}",
                    got=error,
                    fix="give it more memory, put a class of your own where `import` finds it, or engine.workers: 1",
                ) from error
        assert self._stages is not None
        return workers.converse(self._stages, unit.item, self._planned.batch_size)

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
            self._loading.append((unit, self._shared.pool.submit(self._load, unit)))

    def _load(self, unit: _Unit) -> Any:
        assert self._stages is not None
        with self._profile.timing("load"):
            unit.gathering.pictures[unit.position] = look_at(unit.item)
            return self._stages.load(unit.item)

    def _next_loaded(self, count: int) -> list[_Unit]:
        """Return the units of the next cohort, those left out that could not be read. Nothing once stopping."""
        taken: list[tuple[_Unit, Future[Any]]] = []
        while len(taken) < count:
            with self._changed:
                self._feed()
                # Wait for room, unless everything in memory is this cohort: it is asked about side by side, so a
                # cohort larger than memory allows is loaded all the same.
                self._changed.wait_for(lambda: self._stopping or self._loading or self._in_memory <= len(taken))
                if self._stopping:
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
                self._fail(unit, self._unreadable(unit, error, "loaded"))
            else:
                units.append(unit)
        return units

    def _waiting(self) -> AbstractContextManager[None]:
        # Without workers the model's thread decodes by itself: that is no waiting.
        return self._profile.timing("wait") if self._waits else nullcontext()

    # The models.

    def _converse(self, units: Sequence[_Unit]) -> None:
        """Ask about a cohort, then make its rows."""
        assert self._stages is not None
        stages = self._stages
        conversations = [stages.converse(unit.item, unit.loaded) for unit in units]
        with self._profile.timing("infer"):
            outcomes = in_lockstep(conversations, self._answering(stages.answer), self._limit(self._players))
        self._read([unit for unit, outcome in zip(units, outcomes, strict=True) if self._settle(unit, outcome)])

    def _settle(self, unit: _Unit, outcome: Outcomes) -> bool:
        """Keep what was said about an item, or count its failure; return whether there is something to measure."""
        unit.loaded = None
        if outcome.error is not None:
            self._fail(unit, self._unreadable(unit, outcome.error, "asked about"))
            return False
        unit.transcript = as_kept(Transcript(unit.item.item_id, outcome.exchanges, outcome.result or {}))
        return True

    def _answering(self, answer: Callable[..., Sequence[Answer]]) -> Callable[..., Sequence[Answer]]:
        """Let an error that must stop the run stop it at once, instead of being tried item by item."""
        if self._skip:
            return answer

        def strict(role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
            try:
                return answer(role, capability, arguments)
            except DataError:
                raise
            except Exception as error:
                error.add_note(f"while {role} of {self._name} was asked to {capability}")
                raise _HaltError(error) from error

        return strict

    def _limit(self, players: Mapping[str, Any]) -> Callable[[str], int | None]:
        """Requests a call: all of a round for who limits itself (a remote model), else the plan's batch size."""
        batch_size = self._planned.batch_size
        return lambda role: None if getattr(players.get(role), "concurrent", False) else batch_size

    # Measuring and storing, behind the models.

    def _read(self, units: Sequence[_Unit]) -> None:
        """Make rows of transcripts: in workers, or in this thread where somebody must be asked."""
        if self._reading is None:
            for unit in units:
                self._submit(unit)
            return
        reading = self._reading
        players = self._shared.cast.players(self._planned.task.reading_roles)
        conversations = [reading.read(unit.item, unit.transcript) for unit in units if unit.transcript is not None]
        with self._profile.timing("infer"):
            outcomes = in_lockstep(conversations, self._answering(reading.answer), self._limit(players))
        for unit, outcome in zip(units, outcomes, strict=True):
            if outcome.error is not None:
                self._submit(unit, self._unreadable(unit, outcome.error, "read"))
                continue
            unit.gathering.replies[unit.position] = Transcript(unit.item.item_id, outcome.exchanges)
            unit.measured = outcome.result
            self._submit(unit)

    def _fail(self, unit: _Unit, failure: Failure) -> None:
        unit.gathering.unsaid.add(unit.position)
        self._submit(unit, failure)

    def _submit(self, unit: _Unit, failure: Failure | None = None) -> None:
        self._track(self._shared.pool.submit(self._recording, unit.order, self._finish, unit, failure))

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

    def _finish(self, unit: _Unit, failure: Failure | None) -> None:
        """Measure a unit unless it failed, put it in its place, have its chunk stored if it was the last."""
        measured = None if failure is not None else unit.measured
        if failure is None and measured is None:
            measured, failure = self._measure(unit)
        if failure is not None:
            measured = self._rows_of_failure(unit, failure)
        assert measured is not None
        with self._changed:
            self._in_memory -= 1
            self._feed()
            self._changed.notify_all()
        self._put(unit, measured, failure)
        self._progress.advance(failed=failure is not None)
        if failure is not None:
            self._shared.allowance.count(failure)

    def _rows_of_failure(self, unit: _Unit, failure: Failure) -> Measured:
        reading = self._measurer if self._measurer is not None else self._reading
        assert reading is not None
        return reading.failed(unit.item, failure.reason)

    def _measure(self, unit: _Unit) -> tuple[Measured | None, Failure | None]:
        assert self._measurer is not None
        assert unit.transcript is not None
        try:
            with self._profile.timing("measure"):
                return self._measurer.measure(unit.item, unit.transcript), None
        except Exception as error:
            return None, self._unreadable(unit, error, "measured")

    def _unreadable(self, unit: _Unit, error: Exception, doing: str) -> Failure:
        """Return the failure that an error is, or raise it where it must stop the run."""
        is_data = isinstance(error, DataError)
        if not self._skip and not is_data:
            error.add_note(f"while item {unit.item.item_id!r} of {self._name} was being {doing}")
            raise error
        detail = " | ".join(line.strip() for line in str(error).splitlines()) or type(error).__name__
        if not self._skip:
            raise RunError(
                "an item cannot be read",
                where=f"{unit.item.item_id!r} of {self._name}",
                got=detail,
                fix="correct or remove the file, or let the run skip and list such items: on_error: skip",
            ) from error
        reason = getattr(error, "what", None) or f"{type(error).__name__} while being {doing}"
        return Failure(unit.item.item_id, str(reason), detail)

    def _put(self, unit: _Unit, measured: Measured, failure: Failure | None) -> None:
        gathering = unit.gathering
        with self._changed:
            gathering.measured[unit.position] = measured
            if unit.transcript is not None:
                gathering.transcripts[unit.position] = unit.transcript
            unit.transcript = unit.measured = None
            if failure is not None:
                gathering.failures[unit.position] = failure
            complete = gathering.complete()
            self._profile.items += 1
        if complete:
            self._unwritten.acquire()
            self._track(self._shared.writer.submit(self._recording, unit.order, self._write, gathering))

    def _write(self, gathering: _Gathering) -> None:
        chunk = gathering.chunk
        try:
            with self._profile.timing("write"):
                seal = gathering.seal or self._write_predictions(gathering)
                measured = [(item.item_id, gathering.measured[i]) for i, item in enumerate(chunk.items)]
                failures = [failure for _, failure in sorted(gathering.failures.items())]
                replies = [reply for _, reply in sorted(gathering.replies.items())]
                self._store.write_rows(chunk, self._schema, measured, failures, seal, replies)
        finally:
            self._unwritten.release()

    def _write_predictions(self, gathering: _Gathering) -> str:
        transcripts = [transcript for _, transcript in sorted(gathering.transcripts.items())]
        failures = [failure for i, failure in sorted(gathering.failures.items()) if i in gathering.unsaid]
        pictures = [picture for _, some in sorted(gathering.pictures.items()) for picture in some]
        return self._store.write_predictions(gathering.chunk, transcripts, failures, pictures)


def _units(chunks: Sequence[Chunk]) -> Iterator[_Unit]:
    order = count()
    for chunk in chunks:
        gathering = _Gathering(chunk)
        for position, item in enumerate(chunk.items):
            yield _Unit(next(order), item, gathering, position)
