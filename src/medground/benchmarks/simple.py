"""A benchmark in one class: items, what is asked about each, what the answers mean, and metrics that are means.

A class of yours gives ``name``, ``metrics`` and three methods; tasks, failures, resume, summary, report, other readings
and comparisons follow. ``docs/adding.md`` has one of forty lines. What goes beyond means over items implements
:class:`medground.benchmarks.base.Benchmark` itself.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import polars as pl

from medground.benchmarks.base import Entry, Item, Measured, Role, Setting, TaskDefaults, withheld
from medground.benchmarks.cards import facts_of
from medground.benchmarks.comparable import Comparable, Contender, Sample, side_by_side
from medground.benchmarks.looking import with_looking
from medground.benchmarks.players import Players
from medground.benchmarks.requests import Answer, Ask, Conversation, Transcript
from medground.benchmarks.results import Cell, Summary, with_floors
from medground.identity import component_identity, fingerprint_of, written_out
from medground.imaging.reading import read_radiograph
from medground.metrics.bootstrap import clusters
from medground.metrics.inference import estimate_mean
from medground.metrics.spec import MetricSpec

Reads = Generator[Sequence[Ask], Sequence[Answer], Mapping[str, float | None]]
"""Asks a judge, say, and returns the value of every metric."""


class Simple:
    """What benchmarks have in common whose metrics are means over items.

    Attributes:
        name: the component's name.
        metrics: what is measured on every item, as a value in [0, 1]; None where undefined.
        roles: who takes part; those that a reading names are asked when rows are made, the others before.
        readings: what may be changed without asking the model again, such as ``{"judge": "judge"}``.
        doors: what it offers beside.
    """

    name: ClassVar[str]
    metrics: ClassVar[Sequence[MetricSpec]]
    roles: ClassVar[Mapping[str, Role]] = {"models": Role("model", ("reply",), least=1)}
    readings: ClassVar[Mapping[str, str]] = {}
    doors: ClassVar[Mapping[str, str]] = {"compare": "medground.benchmarks.simple:compare"}

    setting = Setting(models=())

    def items(self, dataset: Any) -> Sequence[Item]:
        """Return the items, with ids that stay; opens no picture.

        Args:
            dataset: of the run; None where the benchmark has no role ``datasets``.
        """
        raise TypeError(f"{type(self).__name__} has no items(dataset), and was given {dataset!r}")

    def load(self, item: Item) -> Any:
        """Return what is asked about: the item's first picture, decoded; None where it has none."""
        return read_radiograph(item.files[0], case_id=item.item_id) if item.files else None

    def converse(self, item: Item, loaded: Any) -> Conversation[Mapping[str, Any] | None]:
        """Ask about an item, round after round; return JSON-like notes for ``read``, or nothing.

        A refusal, a time-out or an error ends it, and the item is undefined.
        """
        raise TypeError(f"{type(self).__name__} has no converse(), and was given {item.item_id!r} and {loaded!r}")

    def read(self, item: Item, transcript: Transcript) -> Reads | Mapping[str, float | None]:
        """Return the value of every metric, after asking those whom a reading names."""
        raise TypeError(f"{type(self).__name__} has no read(), and was given {item.item_id!r} and {transcript!r}")

    def cluster(self, item: Item) -> str | None:
        """Return the patient, where it is known: items of one are never taken for independent."""
        del item
        return None

    # What follows is the contract, and needs no change.

    def bind(self, setting: Setting) -> None:
        """See :class:`medground.benchmarks.base.Benchmark`."""
        self.setting = setting

    @property
    def parameters(self) -> dict[str, Any]:
        """What the constructor was given, kept under the same names."""
        from inspect import signature

        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    @property
    def judging(self) -> dict[str, Entry]:
        """Who is asked when rows are made."""
        places = [place for place in self.readings.values() if place in self.roles]
        return {place: entry for place in places for entry in self.setting.roles.get(place, ())[:1]}

    @property
    def asked(self) -> dict[str, Entry]:
        """Who is asked beside the model before rows are made."""
        own = [name for name in self.roles if name not in {"models", "datasets"} | set(self.readings.values())]
        return {name: entry for name in own for entry in self.setting.roles.get(name, ())[:1]}

    @property
    def reading(self) -> tuple[str, Any]:
        """The parameters and judges that a reading may change; a benchmark without any is read in one way."""
        chosen = {place: self.parameters[place] for place in self.readings.values() if place in self.parameters}
        judges = {role: entry.label for role, entry in self.judging.items()}
        name = "-".join(str(part) for part in (*chosen.values(), *judges.values())) or "rules"
        return name, chosen | {role: entry.identity() for role, entry in self.judging.items()}

    def notes(self) -> Sequence[str]:
        """Return who judges, if anybody does."""
        return [f"{role}: {entry.label}" for role, entry in self.judging.items()]

    def withheld(self) -> Sequence[str]:
        """Return datasets that may not be passed on; pictures without a dataset are nobody's to pass on."""
        if self.setting.datasets:
            return withheld(self.setting.datasets)
        return sorted({path.parent.name for item in self.items(None) for path in item.files})

    def manifest(self) -> Mapping[str, Any]:
        """Return the parameters and the reading."""
        return {"parameters": written_out(type(self), self.parameters), "reading": self.reading[1]}

    def identity(self) -> str:
        """Return a hash of the class and of the parameters on which answers depend."""
        asked = {k: v for k, v in self.parameters.items() if k not in self.readings.values()}
        return component_identity(type(self), asked)

    def tasks(self) -> Sequence[SimpleTask]:
        """Return one task a model, and a dataset where there are any."""
        datasets: Sequence[Entry | None] = self.setting.datasets or [None]
        return [SimpleTask(self, model, dataset) for model in self.setting.models for dataset in datasets]

    def summarise(self, rows: Mapping[tuple[str, ...], pl.DataFrame]) -> Summary:
        """Return every metric's mean with its interval, and what looking adds to models that have a blind twin."""
        cells = with_floors([cell for path, table in rows.items() for cell in self._cells(path, table)], self.metrics)
        facts = [facts_of(entry.label, entry.card) for entry in self.setting.models]
        summary = Summary(
            cells=cells,
            benchmark=self.name,
            reading=self.reading[0],
            models=facts,
            metrics=self.metrics,
            tables={"means": _table(cells, self.metrics)},
            notes=tuple(self.notes()),
        )
        return with_looking(summary, compare(self), rows, self.setting.models)

    def _cells(self, path: tuple[str, ...], rows: pl.DataFrame) -> Iterable[Cell]:
        by = clusters(rows["cluster"].to_list(), rows["item"].to_list())
        failed = int((rows["reason"] != "").sum())
        for spec in self.metrics:
            estimate = estimate_mean(rows[spec.name].fill_null(float("nan")).to_numpy(), by)
            yield Cell(
                benchmark=self.name,
                reading=self.reading[0],
                model=path[0],
                dataset=path[1],
                metric=spec.name,
                value=estimate.value,
                low=None if estimate.value is None else estimate.low,
                high=None if estimate.value is None else estimate.high,
                n=estimate.n,
                undefined=max(0, estimate.n_undefined - failed),
                failed=failed,
                reason=(estimate.reason or "undefined") if estimate.value is None else None,
            )


def _table(cells: Sequence[Cell], metrics: Sequence[MetricSpec]) -> pl.DataFrame:
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    titles = {spec.name: spec for spec in metrics}
    for cell in cells:
        line = lines.setdefault((cell.model, cell.dataset), {"model": cell.model, "dataset": cell.dataset})
        line |= {titles[cell.metric].title: titles[cell.metric].shown(cell.value), "n": cell.n, "failed": cell.failed}
    return pl.DataFrame(list(lines.values()), infer_schema_length=None)


def compare(benchmark: Simple) -> Comparable:
    """Return how runs are compared: every metric on the items that both have, under one reading."""

    def samples(side: Contender) -> list[Sample]:
        table = side.rows.select("item", patient="cluster", group=pl.lit(""))
        return [Sample(spec, table.with_columns(value=side.rows[spec.name])) for spec in benchmark.metrics]

    asked = {"benchmark": benchmark.identity(), "reading": benchmark.reading[1]}
    return Comparable(asked, side_by_side(samples), benchmark.notes(), seed=benchmark.setting.seed)


@dataclass(frozen=True)
class SimpleTask(TaskDefaults):
    """One model, on one dataset where there are any.

    Attributes:
        benchmark: whose items are asked about.
        model: who is asked.
        dataset: where the items come from.
    """

    benchmark: Simple
    model: Entry
    dataset: Entry | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """Model and dataset."""
        return self.model.label, self.dataset.label if self.dataset else self.benchmark.name

    @property
    def schema(self) -> pl.Schema:
        """The item, its cluster, a column a metric, and why nothing is known."""
        metrics = {spec.name: pl.Float64() for spec in self.benchmark.metrics}
        return pl.Schema({"item": pl.String(), "cluster": pl.String(), **metrics, "reason": pl.String()})

    @property
    def batch_size(self) -> int:
        """That of the run."""
        return self.benchmark.setting.batch_size or 8

    @property
    def roles(self) -> Mapping[str, Entry]:
        """The model, and who else is asked with it."""
        return {"model": self.model, **self.benchmark.asked}

    @property
    def reading_roles(self) -> Mapping[str, Entry]:
        """Who judges."""
        return self.benchmark.judging

    def items(self) -> Sequence[Item]:
        """See :meth:`Simple.items`."""
        return self.benchmark.items(self.dataset.shared() if self.dataset else None)

    def fingerprint(self) -> str:
        """A hash of the benchmark's class and parameters, of who is asked, and of the dataset."""
        players = {role: entry.identity() for role, entry in self.roles.items()}
        dataset = self.dataset.shared().fingerprint() if self.dataset else ""
        return fingerprint_of("simple", 1, self.benchmark.identity(), players, dataset, self.benchmark.setting.seed)

    def reading(self) -> str:
        """A hash of what the rows depend on beside."""
        return fingerprint_of("simple", 1, self.benchmark.reading[1])

    def open(self, players: Mapping[str, Any]) -> _Stages:
        """See :class:`medground.benchmarks.base.Task`."""
        return _Stages(self.benchmark, Players(players, by=self.benchmark.name))

    def measurer(self) -> _Reading:
        """See :class:`medground.benchmarks.base.Task`."""
        return _Reading(self.benchmark, Players({}, by=self.benchmark.name))

    def open_reading(self, players: Mapping[str, Any]) -> _Reading:
        """See :class:`medground.benchmarks.base.Task`."""
        return _Reading(self.benchmark, Players(players, by=self.benchmark.name))


def _while_answered(asking: Generator[Sequence[Ask], Sequence[Answer], Any]) -> Conversation[tuple[str, Any]]:
    """Ask until somebody gives no answer; return what took its place (else nothing), and the result."""
    answers: Sequence[Answer] | None = None
    while True:
        try:
            asks = next(asking) if answers is None else asking.send(answers)
        except StopIteration as stop:
            return "", stop.value
        answers = yield asks
        for ask, answer in zip(asks, answers, strict=True):
            if answer.outcome != "ok":
                asking.close()
                return f"{ask.role}: {answer.outcome}", None


@dataclass(frozen=True)
class _Stages:
    benchmark: Simple
    players: Players

    def load(self, item: Item) -> Any:
        return self.benchmark.load(item)

    def converse(self, item: Item, loaded: Any) -> Conversation[Mapping[str, Any]]:
        lost, notes = yield from _while_answered(self.benchmark.converse(item, loaded))
        return {"lost": lost, "notes": notes or {}}

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        return self.players.answer(role, capability, arguments)


@dataclass(frozen=True)
class _Reading:
    """Makes rows, with and without asking."""

    benchmark: Simple
    players: Players

    def read(self, item: Item, transcript: Transcript) -> Conversation[Measured]:
        if transcript.notes["lost"]:
            return self.failed(item, transcript.notes["lost"])
        values = self.benchmark.read(item, Transcript(item.item_id, transcript.exchanges, transcript.notes["notes"]))
        lost = ""
        if not isinstance(values, Mapping):
            lost, values = yield from _while_answered(values)
        return self.failed(item, lost) if lost else self._row(item, cast("Mapping[str, float | None]", values))

    def measure(self, item: Item, transcript: Transcript) -> Measured:
        reading = self.read(item, transcript)
        try:
            asks = next(reading)
        except StopIteration as stop:
            return cast("Measured", stop.value)
        raise TypeError(f"{self.benchmark.name}: read() asks {asks[0].role}, whom no reading names")

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        return self.players.answer(role, capability, arguments)

    def failed(self, item: Item, reason: str) -> Measured:
        return self._row(item, {}, reason)

    def _row(self, item: Item, values: Mapping[str, float | None], reason: str = "") -> Measured:
        known = {name: None if value is None else float(value) for name, value in values.items()}
        every = {spec.name: known.get(spec.name) for spec in self.benchmark.metrics}
        return Measured([{"item": item.item_id, "cluster": self.benchmark.cluster(item), **every, "reason": reason}])
