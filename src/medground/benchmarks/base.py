"""What a benchmark is, as the engine sees it.

A benchmark is cut into *tasks* (one model on one dataset, say). A task lists its items without opening an image and
opens into *stages*: the engine overlaps ``load`` and ``measure`` in worker threads with ``infer``, which runs in one
thread, batch after batch, in the order of the plan. ``evaluate`` below is the same without overlap.

::

    Benchmark.tasks() -> Task.items() -> Task.open() -> Stages.load -> Stages.infer -> Stages.measure -> rows
    Benchmark.summarise(rows of every task) -> Summary
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.results import Summary


@dataclass(frozen=True)
class Item:
    """One unit of work: a stable id and whatever ``load`` needs. Cheap to make; opens nothing."""

    item_id: str
    payload: Any = None


@dataclass(frozen=True)
class Measured:
    """What was measured on one item.

    Attributes:
        rows: records in the task's schema; sufficient statistics, not verdicts.
        arrays: name -> array to keep beside the rows (saliency on the model's grid, say).
    """

    rows: Sequence[Mapping[str, Any]]
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)


class Stages(Protocol):
    """An opened task: the model is in memory."""

    def load(self, item: Item) -> Any:
        """Decode one item. Called from several threads.

        Raises:
            DataError: the item cannot be read; the engine stops or skips, as ``on_error`` says.
        """

    def infer(self, batch: Sequence[Any]) -> Sequence[Any]:
        """Run the model on loaded items, one result each. Called from one thread at a time, in plan order.

        Raises:
            DataError: something that the model reads about an item cannot be read; the items of the batch are then
                given one by one, and those that raise again are treated as in ``load``.
        """

    def measure(self, item: Item, loaded: Any, inferred: Any) -> Measured:
        """Measure one item. Called from several threads; must not depend on other items.

        Raises:
            DataError: the item's truth cannot be read; treated as in ``load``.
        """

    def failed(self, item: Item, reason: str) -> Measured:
        """Return the rows of an item that could not be read: nothing invented, the reason kept.

        Called from several threads. ``reason`` is the kind of trouble, without a path, so that it can be counted.
        """


class Task(Protocol):
    """One cell of the benchmark's grid, such as a model on a dataset."""

    @property
    def path(self) -> tuple[str, ...]:
        """Names of the folders its chunks lie in, below ``rows`` and ``maps``."""

    @property
    def schema(self) -> pl.Schema:
        """Columns of its rows."""

    @property
    def batch_size(self) -> int:
        """Items a call of ``infer``."""

    def items(self) -> Sequence[Item]:
        """Every item, ordered, with stable unique ids. Opens no image."""

    def fingerprint(self) -> str:
        """A hash of everything that its rows depend on, items excepted."""

    def open(self) -> Stages:
        """Load the model and return the stages."""


@dataclass(frozen=True)
class Entry:
    """A component that a run file names: built when it is needed, and only then.

    Attributes:
        label: how tables call it; unique in a run.
        name: the component's name.
        card: its facts (``ModelInfo`` or ``DatasetInfo``), known without building it.
        build: makes the instance (loads weights, reads tables).
    """

    label: str
    name: str
    card: Any
    build: Callable[[], Any]


@dataclass(frozen=True)
class Setting:
    """What a run hands to its benchmark beside the benchmark's own parameters; models have their prompts already."""

    models: Sequence[Entry]
    datasets: Sequence[Entry] = ()
    seed: int = 0
    batch_size: int = 8
    explainers: Sequence[Entry] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)


class Benchmark(Protocol):
    """A benchmark: what to run, and what the rows say. Its constructor takes the parameters of the run file.

    Attributes:
        name: the component's name.
        takes: which lists of components its mapping in the run file may hold beside its parameters: ``datasets``,
            ``explainers``.
    """

    name: ClassVar[str]
    takes: ClassVar[tuple[str, ...]]

    def bind(self, setting: Setting) -> None:
        """Take the models and datasets of this run; called once, before anything else."""

    def notes(self) -> Sequence[str]:
        """What a reader of the run must know beforehand, said when it starts and kept in its manifest."""

    def tasks(self) -> Sequence[Task]:
        """The grid of work, in a stable order."""

    def summarise(self, rows: Mapping[tuple[str, ...], pl.DataFrame]) -> Summary:
        """Pure: from the rows of every task (by its path) to tables and figures' data."""

    def manifest(self) -> Mapping[str, Any]:
        """What the run's manifest must say beside versions and device: hashes, prompts, protocol."""


def evaluate(stages: Stages, items: Sequence[Item], batch_size: int) -> list[Measured]:
    """Evaluate items one batch after another in this thread: the engine without overlap, and its oracle in tests."""
    results: list[Measured] = []
    for start in range(0, len(items), batch_size):
        batch = items[start : start + batch_size]
        loaded = [stages.load(item) for item in batch]
        inferred = stages.infer(loaded)
        results += [stages.measure(i, x, y) for i, x, y in zip(batch, loaded, inferred, strict=True)]
    return results
