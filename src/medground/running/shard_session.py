"""One shard of a run: what ``medground run FILE --shard I/N`` does."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medground.benchmarks.base import Benchmark
from medground.running.allowance import Allowance
from medground.running.engines import compute
from medground.running.jsonable import to_json
from medground.running.ledger import NAME as LEDGER, SessionLedger
from medground.running.manifest import now
from medground.running.options import Options
from medground.running.plan import Chunk, Plan
from medground.running.profile import total
from medground.running.progress import Progress
from medground.running.redact import redact
from medground.running.run import job_of, plan_run, previous_manifest, reading_folder, torch_threads, unfinished
from medground.running.shards import Shard, agree_on_threads, put_record
from medground.running.store import Store
from medground.running.threads import fixed_torch_threads
from medground.running.worker import Job
from medground.storage import is_address


@dataclass(frozen=True)
class ShardReport:
    """A finished shard.

    Attributes:
        folder: of the run.
        shard: which part of it.
        chunks: how many chunks the shard has.
        reused: how many of them were finished before this session.
        failures: how many of its items could not be read.
    """

    folder: Path | str
    shard: Shard
    chunks: int
    reused: int
    failures: int


def execute_shard(
    benchmark: Benchmark,
    place: Path | str,
    shard: Shard,
    *,
    config: Mapping[str, Any],
    options: Options | None = None,
    rebuild: str = "",
    progress: Progress | None = None,
) -> ShardReport:
    """Compute the chunks of one shard of a run; the summary is made by a merge.

    Args:
        benchmark: what to run.
        place: the run folder, or an address, which all shards reach.
        shard: which part.
        config: the resolved run file.
        options: of the engine.
        rebuild: see :func:`~medground.running.run.execute`.
        progress: what is told about it.

    Raises:
        RunError: the shard or the whole run is being worked on, another shard was begun with another run file, or the
            folder cannot be written.
    """
    options, progress = options or Options(), progress or Progress()
    place = place if is_address(place) else Path(place).resolve()
    store = Store(place, redact(config), reading=reading_folder(benchmark), shard=shard, say=progress.say)
    with store:
        storage = store.storage
        threads = torch_threads(options, previous_manifest(storage, progress.say), storage)
        threads = agree_on_threads(storage, threads)
        plan = plan_run(benchmark, options, threads)
        put_record(storage, shard, plan, "running or killed", 0)
        try:
            job = job_of(rebuild, config, store, threads, options)
            report = _compute(store, shard, plan, options, progress, threads, job)
        except BaseException as error:
            put_record(storage, shard, plan, f"stopped by {type(error).__name__}", 0)
            raise
        put_record(storage, shard, plan, "finished", report.failures)
        return report


def _compute(
    store: Store, shard: Shard, plan: Plan, options: Options, progress: Progress, threads: int, job: Job | None
) -> ShardReport:
    mine = {(c.task_index, c.index) for number, c in enumerate(plan.chunks) if shard.holds(number)}

    def held(chunk: Chunk) -> bool:
        return (chunk.task_index, chunk.index) in mine

    chunks = [chunk for chunk in plan.chunks if held(chunk)]
    work = unfinished(plan, store.finished, options, only=held)
    todo = [chunk for _, some in work for chunk in some]
    items = sum(len(chunk.items) for chunk in chunks)
    deadline = None if options.deadline is None else time.monotonic() + options.deadline
    allowance = Allowance(options.failures_allowed(items), deadline)
    ledger = SessionLedger(store.storage, now(), store.reading_name, key=f"{shard.folder}/{LEDGER}")
    progress.start(items, items - sum(len(chunk.items) for chunk in todo))
    try:
        with fixed_torch_threads(threads) as opened:
            budget = ledger.budget(options)
            profiles = compute(
                work, store, options, progress, opened, allowance, asked=ledger.put, budget=budget, job=job
            )
    finally:
        progress.stop()
    if profiles:
        profile = {"total": total(profiles).as_dict(), "tasks": [p.as_dict() for p in profiles]}
        store.put(f"{shard.folder}/profile.json", to_json(profile))
    failures = sum(len(store.failures(chunk)) for chunk in chunks)
    return ShardReport(store.folder, shard, len(chunks), len(chunks) - len(todo), failures)
