"""The local engine: worker threads decode ahead of the models and measure behind them.

::

    workers       load ... load ...                        measure -> chunk complete
    this thread             converse, converse, converse, ... cohort after cohort in the order of the plan
    a writer                                                      -> store

Only the conversations have an order, and it is the plan's; everything else may finish in any order and lands in its
place in its chunk. So the number of workers, zero included, changes the time and nothing else. A task whose items are
independent is spread over processes instead (:mod:`medground.running.independent`); a chunk of which predictions are
kept is only measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from itertools import groupby
from typing import Any

from medground.errors import LimitError, RunError
from medground.running.allowance import Allowance
from medground.running.cast import Cast
from medground.running.chunk_store import ChunkStore
from medground.running.independent import Flight, Independent
from medground.running.lockstep import Lockstep
from medground.running.measuring import Measuring, Shared
from medground.running.options import Options
from medground.running.plan import Chunk, TaskPlan
from medground.running.pools import Processes, threads
from medground.running.profile import Profile
from medground.running.progress import Progress
from medground.running.threads import fixed_torch_threads
from medground.spending import Budget

Work = Sequence[tuple[TaskPlan, Sequence[Chunk]]]


def run_local(
    work: Work,
    store: ChunkStore,
    options: Options,
    progress: Progress | None = None,
    opened: Callable[[], None] = lambda: None,
    allowance: Allowance | None = None,
    *,
    ask: bool = True,
    asked: Callable[[str, Any], None] = lambda *_: None,
    budget: Budget | None = None,
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
        budget: of the run.

    Returns:
        One profile for each task that was opened.

    Raises:
        RunError: an item cannot be read and ``on_error`` is ``stop``; a limit is reached; a chunk cannot be stored.
        Exception: whatever a stage raised, with a note that says where. All that the model had finished by then
            is measured first, and complete chunks are stored.
    """
    allowance, progress = allowance or Allowance(), progress or Progress()
    work = [(planned, chunks) for planned, chunks in work if chunks]
    cast = Cast((planned.task for planned, _ in work), asked, budget)

    def every_task() -> list[Profile]:
        # Storing waits for the disk: in a thread of its own, so that decoding does not.
        with (
            threads(options.n_workers) as pool,
            threads(min(options.n_workers, 1)) as writer,
            Processes(options.n_workers, allowance.left) as processes,
        ):
            shared = Shared(pool, writer, processes, store, options, progress, cast, allowance, ask)
            runs = [_TaskRun(planned, chunks, shared, opened) for planned, chunks in work]
            for apart, some in groupby(runs, key=lambda run: run.planned.task.processes and options.n_workers > 1):
                if apart:
                    _overlapping(list(some), processes)
                else:
                    _one_by_one(some)
            return [run.profile for run in runs]

    return allowance.within(every_task)


class _TaskRun:
    """One task on its way."""

    def __init__(self, planned: TaskPlan, chunks: Sequence[Chunk], shared: Shared, opened: Callable[[], None]) -> None:
        self.planned, self._chunks, self._shared, self._opened = planned, chunks, shared, opened
        self.profile = Profile(planned.path)
        self.behind = Measuring(planned, shared, self.profile)

    def begin(self) -> list[Chunk]:
        """Make rows of what is kept; return the chunks that must be asked about.

        Raises:
            RunError: there are some, and nobody may be asked.
        """
        self._shared.progress.title(self.behind.name)
        self.behind.open()
        self._opened()
        unsaid = [chunk for chunk in self._chunks if not self.behind.kept(chunk)]
        if unsaid and not self._shared.ask:
            raise RunError(
                "a dataset, a model or a setting has changed since the run: what was said no longer answers it",
                where=self.behind.name,
                expected="kept predictions of every item",
                got=f"{len(unsaid)} of {len(self._chunks)} chunks without",
                fix="run the run file again: what changed is asked and measured",
            )
        return unsaid

    def ask(self, chunks: Sequence[Chunk]) -> None:
        """Ask about every item of the chunks, in this thread."""
        task = self.planned.task
        with fixed_torch_threads(1) if task.processes else nullcontext():
            with self.profile.timing("open"):
                players = self._shared.cast.players(task.roles)
                stages = task.open(players)
                self._opened()
            if task.processes:
                Independent(self.behind, chunks).ask_here(stages)
            else:
                Lockstep(self.behind, stages, players).run(chunks)

    def end(self) -> None:
        """Wait for what is being measured and stored; let go of what no later task needs."""
        self.behind.finish()
        self._shared.cast.release(self.planned.task)


def _one_by_one(runs: Iterable[_TaskRun]) -> None:
    for run in runs:
        with run.profile.on_the_clock():
            try:
                unsaid = run.begin()
                if unsaid and not run.behind.stopping:
                    run.ask(unsaid)
            except BaseException:
                run.behind.stop()
                raise
            finally:
                run.end()
            run.behind.raise_first()


def _overlapping(runs: Sequence[_TaskRun], processes: Processes) -> None:
    """Spread tasks over processes: the next one begins while the last items of one are still on their way."""
    flight = Flight(processes.pool(), processes.size)
    try:
        for run in runs:
            with run.profile.on_the_clock():
                flight.ask(Independent(run.behind, run.begin()))
        with runs[-1].profile.on_the_clock():
            flight.land_all()
    except LimitError:  # processes end themselves
        raise
    except BaseException:
        flight.cancel()
        raise
    finally:
        for run in runs:
            run.end()
    for run in runs:
        run.behind.raise_first()
