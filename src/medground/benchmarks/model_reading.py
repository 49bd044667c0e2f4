"""Reading replies by a language model, for any benchmark whose rows are made by rule-based readers.

A benchmark makes the rows of an item with readers that it is handed. Here they are handed over twice: first by readers
that only note what they are shown, then, once a model has been asked about all of it, by readers that know its answers.
The rules have read the same replies by then, so that both stand in the rows and their agreement can be told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import polars as pl

from medground.benchmarks.base import Entry
from medground.benchmarks.requests import Ask, Conversation
from medground.benchmarks.results import Summary
from medground.errors import ConfigError
from medground.metrics.agreement import agreement
from medground.models.base import Reply
from medground.readers.base import Question, Reader, Reading, fingerprint_of
from medground.readers.llm import LlmReader, Task

ROLE = "reader"
Readers = Mapping[Task, Reader]


@dataclass(frozen=True)
class ModelReading:
    """A language model as the reader of a benchmark's tasks.

    Attributes:
        entry: of the reader, as the run file names it: ``{name: llm, by: {...}}``.
        tasks: what is read: ``yes_no``, ``choice``, ``findings``.
    """

    entry: Entry
    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        if not issubclass(self.entry.cls, LlmReader) or self.entry.parameters.get("by") is None:
            raise ConfigError(
                "a reader that is named with its parts is a language model",
                where="roles.readers",
                expected="{name: llm, by: {name: api_chat, ...}}",
                got=self.entry.name,
            )

    @property
    def readers(self) -> dict[Task, LlmReader]:
        """What asks, by task."""
        given = {name: value for name, value in self.entry.parameters.items() if name not in ("by", "of")}
        return {task: self.entry.cls(of=task, **given) for task in self.tasks}

    @property
    def model(self) -> Entry:
        """Who is asked."""
        part = self.entry.parameters["by"]
        return Entry(f"{self.entry.label}, the reader", part.name, part.cls, part.parameters)

    def record(self) -> dict[str, Any]:
        """Return what a reading rests on: reader and version, a hash of each prompt, the model and its identity."""
        prompts = {task: reader.fingerprint() for task, reader in self.readers.items()}
        by = {"model": self.model.name, "identity": self.model.identity()}
        return {"reader": LlmReader.name, "version": LlmReader.version, "prompts": prompts, "by": by}

    def fingerprint(self) -> str:
        """A hash of :meth:`record`."""
        return fingerprint_of(self.record())

    def read(self, measure: Callable[[Readers], list[dict[str, Any]]]) -> Conversation[list[dict[str, Any]]]:
        """Make rows by a model's readings, asking about every reply in one round.

        Args:
            measure: makes the rows of an item with the readers that it is handed; pure.
        """
        noting = {task: _Noting() for task in self.tasks}
        measure(noting)
        asked = [(task, *pair) for task, reader in noting.items() for pair in dict.fromkeys(reader.shown)]
        readers = self.readers
        asks = []
        for task, question, reply in asked:
            conversation, options = readers[task].ask(question, reply)
            key = {"reading": task, "question": question.record()}
            asks.append(Ask(ROLE, "reply", {"conversation": conversation, "options": options}, key))
        answers = (yield asks) if asks else []
        told: dict[Task, dict[tuple[Question, str], Reading]] = {task: {} for task in self.tasks}
        for (task, question, reply), answer in zip(asked, answers, strict=True):
            told[task][question, reply] = readers[task].interpret(reply, Reply.of(answer.values))
        return measure({task: _Told(readings) for task, readings in told.items()})


@dataclass
class _Noting:
    """A reader that notes what it is shown."""

    name: ClassVar[str] = "noting"
    version: ClassVar[str] = "1"
    shown: list[tuple[Question, str]] = field(default_factory=list)

    def read(self, question: Question, reply: str) -> Reading:
        self.shown.append((question, reply))
        return Reading(None, "not read yet", "unreadable")

    def fingerprint(self) -> str:
        return self.name


@dataclass
class _Told:
    """A reader that knows the readings beforehand."""

    name: ClassVar[str] = "told"
    version: ClassVar[str] = "1"
    readings: Mapping[tuple[Question, str], Reading]

    def read(self, question: Question, reply: str) -> Reading:
        return self.readings[question, reply]

    def fingerprint(self) -> str:
        return self.name


@dataclass(frozen=True)
class Compared:
    """What two readers made of the same replies of one model in one place.

    Attributes:
        model: label.
        dataset: label.
        task: what was read.
        first: categories of the reader in force; None where it read nothing.
        second: those of the rules.
    """

    model: str
    dataset: str
    task: str
    first: Sequence[str | None]
    second: Sequence[str | None]


def with_readers(summary: Summary, compared: Sequence[Compared], first: str = "llm", second: str = "rules") -> Summary:
    """Return a summary with the table ``readers``: agreement of two readers, raw, kappa and PABAK, and in words."""
    lines = [_line(one, first, second) for one in compared if any(value is not None for value in one.second)]
    if not lines:
        return summary
    tables = {**summary.tables, "readers": pl.DataFrame(lines, infer_schema_length=None)}
    return replace(summary, tables=tables, notes=(*summary.notes, *(str(line["words"]) for line in lines)))


def _line(one: Compared, first: str, second: str) -> dict[str, Any]:
    got = agreement(one.first, one.second)
    kappa = f"kappa {got.kappa:.2f}" if got.kappa is not None else f"kappa is undefined: {got.reason}"
    raw = "none" if got.raw is None else f"{100 * got.raw:.1f} %"
    words = (
        f"{one.model} on {one.dataset}: {first} and {second} read {raw} of {got.n} replies ({one.task}) alike; {kappa}"
    )
    return {
        "model": one.model, "dataset": one.dataset, "task": one.task, "first": first, "second": second, "raw": got.raw,
        "kappa": got.kappa, "pabak": got.pabak, "n": got.n, "n_undefined": got.n_undefined, "reason": got.reason,
        "words": words,
    }  # fmt: skip
