"""Limits that a run file states beforehand, held against the cells: passed, failed, or cannot be told.

A limit speaks of a metric, or of a question: then its verdict's headline is meant. It asks for a least value, for a
least distance above what can be had without looking, or for a greatest value where low is good. The whole interval must
lie on the right side to pass, and on the wrong side to fail; a figure without an interval decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from medground.benchmarks.results import Cell, Summary, Verdict
from medground.errors import ConfigError, did_you_mean
from medground.metrics.decide import side_of
from medground.metrics.spec import MetricSpec

Outcome = Literal["passed", "failed", "cannot be told"]

FIELDS = ("metric", "question", "model", "dataset", "scope", "group", "at_least", "at_most", "above_floor_by")
_BOUNDS = ("at_least", "at_most", "above_floor_by")
_WORDS: Mapping[str, Outcome] = {"yes": "passed", "no": "failed", "cannot be told": "cannot be told"}


@dataclass(frozen=True, kw_only=True)
class Limit:
    """One limit as a run file states it; shares are given in percent, as they are printed.

    Attributes:
        metric: whose figure is meant; or
        question: whose verdict's headline is meant.
        model: label of the one model it holds for; empty: every model that is no baseline.
        dataset: the one dataset; empty: every one.
        scope: of the cell; empty: the whole.
        group: of the cell, such as a finding.
        at_least: the interval must lie above it.
        at_most: the interval must lie below it.
        above_floor_by: the interval must lie above the floor by so much; a paired difference decides if there is one.

    Raises:
        ConfigError: neither or both of metric and question, or not exactly one bound.
    """

    metric: str = ""
    question: str = ""
    model: str = ""
    dataset: str = ""
    scope: str = ""
    group: str = ""
    at_least: float | None = None
    at_most: float | None = None
    above_floor_by: float | None = None

    def __post_init__(self) -> None:
        if bool(self.metric) == bool(self.question):
            raise ConfigError("a limit speaks of a metric or of a question", where="limits", got=self.in_words())
        if sum(getattr(self, bound) is not None for bound in _BOUNDS) != 1:
            raise ConfigError(
                "a limit has one bound", where="limits", expected=" or ".join(_BOUNDS), got=self.in_words()
            )

    def in_words(self) -> str:
        """Return the limit as a report prints it."""
        what = self.metric or f"“{self.question}”"
        of = ", ".join(filter(None, [self.model, self.dataset, self.group]))
        bounds = [(words, getattr(self, name)) for name, words in zip(_BOUNDS, _BOUND_WORDS, strict=True)]
        stated = [f"{words} {value:g}" for words, value in bounds if value is not None]
        return f"{what}{f' of {of}' if of else ''} {' and '.join(stated)}".strip()


_BOUND_WORDS = ("at least", "at most", "above its floor by")


@dataclass(frozen=True)
class Checked:
    """A limit held against one cell.

    Attributes:
        limit: as stated.
        model: whose cell.
        where: dataset and group.
        figure: the value with its interval, as printed.
        outcome: ``passed``, ``failed`` or ``cannot be told``.
        because: why it cannot be told; else nothing.
    """

    limit: Limit
    model: str
    where: str
    figure: str
    outcome: Outcome
    because: str = ""


def read_limits(given: Sequence[Mapping[str, Any]]) -> list[Limit]:
    """Return the limits of a run file.

    Raises:
        ConfigError: a field that a limit has not, or a value of another type.
    """
    limits = []
    for k, entry in enumerate(given):
        for name, value in entry.items():
            if name not in FIELDS:
                raise ConfigError(
                    f"a limit has no field {name!r}",
                    where=f"limits.{k}",
                    expected=", ".join(FIELDS),
                    fix=did_you_mean(name, FIELDS),
                )
            kind = (int, float) if name in _BOUNDS else str
            if not isinstance(value, kind) or isinstance(value, bool):
                expected = "a number" if name in _BOUNDS else "a name"
                raise ConfigError("a limit's value is of another type", where=f"limits.{k}.{name}", expected=expected)
        limits.append(Limit(**entry))
    return limits


def check_limits(limits: Sequence[Limit], summaries: Sequence[Summary]) -> list[Checked]:
    """Hold limits against summaries, in order; a limit that nothing was measured for cannot be told."""
    results: list[Checked] = []
    for limit in limits:
        held = [
            _checked(limit, cell, verdict, summary) for summary in summaries for cell, verdict in _meant(limit, summary)
        ]
        results += held or [Checked(limit, limit.model, limit.dataset, "", "cannot be told", "nothing was measured")]
    return results


def worst(results: Sequence[Checked]) -> Outcome:
    """Return what they come to: failed where any failed, else cannot be told where any cannot."""
    outcomes = {result.outcome for result in results}
    order: tuple[Outcome, ...] = ("failed", "cannot be told")
    return next((outcome for outcome in order if outcome in outcomes), "passed")


def _meant(limit: Limit, summary: Summary) -> list[tuple[Cell, Verdict | None]]:
    def fits(model: str, dataset: str) -> bool:
        asked = model == limit.model if limit.model else not summary.facts(model).baseline
        return asked and (not limit.dataset or dataset == limit.dataset)

    if limit.question:
        told = [v for v in summary.verdicts if v.question == limit.question and fits(v.model, v.dataset)]
        return [(v.headline, v) for v in told if v.headline is not None]
    cells = [c for c in summary.cells if c.metric == limit.metric and c.subset == "main" and fits(c.model, c.dataset)]
    if limit.scope or limit.group:
        kept = [c for c in cells if c.group == limit.group and (not limit.scope or c.scope == limit.scope)]
        return [(cell, None) for cell in kept]
    wholes = [scope for scope in ("all", "macro", "pairs") if any(c.scope == scope for c in cells)]
    return [(cell, None) for cell in cells if wholes and cell.scope == wholes[0]]


def _checked(limit: Limit, cell: Cell, verdict: Verdict | None, summary: Summary) -> Checked:
    from medground.benchmarks.printing import with_interval

    spec = summary.spec(cell.metric)
    outcome, because = _outcome(limit, cell, verdict, spec)
    where = ", ".join(filter(None, [cell.dataset, cell.group]))
    return Checked(limit, cell.model, where, with_interval(spec, cell, 1), outcome, because)


def _outcome(limit: Limit, cell: Cell, verdict: Verdict | None, spec: MetricSpec) -> tuple[Outcome, str]:
    if cell.value is None:
        return "cannot be told", cell.reason or "undefined"
    low, high = cell.low, cell.high
    if limit.at_most is not None:
        edge = limit.at_most / spec.scale
        side = side_of(None if high is None else -high, None if low is None else -low, -edge)
    elif limit.at_least is not None:
        side = side_of(low, high, limit.at_least / spec.scale)
    else:
        assert limit.above_floor_by is not None  # a limit has one bound
        gain = limit.above_floor_by / spec.scale
        difference = None if verdict is None else verdict.roles.get("difference")
        if difference is not None and difference.low is not None:
            side = side_of(difference.low, difference.high, gain)
        elif cell.floor is None:
            return "cannot be told", "the metric has no floor"
        else:
            side = side_of(low, high, cell.floor + gain)
    why = {True: "no interval", False: "the interval reaches over the limit"}[low is None]
    return _WORDS[side], "" if side != "cannot be told" else why
