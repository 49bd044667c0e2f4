"""Behind the models: what was said becomes rows, and rows become stored chunks.

Any thread may finish any item at any time; each lands in its place in its chunk. An error of a job stops the task, and
is raised where the models run: of several the one whose item comes first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from typing import Any

from medground.benchmarks.base import AskingMeasurer, Measured, Measurer
from medground.benchmarks.requests import Answer, Answerer, Conversation, Outcomes, Transcript, in_lockstep
from medground.errors import DataError, RunError
from medground.running.allowance import Allowance
from medground.running.cast import Cast
from medground.running.chunk_store import ChunkStore, KeptChunk
from medground.running.chunks import Failure
from medground.running.options import Options
from medground.running.plan import Chunk, TaskPlan
from medground.running.pools import Processes
from medground.running.predictions import as_kept
from medground.running.profile import Profile
from medground.running.progress import Progress
from medground.running.units import Gathering, Unit

_UNWRITTEN_CHUNKS = 3
_KEPT_JOBS = 1024
"""Items of kept chunks that may wait to be measured."""


class _HaltError(BaseException):
    """Carries an error that must stop the run through code that would treat it as one item's."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True)
class Shared:
    """What the tasks of a run share."""

    pool: Executor
    writer: Executor
    processes: Processes
    store: ChunkStore
    options: Options
    progress: Progress
    cast: Cast
    allowance: Allowance
    ask: bool


class Measuring:
    """The half of a task that lies behind the models.

    Args:
        planned: the task.
        shared: what the tasks of a run share.
        profile: where its time is counted.
    """

    def __init__(self, planned: TaskPlan, shared: Shared, profile: Profile) -> None:
        self.planned, self.shared, self.profile = planned, shared, profile
        self.name = "/".join(planned.path)
        self.changed = threading.Condition(threading.RLock())
        """Guards what follows. Re-entrant, because without workers a submitted job runs inside it."""
        self.stopping = False
        self.on_stop: Callable[[], None] = lambda: None
        self.on_measured: Callable[[Unit], None] = lambda _: None
        self._schema = planned.task.schema
        self._skip = shared.options.on_error == "skip"
        # Complete chunks that wait for a slow disk; measuring waits when there are more.
        self._unwritten = threading.BoundedSemaphore(_UNWRITTEN_CHUNKS)
        self._jobs: set[Future[None]] = set()
        self._errors: list[tuple[int, BaseException]] = []
        self._measurer: Measurer | None = None
        self._reading: AskingMeasurer | None = None

    def open(self) -> None:
        """Make what makes rows; a reading that asks is given its players."""
        task = self.planned.task
        with self.profile.timing("open"):
            if task.reading_roles:
                self._reading = task.open_reading(self.shared.cast.players(task.reading_roles))
            else:
                self._measurer = task.measurer()

    # What comes in.

    def kept(self, chunk: Chunk) -> bool:
        """Measure a chunk from its kept predictions; return False where there are none to go by."""
        kept = self.shared.store.kept(chunk)
        if kept is None or (kept.failures and not self.shared.options.accepts_failures):
            return False
        gathering = Gathering(chunk, seal=kept.seal)
        for start in range(0, len(chunk.items), chunk.cohort):
            self.read(self._recalled(gathering, kept, range(start, min(start + chunk.cohort, len(chunk.items)))))
        while len(jobs := self._unfinished()) > _KEPT_JOBS:
            wait(jobs, return_when=FIRST_COMPLETED)
        return True

    def _recalled(self, gathering: Gathering, kept: KeptChunk, positions: range) -> list[Unit]:
        """Return units with what was said about them; those about which nothing was said have failed."""
        units = []
        for position in positions:
            item = gathering.chunk.items[position]
            unit = Unit(gathering.chunk.index, item, gathering, position, transcript=kept.transcripts.get(item.item_id))
            if unit.transcript is None:
                self.fail(unit, kept.failures[item.item_id])
            else:
                units.append(unit)
        return units

    def settle(self, unit: Unit, outcome: Outcomes) -> bool:
        """Take what was said about an item, or count its failure; return whether there is something to measure."""
        unit.loaded = None
        if outcome.error is not None:
            self.fail(unit, self.failure(unit, outcome.error, "asked about"))
            return False
        unit.transcript = as_kept(Transcript(unit.item.item_id, outcome.exchanges, outcome.result or {}))
        return True

    def fail(self, unit: Unit, failure: Failure) -> None:
        """Count an item about which nothing was said."""
        unit.gathering.unsaid.add(unit.position)
        self._submit(unit, failure)

    def failure(self, unit: Unit, error: Exception, doing: str) -> Failure:
        """Return the failure that an error is, or raise it where it must stop the run."""
        is_data = isinstance(error, DataError)
        if not self._skip and not is_data:
            error.add_note(f"while item {unit.item.item_id!r} of {self.name} was being {doing}")
            raise error
        detail = " | ".join(line.strip() for line in str(error).splitlines()) or type(error).__name__
        if not self._skip:
            raise RunError(
                "an item cannot be read",
                where=f"{unit.item.item_id!r} of {self.name}",
                got=detail,
                fix="correct or remove the file, or let the run skip and list such items: on_error: skip",
            ) from error
        reason = getattr(error, "what", None) or f"{type(error).__name__} while being {doing}"
        return Failure(unit.item.item_id, str(reason), detail)

    # Asking.

    def ask(
        self, conversations: Sequence[Conversation[Any]], answer: Answerer, players: Mapping[str, Any]
    ) -> list[Outcomes]:
        """Carry on conversations side by side; an error that must stop the run is raised at once.

        Who limits itself (a remote model) is given whole rounds, everybody else batches of the plan's size.
        """
        batch_size = self.planned.batch_size
        limit = {role: None for role, player in players.items() if getattr(player, "concurrent", False)}
        try:
            with self.profile.timing("infer"):
                return in_lockstep(conversations, self._strict(answer), lambda role: limit.get(role, batch_size))
        except _HaltError as halt:
            raise halt.error from None

    def _strict(self, answer: Answerer) -> Answerer:
        """Let an error that must stop the run stop it, instead of being tried item by item."""
        if self._skip:
            return answer

        def strict(role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
            try:
                return answer(role, capability, arguments)
            except DataError:
                raise
            except Exception as error:
                error.add_note(f"while {role} of {self.name} was asked to {capability}")
                raise _HaltError(error) from error

        return strict

    def read(self, units: Sequence[Unit]) -> None:
        """Make rows of transcripts: in workers, or in this thread where somebody must be asked."""
        if self._reading is None:
            for unit in units:
                self._submit(unit)
            return
        reading = self._reading
        players = self.shared.cast.players(self.planned.task.reading_roles)
        conversations = [reading.read(unit.item, unit.transcript) for unit in units if unit.transcript is not None]
        outcomes = self.ask(conversations, reading.answer, players)
        for unit, outcome in zip(units, outcomes, strict=True):
            if outcome.error is not None:
                self._submit(unit, self.failure(unit, outcome.error, "read"))
                continue
            unit.gathering.replies[unit.position] = Transcript(unit.item.item_id, outcome.exchanges)
            unit.measured = outcome.result
            self._submit(unit)

    # Jobs.

    def stop(self) -> None:
        """Ask about nothing more."""
        with self.changed:
            self.stopping = True
            self.on_stop()
            self.changed.notify_all()

    def finish(self) -> None:
        """Wait until what the models have finished is measured and its complete chunks are stored."""
        while jobs := self._unfinished():
            wait(jobs)

    def raise_first(self) -> None:
        """Raise the error of the job whose item comes first, if any has failed."""
        if self._errors:
            raise min(self._errors, key=lambda entry: entry[0])[1]

    def _submit(self, unit: Unit, failure: Failure | None = None) -> None:
        self._track(self.shared.pool.submit(self._recording, unit.order, self._finish, unit, failure))

    def _track(self, future: Future[None]) -> None:
        with self.changed:
            self._jobs.add(future)
        future.add_done_callback(self._forget)

    def _forget(self, future: Future[None]) -> None:
        with self.changed:
            self._jobs.discard(future)

    def _unfinished(self) -> tuple[Future[None], ...]:
        with self.changed:
            return tuple(self._jobs)

    def _recording(self, order: int, job: Callable[..., None], *args: Any) -> None:
        """Run a job; its error stops the task, and is raised where the models run."""
        try:
            job(*args)
        except BaseException as error:
            self.record(order, error)

    def record(self, order: int, error: BaseException) -> None:
        """Keep an error of the unit ``order`` and stop."""
        with self.changed:
            self._errors.append((order, error))
        self.stop()

    def _finish(self, unit: Unit, failure: Failure | None) -> None:
        """Measure a unit unless it failed, put it in its place, have its chunk stored if it was the last."""
        measured = None if failure is not None else unit.measured
        if failure is None and measured is None:
            measured, failure = self._measure(unit)
        if failure is not None:
            measured = self._rows_of_failure(unit, failure)
        assert measured is not None
        with self.changed:
            self.on_measured(unit)
            self.changed.notify_all()
        self._put(unit, measured, failure)
        self.shared.progress.advance(failed=failure is not None)
        if failure is not None:
            self.shared.allowance.count(failure)

    def _rows_of_failure(self, unit: Unit, failure: Failure) -> Measured:
        reading = self._measurer if self._measurer is not None else self._reading
        assert reading is not None
        return reading.failed(unit.item, failure.reason)

    def _measure(self, unit: Unit) -> tuple[Measured | None, Failure | None]:
        assert self._measurer is not None
        assert unit.transcript is not None
        try:
            with self.profile.timing("measure"):
                return self._measurer.measure(unit.item, unit.transcript), None
        except Exception as error:
            return None, self.failure(unit, error, "measured")

    def _put(self, unit: Unit, measured: Measured, failure: Failure | None) -> None:
        gathering = unit.gathering
        with self.changed:
            gathering.measured[unit.position] = measured
            if unit.transcript is not None:
                gathering.transcripts[unit.position] = unit.transcript
            unit.transcript = unit.measured = None
            if failure is not None:
                gathering.failures[unit.position] = failure
            complete = gathering.complete()
            self.profile.items += 1
        if complete:
            self._unwritten.acquire()
            self._track(self.shared.writer.submit(self._recording, unit.order, self._write, gathering))

    def _write(self, gathering: Gathering) -> None:
        chunk = gathering.chunk
        try:
            with self.profile.timing("write"):
                seal = gathering.seal or self._write_predictions(gathering)
                measured = [(item.item_id, gathering.measured[i]) for i, item in enumerate(chunk.items)]
                failures = [failure for _, failure in sorted(gathering.failures.items())]
                replies = [reply for _, reply in sorted(gathering.replies.items())]
                self.shared.store.write_rows(chunk, self._schema, measured, failures, seal, replies)
        finally:
            self._unwritten.release()

    def _write_predictions(self, gathering: Gathering) -> str:
        transcripts = [transcript for _, transcript in sorted(gathering.transcripts.items())]
        failures = [failure for i, failure in sorted(gathering.failures.items()) if i in gathering.unsaid]
        pictures = [picture for _, some in sorted(gathering.pictures.items()) for picture in some]
        durable = self.planned.task.expensive
        return self.shared.store.write_predictions(gathering.chunk, transcripts, failures, pictures, durable=durable)
