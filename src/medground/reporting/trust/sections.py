"""A section a benchmark: every verdict with its figures, and the headline by group with strips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from medground.benchmarks.results import Cell, Summary, Verdict
from medground.metrics.spec import MetricSpec
from medground.reporting.trust.board import CLASSES, Told
from medground.reporting.trust.strips import Scale, Strip, scale_of
from medground.reporting.verdicts import WORDS, comparator, short, signed, spread

MOST_GROUPS = 40
"""Lines of a table by group; the run's own report has them all."""


@dataclass(frozen=True)
class SectionLine:
    """A verdict as a line of a table."""

    sign: str
    word: str
    model: str
    question: str
    where: str
    figure: str
    interval: str
    beside: str
    difference: str
    n: str
    because: str


@dataclass(frozen=True)
class SectionGroup:
    """A group's figure with its strip; ``value`` is what the table sorts by."""

    name: str
    figure: str
    interval: str
    value: float | None
    n: str
    note: str
    strip: Strip


@dataclass(frozen=True)
class Groups:
    """One metric of one model on one dataset, by group."""

    title: str
    by: str
    low: str
    high: str
    lines: tuple[SectionGroup, ...]


@dataclass(frozen=True)
class BenchmarkSection:
    """What one summary says: its reading, its verdicts, its groups, and what must be known."""

    anchor: str
    title: str
    described: str
    lines: tuple[SectionLine, ...]
    groups: tuple[Groups, ...]
    notes: tuple[str, ...]


def sections(summaries: Sequence[Summary]) -> list[BenchmarkSection]:
    """Return one section a summary, in order."""
    return [_section(number, summary) for number, summary in enumerate(summaries)]


def anchors(summaries: Sequence[Summary]) -> dict[str, str]:
    """Return benchmark -> anchor of its first section."""
    known: dict[str, str] = {}
    for number, summary in enumerate(summaries):
        known.setdefault(summary.benchmark, f"b{number}")
    return known


def _section(number: int, summary: Summary) -> BenchmarkSection:
    title = summary.benchmark + (f", {summary.reading}" if summary.reading else "")
    lines = tuple(_line(Told(verdict, summary)) for verdict in summary.verdicts)
    return BenchmarkSection(
        f"b{number}", title, summary.described, lines, tuple(_groups(summary)), tuple(map(str, summary.notes))
    )


def _line(told: Told) -> SectionLine:
    v, summary = told.verdict, told.summary
    headline, beside, difference = v.headline, comparator(v, summary.spec), v.roles.get("difference")
    spec = None if headline is None else summary.spec(headline.metric)
    return SectionLine(
        CLASSES[v.answer],
        WORDS[v.answer],
        v.model,
        summary.question(v.question).title,
        told.where,
        "" if headline is None or spec is None else f"{spec.title} {short(headline, spec)}",
        "" if headline is None or spec is None else spread(headline, spec),
        "" if beside is None or spec is None else f"{beside[0]} {spec.scale * beside[1]:.1f}",
        "" if difference is None or difference.value is None else signed(difference, summary.spec(difference.metric)),
        "" if headline is None else f"{headline.n:,}",
        v.because,
    )


def _groups(summary: Summary) -> Iterator[Groups]:
    """Yield the groups of every headline: the scope with the fewest that has two or more."""
    done: set[tuple[str, ...]] = set()
    for verdict in summary.verdicts:
        headline = verdict.headline
        if headline is None or summary.facts(verdict.model).baseline:
            continue
        place = (verdict.model, verdict.dataset, verdict.method, headline.metric)
        if place in done:
            continue
        done.add(place)
        yield from _by_scope(summary, verdict, headline)


def _by_scope(summary: Summary, verdict: Verdict, headline: Cell) -> Iterator[Groups]:
    spec = summary.spec(headline.metric)
    same = ("model", "dataset", "subset", "method", "reading", "metric")
    own = [c for c in summary.cells if all(getattr(c, name) == getattr(headline, name) for name in same) and c.group]
    apart = {record["trait"] for record in summary.data.get("subgroups", ())}  # these have a section of their own
    scopes: dict[str, list[Cell]] = {}
    for cell in own:
        scopes.setdefault(cell.scope, []).append(cell)
    for scope, cells in scopes.items():
        measured = any(cell.value is not None for cell in cells)
        if measured and scope not in apart and 2 <= len(cells) <= MOST_GROUPS:
            values = [v for c in cells for v in (c.value, c.low, c.high, c.floor) if v is not None]
            scale = scale_of(spec, values)
            low, high = (f"{spec.scale * end:.3g}" for end in (scale.low, scale.high))
            where = ", ".join(part for part in (verdict.model, verdict.method, verdict.dataset) if part)
            lines = tuple(_group(cell, spec, scale) for cell in cells)
            yield Groups(f"{spec.title}: {where}", scope, low, high, lines)


def _group(cell: Cell, spec: MetricSpec, scale: Scale) -> SectionGroup:
    def at(value: float | None) -> float | None:
        return None if value is None else scale.place(value)

    zone = at(cell.floor) if spec.direction == "higher" else None
    strip = Strip(zone, at(cell.floor), None, at(cell.low), at(cell.high), at(cell.value), None)
    lost = [f"{n:,} {what}" for what, n in (("undefined", cell.undefined), ("failed", cell.failed)) if n]
    note = ", ".join([*lost, *([cell.reason] if cell.reason else [])])
    value = None if cell.value is None else spec.scale * cell.value
    return SectionGroup(cell.group, short(cell, spec), spread(cell, spec), value, f"{cell.n:,}", note, strip)
