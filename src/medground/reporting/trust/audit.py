"""The auditor's half: rates at an operating point, and for whom it works less well. Read, never computed.

Any benchmark whose summary keeps ``operating`` and ``subgroups`` among its data has these sections.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medground.benchmarks.results import Cell, Cells, Summary
from medground.metrics.spec import MetricSpec
from medground.reporting.trust.strips import Scale, Strip, scale_of
from medground.reporting.verdicts import short, spread

RATES = ("sensitivity", "specificity", "ppv", "npv")
SAYS: Mapping[str, str] = {
    "lower": "lower than the rest",
    "higher": "higher than the rest",
    "not shown": "no difference shown",
    "few": "too few to tell",
    "undefined": "undefined",
}
_SIGNS: Mapping[str, str] = {"lower": "no", "higher": "yes", "not shown": "told", "few": "told", "undefined": "none"}
MOST_CURVES = 14
"""Findings whose curve is drawn; all of them stand in the table."""
_SIDE = 200.0
"""Of the drawn curve's square, in its own units."""


@dataclass(frozen=True)
class Rate:
    """One finding at the operating point: the curve's area and the four rates, as printed."""

    finding: str
    auc: str
    figures: tuple[tuple[str, str], ...]
    positives: int
    negatives: int
    threshold: str
    plain: str


@dataclass(frozen=True)
class Operating:
    """One model on one dataset at its operating point.

    Attributes:
        model: label.
        dataset: label.
        source: where the thresholds are from.
        heads: titles of the rates.
        lines: one a finding, in the dataset's order.
        curves: SVG path and name of every curve, in a square of 200.
        points: (x, y, name) of the operating points in the same square.
    """

    model: str
    dataset: str
    source: str
    heads: tuple[str, ...]
    lines: tuple[Rate, ...]
    curves: tuple[tuple[str, str], ...]
    points: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True)
class GroupLine:
    """One group beside the rest."""

    trait: str
    name: str
    n: str
    patients: int
    figure: str
    interval: str
    value: float | None
    strip: Strip
    difference: str
    sign: str
    says: str
    few: bool


@dataclass(frozen=True)
class GroupTable:
    """One metric of one model on one dataset, by group."""

    title: str
    low: str
    high: str
    compared: int
    lines: tuple[GroupLine, ...]


def operating(summaries: Sequence[Summary]) -> list[Operating]:
    """Return the operating points of every model that is no baseline."""
    return [point for summary in summaries for point in _operating(summary)]


def _operating(summary: Summary) -> Iterator[Operating]:
    by_place: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in summary.data.get("operating", ()):
        if not summary.facts(record["model"]).baseline:
            by_place.setdefault((record["model"], record["dataset"]), []).append(record)
    cells = Cells(summary.cells)
    for (model, dataset), records in by_place.items():
        yield Operating(
            model,
            dataset,
            records[0]["source"],
            tuple(summary.spec(name).title for name in RATES),
            tuple(_rate(summary, cells, record) for record in records),
            tuple((_path(record["roc"]), record["finding"]) for record in records[:MOST_CURVES]),
            tuple(point for record in records[:MOST_CURVES] if (point := _point(record))),
        )


def _rate(summary: Summary, cells: Cells, record: Mapping[str, Any]) -> Rate:
    where = {"model": record["model"], "dataset": record["dataset"], "scope": "class", "group": record["finding"]}

    def cell(metric: str) -> Cell | None:
        return cells.one(**where, subset="main", metric=metric)

    counts = record["counts"]
    auc = cell("auc")
    figures = tuple(_printed(cell(name), summary.spec(name)) for name in RATES)
    return Rate(
        record["finding"],
        "" if auc is None else " ".join(_printed(auc, summary.spec("auc"))),
        figures,
        counts["tp"] + counts["fn"],
        counts["fp"] + counts["tn"],
        " and ".join(f"{threshold:.3g}" for threshold in record["thresholds"]),
        _plain(record["finding"], counts),
    )


def _printed(cell: Cell | None, spec: MetricSpec) -> tuple[str, str]:
    return ("", "") if cell is None else (short(cell, spec), spread(cell, spec))


def _plain(finding: str, counts: Mapping[str, int]) -> str:
    """Say it in counts: what is found, what is missed, what is called without being there."""
    there, absent = counts["tp"] + counts["fn"], counts["fp"] + counts["tn"]
    if not there or not absent:
        return ""
    return f"{finding}: finds {counts['tp']} of {there}; calls {counts['fp']} of the {absent} without."


def _path(roc: Sequence[Sequence[float]]) -> str:
    return "M" + "L".join(f"{_SIDE * x:.1f} {_SIDE * (1 - y):.1f}" for x, y in roc)


def _point(record: Mapping[str, Any]) -> tuple[float, float, str] | None:
    counts = record["counts"]
    there, absent = counts["tp"] + counts["fn"], counts["fp"] + counts["tn"]
    if not there or not absent:
        return None
    return _SIDE * counts["fp"] / absent, _SIDE * (1 - counts["tp"] / there), record["finding"]


def subgroups(summaries: Sequence[Summary]) -> list[GroupTable]:
    """Return the groups of every model that is no baseline, a table a metric."""
    return [table for summary in summaries for table in _subgroups(summary)]


def _subgroups(summary: Summary) -> Iterator[GroupTable]:
    by_table: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for record in summary.data.get("subgroups", ()):
        if not summary.facts(record["model"]).baseline:
            by_table.setdefault((record["metric"], record["model"], record["dataset"]), []).append(record)
    for (metric, model, dataset), records in by_table.items():
        spec = summary.spec(metric)
        scale = scale_of(spec, [v for r in records for v in (r["value"], r["low"], r["high"]) if v is not None])
        low, high = (f"{spec.scale * end:.3g}" for end in (scale.low, scale.high))
        lines = tuple(_line(record, spec, scale) for record in records)
        yield GroupTable(f"{spec.title}: {model}, {dataset}", low, high, records[0]["compared"], lines)


def _line(record: Mapping[str, Any], spec: MetricSpec, scale: Scale) -> GroupLine:
    def at(value: float | None) -> float | None:
        return None if value is None else scale.place(value)

    value, says = record["value"], record["says"]
    ends = [record["low"], record["high"]]
    strip = Strip(None, None, None, at(ends[0]), at(ends[1]), at(value), None)
    return GroupLine(
        record["trait"],
        record["group"],
        f"{record['n']:,}",
        record["patients"],
        "undefined" if value is None else spec.shown(value),
        "" if None in ends else f"[{spec.shown(ends[0])}, {spec.shown(ends[1])}]",
        None if value is None else spec.scale * value,
        strip,
        _difference(record, spec),
        _SIGNS[says],
        SAYS[says] if value is not None else record["reason"] or SAYS["undefined"],
        says == "few",
    )


def _difference(record: Mapping[str, Any], spec: MetricSpec) -> str:
    if record["difference"] is None:
        return ""
    figures = [record["difference"], record["difference_low"], record["difference_high"]]
    value, *ends = (None if f is None else f"{spec.scale * f:+.1f}" for f in figures)
    return f"{value} [{', '.join(map(str, ends))}]" if None not in ends else str(value)


def less_well(tables: Sequence[GroupTable]) -> list[str]:
    """Return in a sentence each where a group is shown to do less well."""
    return [
        f"{table.title}: {line.trait} {line.name} {line.figure} {line.interval}, {line.difference} beside the rest."
        for table in tables
        for line in table.lines
        if line.sign == "no"
    ]
