"""What a run would cost, without running it: items, disk, time. Takes no lock and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from medground.benchmarks.base import Benchmark, Item, Task
from medground.benchmarks.requests import Transcript, in_lockstep
from medground.errors import DataError
from medground.running.cast import Cast
from medground.running.chunks import (
    PREDICTIONS,
    READINGS,
    ChunkFiles,
    DamagedChunkError,
    Receipt,
    chunk_files,
    encode_rows,
    read_receipt,
)
from medground.running.options import Options
from medground.running.plan import Chunk, TaskPlan
from medground.running.predictions import as_kept, encode
from medground.running.profile import Profile
from medground.running.run import plan_run, previous_manifest, reading_folder, torch_threads, unfinished
from medground.running.threads import fixed_torch_threads
from medground.storage import Storage, open_storage


@dataclass(frozen=True)
class TaskEstimate:
    """What a task would cost.

    Attributes:
        path: the task's path.
        items: how many it has.
        items_left: how many of them are still to be computed.
        chunks: how many it has.
        chunks_left: how many of them are still to be computed.
        seconds: until it is done; None: not measured.
        bytes: what its missing chunks will take on the disk; None: neither measured nor any chunk finished.
    """

    path: tuple[str, ...]
    items: int
    items_left: int
    chunks: int
    chunks_left: int
    seconds: float | None
    bytes: int | None


def estimate(
    benchmark: Benchmark, folder: Path | str, *, options: Options | None = None, measure: bool = False
) -> list[TaskEstimate]:
    """Return what each task of a run in ``folder`` would cost.

    Args:
        benchmark: what would be run.
        folder: the run folder, which need not exist.
        options: of the engine.
        measure: open every unfinished task and time its first batch; without, only what needs no model is known.

    Raises:
        RunError: there is nothing to run.
    """
    options = options or Options()
    storage = open_storage(folder)
    threads = torch_threads(options, previous_manifest(storage, lambda _: None), storage)
    plan = plan_run(benchmark, options, threads)
    finished = _Finished(storage, reading_folder(benchmark))
    with fixed_torch_threads(threads) as opened:
        estimates = []
        for planned, todo in unfinished(plan, finished, options):
            batch = _time_batch(planned.task, next(todo[0].cohorts())) if measure and todo else None
            opened()
            estimates.append(_estimate(planned, todo, finished.bytes_per_item(planned), batch, options.n_workers))
    return estimates


class _Finished:
    """Looks up finished chunks, and what they take on the disk."""

    def __init__(self, storage: Storage, reading: str) -> None:
        self._storage, self._rows = storage, f"{READINGS}/{reading}/rows"

    def _files(self, chunk: Chunk) -> tuple[ChunkFiles, ChunkFiles]:
        said = chunk_files(self._storage, PREDICTIONS, chunk.path, chunk.name)
        return said, chunk_files(self._storage, self._rows, chunk.path, chunk.rows_name)

    def __call__(self, chunk: Chunk) -> Receipt | None:
        try:
            return read_receipt(self._files(chunk)[1])
        except DamagedChunkError:
            return None

    def bytes_per_item(self, planned: TaskPlan) -> float | None:
        sizes, items = 0, 0
        stored: dict[str, int] = {}
        for root in dict.fromkeys(key.rpartition("/")[0] for c in planned.chunks[:1] for key in self._keys(c)):
            stored |= {one.key: one.size for one in self._storage.list(f"{root}/")}
        for chunk in planned.chunks:
            if self(chunk) is not None:
                sizes += sum(stored.get(key, 0) for key in self._keys(chunk))
                items += len(chunk.items)
        return sizes / items if items else None

    def _keys(self, chunk: Chunk) -> list[str]:
        return [key for part in self._files(chunk) for key in (part.table, part.arrays, part.receipt)]


@dataclass(frozen=True)
class _Batch:
    """What one batch took: seconds a stage, and bytes an item."""

    profile: Profile
    items: int
    bytes_per_item: float


def _time_batch(task: Task, items: Sequence[Item]) -> _Batch:
    profile = Profile()
    with profile.timing("open"):
        stages = task.open(Cast().players(task.roles))
    loaded = []
    for item in items:
        try:
            with profile.timing("load"):
                loaded.append((item, stages.load(item)))
        except DataError:
            continue
    with profile.timing("infer"):
        outcomes = in_lockstep([stages.converse(*one) for one in loaded], stages.answer, lambda _: task.batch_size)
    transcripts = [
        as_kept(Transcript(item.item_id, outcome.exchanges, outcome.result or {}))
        for (item, _), outcome in zip(loaded, outcomes, strict=True)
        if outcome.error is None
    ]
    size = sum(len(part or b"") for part in encode(transcripts))
    if not task.reading_roles:
        size += _measure(task, [item for item, _ in loaded], transcripts, profile)
    return _Batch(profile, len(items), size / len(items))


def _measure(task: Task, items: Sequence[Item], transcripts: Sequence[Transcript], profile: Profile) -> int:
    by_id, measurer = {t.item_id: t for t in transcripts}, task.measurer()
    with profile.timing("measure"):
        measured = [measurer.measure(item, by_id[item.item_id]) for item in items if item.item_id in by_id]
    return len(encode_rows([row for part in measured for row in part.rows], task.schema))


def _estimate(
    planned: TaskPlan, todo: Sequence[Chunk], stored: float | None, batch: _Batch | None, workers: int
) -> TaskEstimate:
    left = sum(len(chunk.items) for chunk in todo)
    per_item = stored if stored is not None or batch is None else batch.bytes_per_item
    return TaskEstimate(
        path=planned.path,
        items=planned.n_items,
        items_left=left,
        chunks=len(planned.chunks),
        chunks_left=len(todo),
        seconds=None if batch is None and todo else _seconds(batch, left, workers),
        bytes=None if per_item is None and todo else round((per_item or 0.0) * left),
    )


def _seconds(batch: _Batch | None, left: int, workers: int) -> float:
    if batch is None:
        return 0.0
    spent = batch.profile.seconds
    beside = spent["load"] + spent["measure"]
    # With workers the slower of the two sides sets the pace.
    pace = max(spent["infer"], beside / workers) if workers else spent["infer"] + beside
    return spent["open"] + left * pace / batch.items
