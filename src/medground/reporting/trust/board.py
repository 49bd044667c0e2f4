"""The matrix: models down, questions across, a tile for every pair. Pure: from summaries to what the page prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_lowercase

from medground.benchmarks.results import QUESTIONS, Answer, Cell, ModelFacts, Question, Summary, Verdict
from medground.metrics.spec import MetricSpec
from medground.reporting.trust.strips import Scale, Strip, scale_of, strip_of
from medground.reporting.verdicts import NOTES, comparator, figures, short, spread
from medground.reporting.words import count, listed

CLASSES: Mapping[Answer, str] = {
    "yes": "yes",
    "in part": "part",
    "no": "no",
    "cannot be told": "told",
    "not asked": "none",
}
"""Answer -> its class on this page: sign, tint and outline."""

LACKS: Mapping[str, str] = {
    "ground": "gives no maps",
    "match": "compares no captions",
    "reply": "answers no questions",
    "choose": "weighs no choices",
    "logits": "gives no scores to answers",
    "masks": "outlines no anatomy",
}
"""Capability -> what a model without it does not do."""

ORDER: tuple[Answer, ...] = ("no", "cannot be told", "in part", "yes", "not asked")
"""Which of several verdicts a tile draws: the least flattering."""


_NO_STRIP = Strip()
_DASH = "\N{EN DASH}"
_Writer = Callable[[Cell, MetricSpec], str]


@dataclass(frozen=True)
class Told:
    """A verdict with the summary that it comes from."""

    verdict: Verdict
    summary: Summary

    @property
    def where(self) -> str:
        """Dataset, method and reading, as far as they are named."""
        v = self.verdict
        return ", ".join(part for part in (v.method, v.dataset, v.reading) if part)

    @property
    def figures(self) -> str:
        """What it rests on, in one line."""
        return figures(self.verdict, self.summary.spec)


@dataclass(frozen=True)
class Tile:
    """One cell of the matrix.

    Attributes:
        answer: to the question; several verdicts come to one: all alike, or *in part* where some are yes.
        told: the verdicts behind it, the one that is drawn first; empty where nothing was asked.
        strip: the picture of the first.
        letters: codes of its notes, as letters.
        say: everything in words.
        why_not: why nothing was asked.
    """

    answer: Answer
    told: tuple[Told, ...] = ()
    strip: Strip = _NO_STRIP
    letters: str = ""
    say: str = ""
    why_not: str = ""

    @property
    def sign(self) -> str:
        """Its class on the page."""
        return CLASSES[self.answer]

    @property
    def figure(self) -> str:
        """The headline's value as printed."""
        return _headline(self.told[0], short) if self.told else ""

    @property
    def open_figure(self) -> str:
        """Value and interval in one piece, as they stand where nothing is claimed."""
        return ", ".join(filter(None, [self.figure, self.interval]))

    @property
    def interval(self) -> str:
        """Its interval: ``95.7-98.1``."""
        text = _headline(self.told[0], spread) if self.told else ""
        return text.strip("[]").replace(", ", _DASH) if text else ""

    @property
    def items(self) -> str:
        """How many items it rests on, and how many verdicts a tile joins."""
        if not self.told:
            return ""
        headline = self.told[0].verdict.headline
        n = "" if headline is None else items_of(headline)
        return n if len(self.told) == 1 else f"{n}, 1 of {len(self.told)}"


def _headline(told: Told, write: _Writer) -> str:
    cell = told.verdict.headline
    return "" if cell is None else write(cell, told.summary.spec(cell.metric))


def items_of(cell: Cell) -> str:
    """Return what a figure rests on: patients where they are counted, classes of a mean over classes, else n."""
    if "patients" in cell.counts:
        return count(cell.counts["patients"], "patient")
    return count(cell.n, "class", "classes") if cell.scope == "macro" else f"n {cell.n:,}"


@dataclass(frozen=True)
class QuestionColumn:
    """A question: its number, and the scale of its strips."""

    number: int
    question: Question
    benchmark: str
    metric: str
    low: str
    high: str
    scale: Scale


@dataclass(frozen=True)
class Row:
    """A model with its tiles, in the order of the columns."""

    number: int
    facts: ModelFacts
    tiles: tuple[Tile, ...]

    @property
    def counts(self) -> list[tuple[str, Answer, int]]:
        """(class, answer, how often), those that occur, best first."""
        answers = [tile.answer for tile in self.tiles]
        return [(CLASSES[a], a, answers.count(a)) for a in CLASSES if a in answers]


class TrustBoard:
    """Models by questions over the summaries of a suite."""

    def __init__(self, summaries: Sequence[Summary]) -> None:
        self.summaries = summaries

    @cached_property
    def told(self) -> list[Told]:
        """Every verdict, in the order of the summaries."""
        return [Told(verdict, summary) for summary in self.summaries for verdict in summary.verdicts]

    @cached_property
    def facts(self) -> dict[str, ModelFacts]:
        """Every model by its label: baselines and twins after the others."""
        facts: dict[str, ModelFacts] = {}
        for summary in self.summaries:
            for model in summary.models:
                facts.setdefault(model.label, model)
        for told in self.told:
            facts.setdefault(told.verdict.model, ModelFacts(label=told.verdict.model))
        return dict(sorted(facts.items(), key=lambda item: item[1].baseline))

    @cached_property
    def columns(self) -> list[QuestionColumn]:
        """Questions that somebody was asked: the shared ones in their order, then a benchmark's own."""
        asked = {t.verdict.question: t for t in reversed(self.told) if t.verdict.answer != "not asked"}
        own = [key for key in dict.fromkeys(t.verdict.question for t in self.told) if key not in QUESTIONS]
        keys = [key for key in (*QUESTIONS, *own) if key in asked]
        return [self._column(number, asked[key]) for number, key in enumerate(keys, 1)]

    def _column(self, number: int, first: Told) -> QuestionColumn:
        headline = first.verdict.headline
        assert headline is not None  # it was asked
        spec = first.summary.spec(headline.metric)
        scale = scale_of(spec, list(self._values(first.verdict.question)))
        unit = ", %" if spec.unit == "percent" else ", points" if spec.unit == "points" else ""
        low, high = (f"{spec.scale * end:.3g}" for end in (scale.low, scale.high))
        question = first.summary.question(first.verdict.question)
        return QuestionColumn(number, question, first.summary.benchmark, f"{spec.title}{unit}", low, high, scale)

    def _values(self, question: str) -> Iterator[float]:
        for told in self.told:
            headline = told.verdict.headline
            if told.verdict.question == question and headline is not None:
                yield from (v for v in (headline.value, headline.low, headline.high) if v is not None)

    @cached_property
    def letters(self) -> dict[str, str]:
        """Code of a note -> its letter, for those that occur."""
        codes = [code for code in NOTES if any(code in told.verdict.notes for told in self.told)]
        return dict(zip(codes, ascii_lowercase, strict=False))

    @cached_property
    def rows(self) -> list[Row]:
        """Every model."""
        return [
            Row(number, facts, tuple(self._tile(facts, column) for column in self.columns))
            for number, facts in enumerate(self.facts.values(), 1)
        ]

    def _tile(self, facts: ModelFacts, column: QuestionColumn) -> Tile:
        key = column.question.key
        told = [t for t in self.told if (t.verdict.model, t.verdict.question) == (facts.label, key)]
        asked = sorted(
            (t for t in told if t.verdict.answer != "not asked"), key=lambda t: ORDER.index(t.verdict.answer)
        )
        if not asked:
            return Tile("not asked", why_not=told[0].verdict.because if told else self._missing(facts, column))
        answer = together([t.verdict.answer for t in asked])
        first = asked[0]
        codes = dict.fromkeys(code for t in asked for code in t.verdict.notes)
        letters = "".join(self.letters[code] for code in codes if code in self.letters)
        strip = strip_of(first.verdict, first.summary.spec, column.scale)
        return Tile(answer, tuple(asked), strip, letters, _say(facts, column, answer, asked))

    def _missing(self, facts: ModelFacts, column: QuestionColumn) -> str:
        """Say why a model has no verdict on a question that others have."""
        for summary in self.summaries:
            lacks = summary.facts(facts.label).missing
            if summary.benchmark == column.benchmark and lacks:
                return listed([LACKS.get(capability, f"it has no {capability}") for capability in lacks])
        return "no run asked it"

    @cached_property
    def floors(self) -> list[str]:
        """What can be had without looking, a column: the smallest and the largest comparator, and what it is."""
        return [self._floor(column) for column in self.columns]

    def _floor(self, column: QuestionColumn) -> str:
        known: list[tuple[str, float, str]] = []
        for told in self.told:
            beside = comparator(told.verdict, told.summary.spec)
            if told.verdict.question == column.question.key and beside and told.verdict.headline:
                spec = told.summary.spec(told.verdict.headline.metric)
                known.append((beside[0], beside[1], f"{spec.scale * beside[1]:.1f}"))
        if not known:
            return ""
        low, high = min(known, key=lambda k: k[1]), max(known, key=lambda k: k[1])
        figure = low[2] if low[2] == high[2] else f"{low[2]}{_DASH}{high[2]}"
        return f"{figure} {' or '.join(dict.fromkeys(name for name, *_ in known))}"


def together(answers: Sequence[Answer]) -> Answer:
    """Join the answers to one question: all alike, else *in part* where any is yes or in part, else not told."""
    if len(set(answers)) == 1:
        return answers[0]
    return "in part" if {"yes", "in part"} & set(answers) else "cannot be told"


def _say(facts: ModelFacts, column: QuestionColumn, answer: Answer, asked: Sequence[Told]) -> str:
    """Return a tile in words: the answer, then every verdict behind it."""
    several = len(asked) > 1
    parts = [
        f"{told.where}: {told.verdict.answer}. {told.verdict.because} {told.figures}."
        if several
        else f"{told.verdict.because} {told.figures}."
        for told in asked
    ]
    joined = f" ({count(len(asked), 'verdict')})" if several else ""
    return f"{facts.label}, “{column.question.title}”: {answer}{joined}. {' '.join(parts)}"
