"""From tasks to chunks: what is computed together, decided before anything runs.

A *chunk* is what is stored at once, a *cohort* the items that are asked about side by side, a *batch* what a model is
given at once. All follow from the plan alone and none crosses a chunk, so neither the number of workers nor a resume
can change what a model is given. A chunk of predictions is named by a fingerprint of all that made them, a chunk of
rows by that and the reading.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import medground
from medground.benchmarks.base import Item, Task
from medground.errors import ConfigError, RunError
from medground.running.names import folder_name


@dataclass(frozen=True)
class Chunk:
    """Items of one task that are stored together.

    Attributes:
        task_index: which task of the plan.
        path: the task's path.
        index: which chunk of the task, from 0.
        items: in the task's order.
        cohort: items that are asked about side by side; the last cohort of a chunk may be smaller.
        name: ``index-fingerprint``, the stem of the files of its predictions.
        rows_name: the stem of the files of its rows under the run's reading.
    """

    task_index: int
    path: tuple[str, ...]
    index: int
    items: tuple[Item, ...]
    cohort: int
    name: str
    rows_name: str

    def cohorts(self) -> Iterator[tuple[Item, ...]]:
        """Yield the items that are asked about side by side, in order."""
        for start in range(0, len(self.items), self.cohort):
            yield self.items[start : start + self.cohort]


@dataclass(frozen=True)
class TaskPlan:
    """A task, cut into chunks."""

    task: Task
    path: tuple[str, ...]
    fingerprint: str
    reading: str
    batch_size: int
    chunk_size: int
    chunks: tuple[Chunk, ...]

    @property
    def n_items(self) -> int:
        """Number of items of the task."""
        return sum(len(chunk.items) for chunk in self.chunks)


@dataclass(frozen=True)
class Plan:
    """Everything that a run computes, in order."""

    tasks: tuple[TaskPlan, ...]

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Every chunk, in order."""
        return tuple(chunk for planned in self.tasks for chunk in planned.chunks)

    @property
    def n_items(self) -> int:
        """Number of items of all tasks."""
        return sum(planned.n_items for planned in self.tasks)


def make_plan(
    tasks: Sequence[Task],
    *,
    chunk_size: int | None = None,
    settings: Mapping[str, Any] | None = None,
    version: str = medground.__version__,
) -> Plan:
    """Cut tasks into chunks.

    Args:
        tasks: the benchmark's grid of work.
        chunk_size: items a chunk; the last chunk of a task may be smaller. None: see :func:`fitting_chunk`.
        settings: whatever else of the engine can change the last bit of a result (JSON-like).
        version: of medground; rows that another version made are not mixed with these.

    Raises:
        ConfigError: a size is not positive.
        RunError: two tasks share a folder, or two items of a task an id.
    """
    if chunk_size is not None and chunk_size < 1:
        raise ConfigError("a chunk holds at least one item", where="engine.chunk", got=chunk_size)
    _refuse_shared_folders(tasks)
    return Plan(tuple(plan_task(i, task, chunk_size, settings, version) for i, task in enumerate(tasks)))


COHORT = 64
"""Items a chunk, and asked about side by side, unless a run file or a task says otherwise."""
_CHUNKS = 800


def fitting_chunk(items: int) -> int:
    """Return how many items a chunk of a task holds where nobody says: 64, or as many as make 800 chunks.

    Example:
        >>> fitting_chunk(50_000), fitting_chunk(1_000_000)
        (64, 1280)
    """
    return COHORT * max(1, -(-items // (_CHUNKS * COHORT)))


def plan_task(
    task_index: int,
    task: Task,
    chunk_size: int | None = None,
    settings: Mapping[str, Any] | None = None,
    version: str = medground.__version__,
) -> TaskPlan:
    """Cut one task of a plan into chunks; see :func:`make_plan`."""
    path, batch_size, fingerprint, reading = tuple(task.path), task.batch_size, task.fingerprint(), task.reading()
    if batch_size < 1:
        raise ConfigError("a batch holds at least one item", where="/".join(path), got=batch_size)
    for what, text in (("fingerprint", fingerprint), ("reading", reading)):
        if not isinstance(text, str) or not text:
            raise RunError(f"the {what} of a task is no text", where="/".join(path), expected="a hash", got=text)
    items = tuple(task.items())
    _refuse_shared_ids(path, items)
    # Whoever is asked side by side is in memory side by side: a large chunk has several cohorts.
    cohort = task.cohort or (COHORT if chunk_size is None else chunk_size)
    chunk_size = fitting_chunk(len(items)) if chunk_size is None else chunk_size
    common = [version, dict(settings or {}), chunk_size]
    chunks = []
    for index, start in enumerate(range(0, len(items), chunk_size)):
        part = items[start : start + chunk_size]
        made_of = [*common, fingerprint, batch_size, cohort, [item.item_id for item in part]]
        name = f"{index:05d}-{_digest(made_of)}"
        chunks.append(Chunk(task_index, path, index, part, cohort, name, f"{index:05d}-{_digest([name, reading])}"))
    return TaskPlan(task, path, fingerprint, reading, batch_size, chunk_size, tuple(chunks))


def _digest(made_of: Any) -> str:
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]


def _refuse_shared_folders(tasks: Sequence[Task]) -> None:
    # Folded, because some file systems do not tell upper from lower case.
    folders = [tuple(folder_name(part).casefold() for part in task.path) for task in tasks]
    for task, folder in zip(tasks, folders, strict=True):
        if not folder or folders.count(folder) > 1:
            raise RunError(
                "every task needs a folder of its own",
                where="/".join(task.path) or "a task without a path",
                expected="names that differ, upper and lower case taken as one",
                fix="give one of the two a name of its own in the run file: name: ...",
            )


def _refuse_shared_ids(path: tuple[str, ...], items: Sequence[Item]) -> None:
    item_id, times = next(iter(Counter(item.item_id for item in items).most_common(1)), ("", 0))
    if times > 1:
        raise RunError(
            "an item id stands for more than one item",
            where=f"{'/'.join(path)}: {item_id!r}",
            expected="ids that are unique within a task",
            got=f"{times} items with this id",
            fix="remove the duplicated rows from the dataset's table",
        )
