"""What is asked of a model, and the answer with the cells that it follows from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from medground.benchmarks.cells import CHECKED, Cell
from medground.errors import MetricError

Answer = Literal["yes", "in part", "no", "cannot be told", "not asked"]
ANSWERS: tuple[Answer, ...] = get_args(Answer)

Role = Literal["headline", "floor", "twin", "companion", "difference"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something that is asked of a model, and that a verdict answers.

    Attributes:
        key: its name in summaries.
        title: as the head of a column: a verb that the model is the subject of.
        asks: the question in full, of any model.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = CHECKED

    key: str
    title: str
    asks: str


QUESTIONS: Mapping[str, Question] = {
    q.key: q
    for q in (
        Question(key="recognises", title="Tells present from absent", asks="Does it tell which findings are there?"),
        Question(key="points", title="Points at the finding", asks="Does its map peak on the finding that it names?"),
        Question(key="overlaps", title="Covers the finding", asks="Does its map cover the finding and little else?"),
        Question(
            key="words",
            title="Follows when words change",
            asks="Does a yes turn into a no when the question names another region or finding?",
        ),
        Question(
            key="pixels",
            title="Follows when pixels change",
            asks="Does the answer follow when the finding is painted out of the picture?",
        ),
        Question(
            key="captions",
            title="Prefers the true caption",
            asks="Does it prefer the true caption over one with a single wrong medical term?",
        ),
        Question(
            key="dialogue",
            title="Stays faithful in a dialogue",
            asks="Do its answers over a dialogue agree with what was measured?",
        ),
        Question(
            key="explains",
            title="Explains itself truthfully",
            asks="Does its explanation lie on what its answer depends on?",
        ),
    )
}
"""The questions that reports put side by side, in their order. A benchmark may ask others: ``Summary.questions``."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One answer to one question about one model.

    It follows from its cells by the one decision rule; nothing else may be read into it.

    Attributes:
        benchmark: the benchmark that asked.
        question: key of the question, see ``QUESTIONS``.
        model: label of the model.
        answer: ``yes``, ``in part``, ``no``, ``cannot be told`` or ``not asked``.
        because: one sentence: what decided; for ``not asked`` the capability that is missing.
        reading: the protocol, reader or judge.
        dataset: label of the dataset.
        method: an explainer, where it is about one.
        margin: what the headline must clear beside its floor, in the metric's own unit; None where none was needed.
        roles: which cell plays which part: ``headline`` (the figure), ``floor`` (what can be had without looking),
            ``twin`` (the same model that cannot look), ``companion`` (what separates *yes* from *in part*),
            ``difference`` (headline minus floor or twin, paired; where it is there, its interval decides).
        notes: codes of reasons to doubt: ``seen``, ``searched``, ``few``, ``judged``, ``shared_pool``, ``unparsed``.

    Raises:
        MetricError: no such answer or role, or ``not asked`` with cells, or another answer without a headline.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = CHECKED

    benchmark: str
    question: str
    model: str
    answer: Answer
    because: str
    reading: str = ""
    dataset: str = ""
    method: str = ""
    margin: float | None = None
    roles: Mapping[str, Cell] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = f"{self.question} of {self.model}"
        if self.answer not in ANSWERS:
            raise MetricError("no such answer", where=where, expected=", ".join(ANSWERS), got=self.answer)
        if unknown := set(self.roles) - set(ROLES):
            raise MetricError("no such role", where=where, expected=", ".join(ROLES), got=", ".join(sorted(unknown)))
        if (self.answer == "not asked") == ("headline" in self.roles):
            raise MetricError(
                "a verdict rests on its headline cell, and what was not asked has none",
                where=where,
                got=f"{self.answer}, {', '.join(self.roles) or 'no cell'}",
            )

    @property
    def headline(self) -> Cell | None:
        """The cell whose figure stands beside the answer."""
        return self.roles.get("headline")

    @property
    def comparator(self) -> Cell | None:
        """The cell that the headline is held against: the blind twin where there is one, else the floor."""
        return self.roles.get("twin") or self.roles.get("floor")
