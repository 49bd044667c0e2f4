"""A run from its plan to its summary: what ``medground run`` does."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from medground.benchmarks.base import Benchmark
from medground.benchmarks.results import Summary
from medground.errors import RunError
from medground.identity import fingerprint_of
from medground.running.allowance import Allowance
from medground.running.chunks import Receipt
from medground.running.engines import compute
from medground.running.jsonable import plain, to_json
from medground.running.ledger import SessionLedger
from medground.running.local import Work
from medground.running.made_of import made_of
from medground.running.manifest import Manifest
from medground.running.names import folder_name
from medground.running.options import Options, available_cores
from medground.running.plan import Chunk, Plan, make_plan
from medground.running.profile import Profile, total
from medground.running.progress import Progress
from medground.running.reading import stored_manifest
from medground.running.redact import redact
from medground.running.shards import agreed_threads, refuse_incomplete
from medground.running.store import Store
from medground.running.threads import fixed_torch_threads
from medground.running.worker import Job
from medground.storage import Storage, is_address


@dataclass(frozen=True)
class RunReport:
    """A finished run.

    Attributes:
        folder: where it lies: a folder, or an address.
        reading: folder of the reading that was made.
        items: how many items its tasks have, failed ones included.
        failures: how many of them could not be read.
        chunks: how many chunks it has.
        reused: how many of them were finished before this session.
        profile: where the time of this session went, by task and in total.
        summary: what the benchmark says.
    """

    folder: Path | str
    reading: Path | str
    items: int
    failures: int
    chunks: int
    reused: int
    profile: Mapping[str, Any]
    summary: Summary


def execute(
    benchmark: Benchmark,
    place: Path | str,
    *,
    config: Mapping[str, Any] | None = None,
    options: Options | None = None,
    fresh: bool = False,
    own: bool = True,
    merging: bool = False,
    rebuild: str = "",
    progress: Progress | None = None,
    before: Callable[[], None] = lambda: None,
) -> RunReport:
    """Run a benchmark in a folder, or go on with the run that is there.

    Args:
        benchmark: what to run.
        place: the run folder, made where it does not exist, or an address of an object store.
        config: the resolved run file, written to ``run.yaml`` without its secrets.
        options: of the engine.
        fresh: remove an earlier run from the folder first.
        own: whether this is the run file's own reading; another one is written beside it from the same predictions.
        merging: whether shards have computed everything: nothing is computed here.
        rebuild: ``module:function`` by which a worker in another process makes the benchmark of ``config``; without,
            every engine computes in this process.
        progress: what is told about it.
        before: called once where something of the run's own reading is to be computed, before that; its error ends the
            run. A finished run does not call it.

    Raises:
        RunError: the folder is in use, belongs to another run or cannot be written; there is nothing to run; an item
            cannot be read and ``on_error`` is ``stop``.
        Exception: whatever a stage of the benchmark raised. Finished chunks stay, and the next call goes on.
    """
    options, progress = options or Options(), progress or Progress()
    if not own:  # what failed when it was asked has failed
        options = replace(options, on_error="skip", retry_failed=False)
    given = {"benchmark": {"name": benchmark.name}} if config is None else config
    config = redact(given)
    place = place if is_address(place) else Path(place).resolve()
    with Store(place, config, reading=reading_folder(benchmark), fresh=fresh, own=own, say=progress.say) as store:
        previous = previous_manifest(store.storage, progress.say)
        threads = torch_threads(options, previous, store.storage)
        plan = plan_run(benchmark, options, threads)
        manifest = Manifest(benchmark, store.reading_name, plan, options, threads, previous)
        job = job_of(rebuild, given, store, threads, options)
        session = _Session(benchmark, store, plan, options, progress, manifest, own, config, job)
        try:
            return session.merge() if merging else session.run(threads, before)
        except BaseException as error:
            session.stopped(error)
            raise


def job_of(rebuild: str, run: Mapping[str, Any], store: Store, threads: int, options: Options) -> Job | None:
    """Return what workers in other processes are told; None where they cannot rebuild the benchmark."""
    if not rebuild:
        return None
    search = tuple(path or str(Path.cwd()) for path in sys.path)
    return Job(rebuild, run, store.folder, store.reading_name, threads, options, search)


def reading_folder(benchmark: Benchmark) -> str:
    """Return the folder of a benchmark's reading: its short name, and a hash of all that it consists of."""
    name, made_of = benchmark.reading
    return f"{folder_name(name)}-{fingerprint_of(plain(made_of))[:8]}"


def plan_run(benchmark: Benchmark, options: Options, threads: int) -> Plan:
    """Return the plan of a run.

    Raises:
        RunError: there is nothing to run.
    """
    plan = make_plan(benchmark.tasks(), chunk_size=options.chunk, settings={"torch_threads": threads})
    if plan.n_items == 0:
        raise RunError(
            "there is nothing to run",
            where=benchmark.name,
            expected="at least one item",
            got=f"{len(plan.tasks)} tasks without an item",
            fix="check the datasets of the run file: medground validate FILE",
        )
    return plan


def previous_manifest(storage: Storage, say: Callable[[str], None]) -> dict[str, Any] | None:
    """Return the manifest of the session before, or None where there is none that can be read."""
    if not storage.exists("manifest.json"):
        return None
    try:
        return stored_manifest(storage)
    except RunError as error:
        say(f"{error.what} and is written anew: {error.where}")
        return None


def torch_threads(options: Options, previous: Mapping[str, Any] | None, storage: Storage) -> int:
    """Return how many threads torch computes with: as asked, as in the session or shard before, or one a core."""
    if options.torch_threads is not None:
        return options.torch_threads
    if previous is not None:
        return int(previous["settings"]["torch_threads"])
    agreed = agreed_threads(storage)
    if agreed is not None:
        return agreed
    if options.engine != "local":  # workers are the parallelism
        return 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return int(wanted) if wanted.isdecimal() and int(wanted) > 0 else available_cores()


def unfinished(
    plan: Plan,
    finished: Callable[[Chunk], Receipt | None],
    options: Options,
    only: Callable[[Chunk], bool] = lambda _: True,
) -> Work:
    """Return tasks with those of their chunks (``only`` some) that are still to be computed."""

    def todo(chunk: Chunk) -> bool:
        if not only(chunk):
            return False
        receipt = finished(chunk)
        return receipt is None or bool(receipt.failures and not options.accepts_failures)

    return [(planned, [chunk for chunk in planned.chunks if todo(chunk)]) for planned in plan.tasks]


class LazyRows(Mapping[tuple[str, ...], pl.DataFrame]):
    """Path -> rows of every task, read when they are wanted and not held: one task's rows are in memory at a time."""

    def __init__(self, store: Store, plan: Plan) -> None:
        self._store = store
        self._tasks = {planned.path: planned for planned in plan.tasks}

    def __getitem__(self, path: tuple[str, ...]) -> pl.DataFrame:
        return self._store.rows(self._tasks[path])

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)


class _Session:
    """One go at a plan, from the first unfinished chunk to the summary."""

    def __init__(
        self,
        benchmark: Benchmark,
        store: Store,
        plan: Plan,
        options: Options,
        progress: Progress,
        manifest: Manifest,
        own: bool,
        config: Mapping[str, Any],
        job: Job | None = None,
    ) -> None:
        self._benchmark, self._store, self._plan = benchmark, store, plan
        self._options, self._progress, self._manifest = options, progress, manifest
        self._total = len(plan.chunks)
        self._reused = 0
        self._own, self._config, self._job = own, config, job

    def run(self, threads: int, before: Callable[[], None]) -> RunReport:
        """Compute what is missing, then the summary."""
        self._begin()
        work = unfinished(self._plan, self._store.finished, self._options)
        if self._own and any(chunks for _, chunks in work):
            before()
        return self._end_with(self._compute(work, threads))

    def merge(self) -> RunReport:
        """Make the summary of what shards have computed; refuse where anything is missing."""
        self._begin()
        work = unfinished(self._plan, self._store.finished, self._options)
        missing = [chunk for _, chunks in work for chunk in chunks]
        failed = sum(bool(self._store.failures(chunk)) for chunk in missing)
        refuse_incomplete(self._store.storage, self._plan, missing, failed)
        self._reused = self._total
        return self._end_with([])

    def _begin(self) -> None:
        if self._manifest.changed:
            changed = "; ".join(f"{key}: {old} -> {new}" for key, (old, new) in self._manifest.changed.items())
            self._progress.say(f"the environment has changed since the first session: {changed}")
        self._put_manifest()

    def _end_with(self, profiles: list[Profile]) -> RunReport:
        failures = self._put_failures()
        key = made_of(self._benchmark, self._config, [self._store.seal(chunk) for chunk in self._plan.chunks])
        stands = self._store.summary_made_of(key)
        summary = self._benchmark.summarise(LazyRows(self._store, self._plan)) if stands is None else stands
        profile = {"total": total(profiles).as_dict(), "tasks": [p.as_dict() for p in profiles]}
        if profiles and self._own:
            self._store.put("profile.json", to_json(profile))
        self._end("finished")
        if stands is None:
            self._store.put_summary(summary, key)
        return RunReport(
            self._store.folder,
            self._store.reading,
            self._plan.n_items,
            failures,
            self._total,
            self._reused,
            profile,
            summary,
        )

    def _compute(self, work: Work, threads: int) -> list[Profile]:
        todo = [chunk for _, chunks in work for chunk in chunks]
        self._reused = self._total - len(todo)
        if todo:
            self._store.remove_summary()
        if self._reused:
            self._progress.say(f"{self._reused} of {self._total} chunks are finished and are not computed again")
        ledger = SessionLedger(self._store.storage, self._manifest.started, self._store.reading_name)
        self._progress.start(self._plan.n_items, self._plan.n_items - sum(len(chunk.items) for chunk in todo))
        try:
            with fixed_torch_threads(threads) as opened:
                allowed = self._allowance()
                return compute(
                    work,
                    self._store,
                    self._options,
                    self._progress,
                    opened,
                    allowed,
                    ask=self._own,
                    asked=ledger.put,
                    budget=ledger.budget(self._options),
                    job=self._job,
                )
        finally:
            self._progress.stop()

    def _allowance(self) -> Allowance:
        seconds = self._options.deadline
        deadline = None if seconds is None else time.monotonic() + seconds
        return Allowance(self._options.failures_allowed(self._plan.n_items), deadline)

    def stopped(self, error: BaseException) -> None:
        """Leave the folder in order after an error, and tell how to go on."""
        # On a full disk these cannot be written either; that has been said already, and both are only derived.
        with contextlib.suppress(RunError):
            self._put_failures()
            self._end(f"stopped by {type(error).__name__}")
        safe = self._store.n_finished
        self._progress.say(
            f"stopped: {safe} of {self._total} chunks are safe in {self._store.folder}; "
            "the same command goes on from there"
        )

    def _end(self, outcome: str) -> None:
        self._manifest.end(outcome, reused=self._reused, computed=self._store.n_written)
        self._put_manifest()

    def _put_manifest(self) -> None:
        # Another reading of the same predictions is a guest in the folder.
        if self._own:
            self._store.put("manifest.json", to_json(self._manifest.data))

    def _put_failures(self) -> int:
        if self._own:
            return self._store.put_failures(self._plan)
        return sum(len(self._store.failures(chunk)) for chunk in self._plan.chunks)
