"""A benchmark on the first items of every task alone: a look at whether a run works, and no result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from medground.benchmarks.base import Benchmark, Item, Task
from medground.benchmarks.comparable import Rows
from medground.benchmarks.results import Summary


class FirstItems:
    """A task with its first items alone; everything else is the task's own. Picklable, as the task is.

    Args:
        task: the whole.
        most: items that are kept.
    """

    def __init__(self, task: Task, most: int) -> None:
        self._task, self._most = task, most

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._task, name)

    def items(self) -> Sequence[Item]:
        """Return the first items, in the task's order."""
        return list(self._task.items())[: self._most]


class Shortened:
    """A benchmark whose tasks are cut short; everything but tasks and summary is the benchmark's own.

    Args:
        benchmark: bound.
        most: items of a task that are kept.
    """

    def __init__(self, benchmark: Benchmark, most: int) -> None:
        self._benchmark, self._most = benchmark, most

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._benchmark, name)

    def tasks(self) -> Sequence[Task]:
        """Return the benchmark's tasks, cut short."""
        return [cast("Task", FirstItems(task, self._most)) for task in self._benchmark.tasks()]

    def summarise(self, rows: Rows) -> Summary:
        """Return the summary, which says among its first notes that it is not of the whole."""
        summary = self._benchmark.summarise(rows)
        note = f"only the first {self._most:,} items of each task were asked: no figure holds for the whole"
        return replace(summary, notes=(note, *summary.notes))
