"""A strip: one verdict on the scale of its question, as places in percent from left to right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medground.benchmarks.results import Cell, Verdict
from medground.metrics.spec import MetricSpec
from medground.reporting.verdicts import Specs, comparator

EDGE = 2.0
"""Percent left free at either end, so that a mark at the end of a scale is whole."""
GUESSING = (0.4, 1.0)
"""Scale of what guessing gets half of: nothing much lies below."""


@dataclass(frozen=True)
class Scale:
    """What a strip runs from and to, in the metric's own unit."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return where a value stands, in percent; what lies outside stands at the end."""
        share = (value - self.low) / (self.high - self.low)
        return round(EDGE + (100 - 2 * EDGE) * min(max(share, 0.0), 1.0), 2)


@dataclass(frozen=True)
class Strip:
    """Places in percent; None where there is no such mark.

    Attributes:
        zone: right end of the grey zone: what can be had without looking, and the margin.
        floor: the floor.
        twin: the blind twin.
        low: left end of the interval.
        high: right end.
        point: the figure.
        ring: the companion.
    """

    zone: float | None = None
    floor: float | None = None
    twin: float | None = None
    low: float | None = None
    high: float | None = None
    point: float | None = None
    ring: float | None = None


def scale_of(spec: MetricSpec, values: Sequence[float]) -> Scale:
    """Return the scale of a column: the metric's bounds, less where guessing gets half, else what the values need."""
    if spec.bounds is not None:
        low, high = GUESSING if spec.floor_value == 0.5 and spec.bounds == (0.0, 1.0) else spec.bounds
        return Scale(min([low, *values]), max([high, *values]))
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.05 * (high - low) or 1.0
    return Scale(low - room, high + room)


def strip_of(verdict: Verdict, spec: Specs, scale: Scale) -> Strip:
    """Return the strip of a verdict.

    Where the paired difference decided, its interval is drawn from the comparator on, so that picture and verdict
    cannot disagree.
    """
    headline = verdict.headline
    if headline is None or headline.value is None:
        return Strip()
    beside = comparator(verdict, spec)
    held = None if beside is None else beside[1]
    low, high = headline.low, headline.high
    difference = verdict.roles.get("difference")
    if difference is not None and difference.low is not None and difference.high is not None and held is not None:
        low, high = held + difference.low, held + difference.high
    margin = verdict.margin or 0.0
    return Strip(
        zone=None if held is None or spec(headline.metric).direction != "higher" else scale.place(held + margin),
        floor=_at(scale, headline.floor if "floor" not in verdict.roles else verdict.roles["floor"].value),
        twin=_at(scale, _value(verdict.roles.get("twin"))),
        low=_at(scale, low),
        high=_at(scale, high),
        point=scale.place(headline.value),
        ring=_at(scale, _companion(verdict, spec, held)),
    )


def _companion(verdict: Verdict, spec: Specs, held: float | None) -> float | None:
    """Return the companion on the headline's scale; a difference is drawn from the comparator on."""
    cell = verdict.roles.get("companion")
    if cell is None or cell.value is None or verdict.headline is None:
        return None
    if spec(cell.metric).unit != "points" or spec(verdict.headline.metric).unit == "points":
        return cell.value
    return None if held is None else held + cell.value


def _value(cell: Cell | None) -> float | None:
    return None if cell is None else cell.value


def _at(scale: Scale, value: float | None) -> float | None:
    return None if value is None else scale.place(value)
