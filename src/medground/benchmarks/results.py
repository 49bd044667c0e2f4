"""What a benchmark comes to: cells, verdicts, and the summary that holds them. One type for all benchmarks.

::

    Cell      one number: whose it is, its interval, its floor, and how many items it rests on
    Verdict   one answer to one question about one model, with the cells that it follows from
    Summary   all of these, the tables made for people, and what else the benchmark's own report draws

Reports, tables, the terminal, comparisons and exports read these and nothing else. ``summary.json`` holds a summary
under a format number; whoever reads one that another version wrote is told so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from medground.benchmarks.cells import CHECKED, KEYS, Cell, Cells, frame, with_floors
from medground.benchmarks.verdict import ANSWERS, QUESTIONS, ROLES, Answer, Question, Role, Verdict
from medground.errors import MetricError, RunError
from medground.metrics.spec import MetricSpec, spec_of

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "ANSWERS",
    "FORMAT",
    "KEYS",
    "QUESTIONS",
    "ROLES",
    "Answer",
    "Cell",
    "Cells",
    "ModelFacts",
    "Question",
    "Role",
    "Summary",
    "Verdict",
    "frame",
    "with_floors",
]

FORMAT = 2
"""Of ``summary.json``: raised whenever a reader of the last one could misread this one."""


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What reports must know of a model beside its numbers.

    Attributes:
        label: how the run calls it.
        title: its name in the literature.
        kind: ``zero-shot``, ``supervised``, ``baseline`` and the like; None where it is not known.
        twin_of: label of the model of which this is the blind twin: the same, without the picture.
        seen: dataset -> what it has seen of it in training; a dataset that it has not seen is absent.
        unverified: why it is not known to be the published model; None where it is.
        missing: capabilities that the benchmark asked for and that it has not.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = CHECKED

    label: str
    title: str = ""
    kind: str | None = None
    twin_of: str | None = None
    seen: Mapping[str, str] = field(default_factory=dict, hash=False)
    unverified: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def baseline(self) -> bool:
        """Whether it is a yardstick rather than a model."""
        return self.kind == "baseline" or self.twin_of is not None


@dataclass(frozen=True)
class Summary:
    """What a benchmark says at the end.

    Attributes:
        cells: every number.
        verdicts: every answer.
        tables: file stem -> table made for people, written as CSV, Markdown and LaTeX below ``tables``.
        data: what else the benchmark's own report draws (curves, pictures): JSON-like, no NaN.
        benchmark: the benchmark's name.
        reading: the protocol, reader or judge that made it; empty where there is one way alone.
        models: facts of every model, in the order of the run.
        metrics: what each metric of the cells is, in the order of tables.
        questions: those of its verdicts that are not in ``QUESTIONS``.
        level: coverage of every interval.
        described: the reading in one sentence.
        legend: what columns and marks of the tables in ``shown`` mean.
        shown: names of the tables that a terminal shows, in order; none: the first table.
        notes: what a reader must know of the whole: one sentence each.
        items: name -> one row an item, from which a report picks the cases that it shows: written as Parquet below
            ``items``, so that a report measures nothing.
    """

    cells: Sequence[Cell] = ()
    verdicts: Sequence[Verdict] = ()
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    benchmark: str = ""
    reading: str = ""
    models: Sequence[ModelFacts] = ()
    metrics: Sequence[MetricSpec] = ()
    questions: Sequence[Question] = ()
    level: float = 0.95
    described: str = ""
    legend: str = ""
    shown: tuple[str, ...] = ()
    notes: Sequence[str] = ()
    items: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the content of ``summary.json``: everything but tables and items."""
        return {
            "format": FORMAT,
            "benchmark": self.benchmark,
            "reading": self.reading,
            "level": self.level,
            "described": self.described,
            "legend": self.legend,
            "shown": list(self.shown),
            "notes": list(self.notes),
            "models": [_record(model) for model in self.models],
            "metrics": [_record(metric) for metric in self.metrics],
            "questions": [_record(question) for question in self.questions],
            "verdicts": [_record(verdict) for verdict in self.verdicts],
            "cells": [_record(cell) for cell in self.cells],
            "data": dict(self.data),
        }

    @classmethod
    def from_json(cls, content: Any, where: object = "summary.json") -> Summary:
        """Return the summary that ``content`` holds, without tables and items.

        Args:
            content: what ``to_json`` gave, read from a file: nothing in it is trusted.
            where: what to name in an error.

        Raises:
            RunError: another format number, a field that is missing, unknown or of another type, or a number that is
                not finite.
        """
        if not isinstance(content, Mapping):
            raise RunError("a summary is an object", where=where, got=type(content).__name__)
        if content.get("format") != FORMAT:
            raise RunError(
                "the summary was written by another version of medground",
                where=where,
                expected=f"format {FORMAT}",
                got=f"format {content.get('format', 'unnamed')}",
                fix="run the same run file again: what was predicted is kept, and summarised anew",
            )
        return _read(content, where)

    def question(self, key: str) -> Question:
        """Return a question by its key, this summary's own before the shared ones.

        Raises:
            MetricError: nothing asks it.
        """
        own = {question.key: question for question in self.questions}
        if key not in own and key not in QUESTIONS:
            raise MetricError("no such question", expected=", ".join([*own, *QUESTIONS]), got=key)
        return own.get(key) or QUESTIONS[key]

    def facts(self, model: str) -> ModelFacts:
        """Return the facts of a model; its label alone where nothing is known."""
        return next((facts for facts in self.models if facts.label == model), ModelFacts(label=model))

    def spec(self, metric: str) -> MetricSpec:
        """Return what a metric is; a plain number of which nothing may be claimed where nobody says."""
        return spec_of(metric, self.benchmark, self.metrics)

    def named(self, benchmark: str, reading: str | None = None) -> Summary:
        """Return the summary under a benchmark's name, and a reading's where one is given."""
        return replace(self, benchmark=benchmark, reading=self.reading if reading is None else reading)


def _record(thing: Any) -> dict[str, Any]:
    """Return a dataclass as JSON takes it; cells inside a verdict as objects of their own."""
    return {f.name: _plain(getattr(thing, f.name)) for f in fields(thing)}


def _plain(value: Any) -> Any:
    if isinstance(value, Cell):
        return _record(value)
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _read(content: Mapping[str, Any], where: object) -> Summary:
    from pydantic import ValidationError

    place = ""
    try:
        parts = {}
        for place, adapter in _adapters().items():
            parts[place] = adapter.validate_python(content[place])
        return Summary(**parts)
    except KeyError:
        where, problem = f"{where}: {place}", "it is missing"
    except MetricError as error:
        where, problem = f"{where}: {place}, {error.where}", error.what
    except ValidationError as error:
        first = error.errors()[0]
        where, problem = f"{where}: {'.'.join(map(str, (place, *first['loc'])))}", first["msg"]
    raise RunError("the summary is damaged", where=where, got=problem, fix="run the same run file again")


@cache
def _adapters() -> dict[str, Any]:
    """Return field of a summary -> what checks it; pydantic is imported when one is read."""
    from pydantic import TypeAdapter

    types: dict[str, Any] = {
        "benchmark": str,
        "reading": str,
        "level": float,
        "described": str,
        "legend": str,
        "shown": tuple[str, ...],
        "notes": list[str],
        "models": list[ModelFacts],
        "metrics": list[MetricSpec],
        "questions": list[Question],
        "verdicts": list[Verdict],
        "cells": list[Cell],
        "data": dict[str, Any],
    }
    return {name: TypeAdapter(kind) for name, kind in types.items()}
