"""Verdicts in words: the sign, the figure with its interval, and what it was held against. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from medground.benchmarks.printing import interval, text, with_interval
from medground.benchmarks.results import Answer, Cell, Verdict
from medground.metrics.spec import MetricSpec

Specs = Callable[[str], MetricSpec]

SIGNS: Mapping[Answer, str] = {
    "yes": "yes",
    "in part": "partly",
    "no": "no",
    "cannot be told": "undecided",
    "not asked": "unasked",
}
"""Answer -> the class of its sign: its form says the same as its colour."""

WORDS: Mapping[Answer, str] = {answer: f"{answer[:1].upper()}{answer[1:]}" for answer in SIGNS}

NOTES: Mapping[str, str] = {
    "seen": "has seen some of this dataset in training",
    "searched": "the threshold was picked on the scored cases, which flatters",
    "few": "few patients or scenes: nothing is claimed",
    "judged": "answers were judged by a model",
    "shared_pool": "models were scored on the cases that all of them have",
    "unparsed": "some replies could not be read",
}
"""Code of a verdict's note -> what it means."""

DIGITS = 1


def figures(verdict: Verdict, spec: Specs) -> str:
    """Return what a verdict rests on as one sentence; nothing where nothing was asked."""
    headline = verdict.headline
    if headline is None:
        return ""
    parts = [_named(headline, spec)]
    beside = comparator(verdict, spec)
    if beside:
        parts.append(f"{beside[0]} {text(spec(headline.metric), beside[1], DIGITS)}")
    difference = verdict.roles.get("difference")
    if difference is not None and difference.value is not None:
        parts.append(f"difference {signed(difference, spec(difference.metric))}")
    companion = verdict.roles.get("companion")
    if companion is not None:
        parts.append(_named(companion, spec))
    return "; ".join([*parts, _items(headline)])


def comparator(verdict: Verdict, spec: Specs) -> tuple[str, float] | None:
    """Return the name and the value of what the headline is held against: its twin, else its floor."""
    headline = verdict.headline
    if headline is None:
        return None
    twin, floor = verdict.roles.get("twin"), verdict.roles.get("floor")
    if twin is not None and twin.value is not None:
        return "blind twin", twin.value
    name = spec(headline.metric).floor or "floor"
    if floor is not None and floor.value is not None:
        return name, floor.value
    return None if headline.floor is None else (name, headline.floor)


def signed(cell: Cell, spec: MetricSpec) -> str:
    """Return a difference with its sign and interval: ``+3.9 [-8.3, +17.9]``."""
    assert cell.value is not None
    ends = [f"{spec.scale * end:+.{DIGITS}f}" for end in (cell.low, cell.high) if end is not None]
    return f"{spec.scale * cell.value:+.{DIGITS}f}" + (f" [{', '.join(ends)}]" if ends else "")


def short(cell: Cell, spec: MetricSpec) -> str:
    """Return a value alone, or ``undefined``."""
    return "undefined" if cell.value is None else text(spec, cell.value, DIGITS)


def spread(cell: Cell, spec: MetricSpec) -> str:
    """Return its interval, or nothing."""
    return interval(spec, cell.low, cell.high, DIGITS)


def _named(cell: Cell, spec: Specs) -> str:
    return f"{spec(cell.metric).title} {with_interval(spec(cell.metric), cell, DIGITS)}"


def _items(cell: Cell) -> str:
    lost = [f"{n:,} {what}" for what, n in (("undefined", cell.undefined), ("failed", cell.failed)) if n]
    what = "n over classes" if cell.scope == "macro" else "n"
    return ", ".join([f"{what} {cell.n:,}", *lost])
