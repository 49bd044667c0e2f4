"""A worker of a crew: rebuilds the tasks from the run file, takes chunks by number, stores what comes of them.

It keeps its models and opened tasks between chunks, so it is given chunks of one task as long as there are any. What it
writes is what the local engine writes: the same code asks, measures and stores.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from medground.benchmarks.base import Benchmark, Stages
from medground.errors import RunError
from medground.running.allowance import Allowance
from medground.running.cast import Cast
from medground.running.chunk_store import ChunkStore
from medground.running.chunks import Failure
from medground.running.independent import Independent
from medground.running.lockstep import Lockstep
from medground.running.measuring import Measuring, Shared
from medground.running.options import Options
from medground.running.plan import Chunk, TaskPlan, plan_task
from medground.running.pools import Processes, threads
from medground.running.profile import STAGES, Profile
from medground.running.progress import Progress
from medground.running.threads import fixed_torch_threads
from medground.storage import open_storage


@dataclass(frozen=True)
class Job:
    """What every worker of a run is told. Plain values.

    Attributes:
        rebuild: ``module:function`` that makes the benchmark of ``run``.
        run: the resolved run file, JSON-like.
        place: where the run lies.
        reading: folder of the reading.
        torch_threads: threads of torch, as in the plan.
        options: of the engine.
        search: where modules of the user are imported from.
    """

    rebuild: str
    run: Mapping[str, Any]
    place: Path | str
    reading: str
    torch_threads: int
    options: Options
    search: tuple[str, ...] = ()

    def benchmark(self) -> Benchmark:
        """Make the benchmark."""
        for path in self.search:
            if path not in sys.path:
                sys.path.append(path)
        module, _, function = self.rebuild.partition(":")
        benchmark: Benchmark = getattr(import_module(module), function)(self.run)
        return benchmark


@dataclass(frozen=True)
class Order:
    """One chunk by number; ``name`` tells whether both sides mean the same."""

    task: int
    chunk: int
    name: str


@dataclass(frozen=True)
class Done:
    """The receipt of a chunk, for the owner of the run.

    Attributes:
        order: which chunk.
        seal: of the receipt of its rows.
        failures: items that could not be read or answered.
        seconds: a stage.
        clock: seconds that the chunk took.
        asked: label -> what was asked of a server by this worker so far.
    """

    order: Order
    seal: str
    failures: tuple[Failure, ...]
    seconds: Mapping[str, float]
    clock: float
    asked: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass
class _Opened:
    """A task that is kept between chunks."""

    index: int
    planned: TaskPlan
    behind: Measuring
    players: Mapping[str, Any] = field(default_factory=dict)
    stages: Stages | None = None


class Worker:
    """Computes chunks of one run.

    Args:
        job: the run.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._tasks = list(job.benchmark().tasks())
        n_threads = job.options.threads_per_worker
        options = replace(job.options, workers=n_threads)
        self._asked: dict[str, Mapping[str, Any]] = {}
        self._cast = Cast(asked=self._count)
        store = ChunkStore(open_storage(job.place), reading=job.reading)
        self._store = store
        self._shared = Shared(
            pool=threads(n_threads),
            writer=threads(min(n_threads, 1)),
            processes=Processes(1),
            store=store,
            options=options,
            progress=Progress(),
            cast=self._cast,
            allowance=Allowance(),
            ask=True,
        )
        self._opened: _Opened | None = None

    def _count(self, label: str, player: Any) -> None:
        ledger = getattr(player, "ledger", None)
        if ledger is not None:
            self._asked[label] = dict(ledger.record())

    def compute(self, order: Order) -> Done:
        """Compute one chunk and store it.

        Raises:
            RunError: this worker plans another chunk under that number; an item cannot be read and must be.
            Exception: whatever a stage raised.
        """
        start = time.perf_counter()
        opened = self._open(order.task)
        chunk = opened.planned.chunks[order.chunk] if order.chunk < len(opened.planned.chunks) else None
        if chunk is None or chunk.name != order.name:
            raise RunError(
                "a worker plans other chunks than the process that hands them out",
                where="/".join(opened.planned.path),
                expected=order.name,
                got="no such chunk" if chunk is None else chunk.name,
                fix="give every machine the same data, the same version of medground, and the files that the run names",
            )
        before = dict(opened.behind.profile.seconds)
        try:
            self._ask(opened, chunk)
            opened.behind.finish()
            opened.behind.raise_first()
        except BaseException:
            opened.behind.stop()
            opened.behind.finish()
            self._opened = None
            raise
        self._cast.tell()
        spent = {stage: opened.behind.profile.seconds[stage] - before[stage] for stage in STAGES}
        seal = self._store.seal(chunk)
        assert seal is not None
        clock = time.perf_counter() - start
        return Done(order, seal, self._store.failures(chunk), spent, clock, dict(self._asked))

    def _open(self, index: int) -> _Opened:
        if self._opened is None or self._opened.index != index:
            task = self._tasks[index]
            self._cast.keep_for(task)
            planned = plan_task(index, task, self._job.options.chunk, {"torch_threads": self._job.torch_threads})
            behind = Measuring(planned, self._shared, Profile(planned.path))
            behind.open()
            self._opened = _Opened(index, planned, behind)
        return self._opened

    def _ask(self, opened: _Opened, chunk: Chunk) -> None:
        task, behind = opened.planned.task, opened.behind
        with fixed_torch_threads(1 if task.processes else self._job.torch_threads) as limit:
            if behind.kept(chunk):
                return
            if opened.stages is None:
                with behind.profile.timing("open"):
                    opened.players = self._cast.players(task.roles)
                    opened.stages = task.open(opened.players)
                limit()
            if task.processes:
                Independent(behind, [chunk]).ask_here(opened.stages)
            else:
                Lockstep(behind, opened.stages, opened.players).run([chunk])


def orders_of(chunks: Sequence[Chunk]) -> list[Order]:
    """Return the orders for chunks."""
    return [Order(chunk.task_index, chunk.index, chunk.name) for chunk in chunks]
