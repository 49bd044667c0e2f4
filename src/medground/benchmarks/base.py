"""What a benchmark is, as the engine sees it.

A benchmark is cut into *tasks* (one model on one dataset, say): plain values that can be handed to another process. A
task lists its items without opening an image and, given its *players* (the built model, say), opens into *stages*.
Items ask through requests (:mod:`medground.benchmarks.requests`); what was said is kept free of any protocol, reader
or judge, and a *measurer* makes rows of it, now or later, without a model. ``evaluate`` is the same one item after
another, and the oracle of the engine's tests.

::

    Benchmark.tasks() -> Task.items() -> Task.open(players) -> Stages.load -> Stages.converse -> Transcript
    Task.measurer() -> Measurer.measure(item, transcript) -> rows          Benchmark.summarise(rows) -> Summary
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.cards import card_of
from medground.benchmarks.requests import Answer, Conversation, Transcript, answer_all
from medground.benchmarks.results import Summary
from medground.identity import component_identity, fingerprint_of
from medground.models.base import Kind, ModelInfo


@dataclass(frozen=True)
class Item:
    """One unit of work: a stable id and whatever ``load`` needs. Cheap to make; opens nothing.

    Attributes:
        item_id: stable, unique in its task.
        payload: for the stages alone.
        files: what ``load`` reads of it, pictures above all: their content is part of the result's identity.
    """

    item_id: str
    payload: Any = None
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Measured:
    """What was measured on one item.

    Attributes:
        rows: records in the task's schema; sufficient statistics, not verdicts.
        arrays: name -> array to keep beside the rows.
    """

    rows: Sequence[Mapping[str, Any]]
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)


class Stages(Protocol):
    """An opened task: its players are in memory."""

    def load(self, item: Item) -> Any:
        """Decode one item and prepare what will be asked. Called from several threads.

        Raises:
            DataError: the item cannot be read; the engine stops or skips, as ``on_error`` says.
        """

    def converse(self, item: Item, loaded: Any) -> Conversation[Mapping[str, Any]]:
        """Ask about one item, round after round; return JSON-like notes to keep beside the answers."""

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Answer a batch of requests, one answer each. Called from one thread at a time, in the order of the plan."""


class Measurer(Protocol):
    """Makes rows of what was said, under one protocol or reader; needs no model and no picture."""

    def measure(self, item: Item, transcript: Transcript) -> Measured:
        """Measure one item. Called from several threads; must not depend on other items.

        Raises:
            DataError: the item's truth cannot be read; treated as in ``load``.
        """

    def failed(self, item: Item, reason: str) -> Measured:
        """Return the rows of an item about which nothing was said: nothing invented, the reason kept.

        ``reason`` is the kind of trouble, without a path, so that it can be counted.
        """


class AskingMeasurer(Protocol):
    """A measurer that asks somebody itself (a judge, a language model that reads): its replies are kept as well."""

    def read(self, item: Item, transcript: Transcript) -> Conversation[Measured]:
        """Make the rows of one item, asking round after round."""

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Answer a batch of requests, one answer each."""

    def failed(self, item: Item, reason: str) -> Measured:
        """See :class:`Measurer`."""


class Task(Protocol):
    """One cell of the benchmark's grid, such as a model on a dataset. Picklable: a specification and a path."""

    @property
    def path(self) -> tuple[str, ...]:
        """Names of the folders its chunks lie in."""

    @property
    def schema(self) -> pl.Schema:
        """Columns of its rows."""

    @property
    def batch_size(self) -> int:
        """Requests a call of a local model."""

    @property
    def cohort(self) -> int | None:
        """Items that are asked about side by side; None: all of a chunk."""

    @property
    def expensive(self) -> bool:
        """Whether answers are journalled item by item, so that a kill costs what was in flight and no more."""

    @property
    def processes(self) -> bool:
        """Whether items are independent and busy the processor: workers are then processes, not threads."""

    @property
    def roles(self) -> Mapping[str, Entry]:
        """Who is asked: role -> component."""

    @property
    def reading_roles(self) -> Mapping[str, Entry]:
        """Who is asked when rows are made; empty where measuring asks nobody."""

    def items(self) -> Sequence[Item]:
        """Every item, ordered, with stable unique ids. Opens no image."""

    def fingerprint(self) -> str:
        """A hash of everything that its answers depend on, items excepted. Builds no model."""

    def reading(self) -> str:
        """A hash of what its rows depend on beyond the answers: protocol, reader, judge."""

    def open(self, players: Mapping[str, Any]) -> Stages:
        """Return the stages; ``players`` are the built ``roles``.

        Raises:
            ModelError: a player cannot do what is asked of it.
        """

    def measurer(self) -> Measurer:
        """Return what makes rows; tasks with ``reading_roles`` are asked for ``open_reading`` instead."""

    def open_reading(self, players: Mapping[str, Any]) -> AskingMeasurer:
        """Return what makes rows with the help of the built ``reading_roles``."""


class TaskDefaults:
    """What most tasks have in common."""

    cohort: int | None = None
    expensive: bool = False
    processes: bool = False

    @property
    def reading_roles(self) -> Mapping[str, Entry]:
        """Nobody."""
        return {}

    def open_reading(self, players: Mapping[str, Any]) -> AskingMeasurer:
        """Refuse: measuring asks nobody."""
        raise TypeError(f"{type(self).__name__} has no reading roles, and was given {sorted(players)}")


@dataclass(frozen=True)
class Declared:
    """What a run file says of a model, whatever its class says; what it leaves out is unknown.

    Attributes:
        kind: ``zero-shot``, ``supervised``, ``baseline`` or ``unknown``.
        seen: dataset -> what of it the model has seen in training.
        excluded: dataset, or ``""`` for every one -> patients to leave out, by their ids written one way.
        files: dataset, or ``""`` -> name of the file that lists them.
        findings: finding of a dataset -> what the model calls it.
    """

    kind: Kind | None = None
    seen: Mapping[str, str] = field(default_factory=dict)
    excluded: Mapping[str, frozenset[str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    findings: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.kind or self.seen or self.excluded or self.findings)


@dataclass(frozen=True)
class Entry:
    """A component that a run file names: built when it is needed, and only then. Picklable.

    Attributes:
        label: how tables call it; unique in a run.
        name: the component's name.
        cls: its class.
        parameters: of its constructor, checked.
        twin_of: of a blind twin: the label of the model whose it is.
        declared: what the run file says of it.
        repeat_of: of a further member of a repeated model: the label of the first.
        repeat: what that member is called.
        isolate: whether it works in a process of its own; a number: the seconds that one call may take there.
    """

    label: str
    name: str
    cls: type[Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    twin_of: str | None = None
    declared: Declared = field(default_factory=Declared)
    repeat_of: str | None = None
    repeat: str = ""
    isolate: bool | float = False

    @property
    def card(self) -> Any:
        """Its facts (``ModelInfo`` or ``DatasetInfo``), known without building it, with what the run file declares.

        Weights that the run file allows to be missing make a model another one than was published: that is said too.
        """
        card = card_of(self.cls, self.parameters)
        if not self.declared:
            return card
        card = card if isinstance(card, ModelInfo) else ModelInfo(self.label)
        kind = self.declared.kind or card.kind
        return replace(card, kind=kind, seen={**card.seen, **self.declared.seen})

    def build(self) -> Any:
        """Make the instance: loads weights, reads tables."""
        if self.isolate:
            from medground.models.controls.isolated import isolated

            return isolated(self.cls, self.parameters, None if self.isolate is True else float(self.isolate))
        return self.cls(**self.parameters)

    def shared(self) -> Any:
        """Return the instance of this run, built at the first call: for datasets, which hold no weights."""
        key = (self.cls, fingerprint_of(self.parameters))
        if key not in _SHARED:
            _SHARED[key] = self.build()
        return _SHARED[key]

    def identity(self) -> str:
        """Return a hash of class, parameters and the content of the files they name, without building it."""
        own = component_identity(self.cls, self.parameters)
        words = sorted(self.declared.findings.items())
        return fingerprint_of(own, words) if words else own


_SHARED: dict[tuple[type[Any], str], Any] = {}


def forget_shared() -> None:
    """Have datasets read anew: their tables may have changed since the last run of this process."""
    _SHARED.clear()


@dataclass(frozen=True)
class Role:
    """Who a benchmark needs.

    Attributes:
        kind: of component: ``model``, ``judge``, ``simulator``, ``explainer``, ``segmenter``, ``dataset``, ``reader``.
        capability: what it must be able to do, one of these; empty: whatever its kind can.
        least: how many at least.
        most: how many at most; None: any number.
        default: the component taken where the run file names none.
        sees: whether it is shown pictures; a judge of words is not.
    """

    kind: str
    capability: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None
    default: Mapping[str, Any] | None = None
    sees: bool = True


@dataclass(frozen=True)
class Setting:
    """What a run hands to its benchmark beside the benchmark's own parameters; models have their prompts already.

    Attributes:
        models: one entry a model.
        datasets: one entry a dataset.
        seed: of everything random.
        batch_size: requests a call of a local model, where the run file says so.
        explainers: one entry an explainer.
        prompts: finding -> prompt.
        roles: name of a role -> who plays it.
    """

    models: Sequence[Entry]
    datasets: Sequence[Entry] = ()
    seed: int = 0
    batch_size: int | None = None
    explainers: Sequence[Entry] = ()
    prompts: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, Sequence[Entry]] = field(default_factory=dict)

    @property
    def requests_a_call(self) -> int:
        """``batch_size``, 8 by default."""
        return 8 if self.batch_size is None else self.batch_size


def withheld(datasets: Sequence[Entry]) -> list[str]:
    """Return the labels of datasets whose pictures may not be passed on; one that does not say so is among them."""
    return [entry.label for entry in datasets if not getattr(entry.card, "redistributable", False)]


class Benchmark(Protocol):
    """A benchmark: what to run, and what the rows say. Its constructor takes the parameters of the run file.

    Attributes:
        name: the component's name.
        roles: name of a role -> who may play it. ``models`` are listed at the top of a run file, ``datasets`` and
            ``explainers`` in the benchmark's mapping, every other role under ``roles:``.
        readings: what may be changed without asking a model again: option of ``medground score`` (``protocol``,
            ``reader``, ``judge``) -> the parameter or role that it sets.
        doors: what it offers beside this contract -> ``module:function``, imported when it is used: ``compare``,
            ``score_files``, ``train``, ``build``, ...
    """

    name: ClassVar[str]
    roles: ClassVar[Mapping[str, Role]]
    readings: ClassVar[Mapping[str, str]]
    doors: ClassVar[Mapping[str, str]]

    @property
    def reading(self) -> tuple[str, Any]:
        """The reading in force: a short name (its protocol, reader or judge), and JSON-like all that it consists of."""

    def bind(self, setting: Setting) -> None:
        """Take the models and datasets of this run; called once, before anything else."""

    def notes(self) -> Sequence[str]:
        """What a reader of the run must know beforehand, said when it starts and kept in its manifest."""

    def withheld(self) -> Sequence[str]:
        """Where pictures come from that may not be passed on: they do not leave this machine without leave."""

    def tasks(self) -> Sequence[Task]:
        """The grid of work, in a stable order."""

    def summarise(self, rows: Mapping[tuple[str, ...], pl.DataFrame]) -> Summary:
        """Pure: from the rows of every task (by its path) to tables and figures' data."""

    def manifest(self) -> Mapping[str, Any]:
        """What the run's manifest must say beside versions and device: hashes, prompts, protocol."""


def evaluate(task: Task, players: Mapping[str, Any], items: Sequence[Item] | None = None) -> list[Measured]:
    """Evaluate a task one item after another in this thread: the engine without overlap, and its oracle in tests.

    Args:
        task: whose items are evaluated.
        players: role -> built component, those who are asked when rows are made among them.
        items: those to evaluate; by default all.
    """
    stages = task.open({role: players[role] for role in task.roles})
    measure = _reading(task, players)
    results = []
    for item in task.items() if items is None else items:
        notes, exchanges = answer_all(stages.converse(item, stages.load(item)), stages.answer, task.batch_size)
        results.append(measure(item, Transcript(item.item_id, exchanges, notes)))
    return results


def _reading(task: Task, players: Mapping[str, Any]) -> Callable[[Item, Transcript], Measured]:
    if not task.reading_roles:
        return task.measurer().measure
    reading = task.open_reading({role: players[role] for role in task.reading_roles})
    return lambda item, transcript: answer_all(reading.read(item, transcript), reading.answer, task.batch_size)[0]
