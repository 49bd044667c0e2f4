"""Measures by size of the region, and by finding: every model with its interval, beside a map that has seen nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from medground.benchmarks.printing import heading
from medground.benchmarks.results import Cell
from medground.reporting.figures.base import GREY, ReportFigure, Trace, axis, percent, series, text, with_bars
from medground.reporting.xbench.pool import Pooled


def size_against_pointing(pool: Pooled, dataset: str, anchor: str) -> ReportFigure:
    """Return pointing and Dice by size of the region."""
    groups = pool.groups(dataset, "size")
    places = [short(group) for group in groups]
    choices: dict[str, list[Trace]] = {}
    for metric in ("pointing", "dice@best"):
        traces = [
            series(pool.models, m)
            | {"mode": "lines+markers"}
            | with_bars(_cells(pool, m, dataset, metric, "size", groups), places)
            for m in pool.models_on(dataset)
        ]
        look = {
            "mode": "lines+markers",
            "line": {"dash": "dot", "width": 1.5},
            "marker": {"symbol": "line-ew-open", "size": 14},
        }
        traces.append(_reference(pool, dataset, metric, "size", groups, places) | look)
        choices[heading(pool.spec(metric))] = traces
    return ReportFigure(
        anchor,
        "Size of the region",
        "Bars: interval by patients. Grey line: what a map that has not seen the picture reaches.",
        choices,
        {"xaxis": axis("share of the picture", type="category"), "yaxis": axis("%", rangemode="tozero")},
        "Measure",
    )


def short(group: str) -> str:
    """Return the name of a size band as it fits below an axis."""
    band = group.removesuffix(" of the picture").replace(" to ", "-")
    if band.endswith(" and more"):
        return f"≥ {band.removesuffix(' and more')}"
    return band.replace("below ", "< ")


def forest(pool: Pooled, dataset: str, anchor: str, metrics: Sequence[str]) -> ReportFigure:
    """Return every finding as a line, with every model on it."""
    findings = pool.findings(dataset)
    models = pool.models_on(dataset)
    lines = range(len(findings))
    choices: dict[str, list[Trace]] = {}
    for metric in metrics:
        traces: list[Trace] = []
        for k, model in enumerate(models):
            # The models of a finding share its line, spread over 0.6 of the way to the next.
            shift = 0.6 * (k / (len(models) - 1) - 0.5) if len(models) > 1 else 0
            cells = _cells(pool, model, dataset, metric, "class", findings)
            bars = with_bars(cells, [line + shift for line in lines], across=True)
            traces.append(series(pool.models, model) | {"mode": "markers"} | bars)
        if pool.spec(metric).floor_metric:
            look = {"mode": "markers", "marker": {"symbol": "line-ns-open", "size": 22, "line": {"width": 2.5}}}
            traces.append(_reference(pool, dataset, metric, "class", findings, list(lines), across=True) | look)
        choices[heading(pool.spec(metric))] = traces
    names = {"tickvals": list(lines), "ticktext": [text(f) for f in findings], "autorange": "reversed"}
    return ReportFigure(
        anchor,
        "By finding",
        "Bars: interval by patients. Upright grey ticks: what a map that has not seen the picture reaches.",
        choices,
        {
            "xaxis": axis("%"),
            "yaxis": axis("", **names),
            "height": 130 + len(findings) * (26 + 12 * max(0, len(models) - 2)),
        },
        "Measure",
        tall=True,
    )


def _cells(pool: Pooled, model: str, dataset: str, metric: str, scope: str, groups: Sequence[str]) -> list[Cell | None]:
    return [pool.cell(model, dataset, metric, scope, group) for group in groups]


def _reference(
    pool: Pooled,
    dataset: str,
    metric: str,
    scope: str,
    groups: Sequence[str],
    places: Sequence[Any],
    *,
    across: bool = False,
) -> Trace:
    """Return what a map without the picture reaches, of the first model: it differs only by pairs left out."""
    floor = pool.spec(metric).floor_metric or metric
    name = pool.spec(floor).title
    cells = _cells(pool, pool.models_on(dataset)[0], dataset, floor, scope, groups)
    known = [(place, c.value) for place, c in zip(places, cells, strict=True) if c and c.value is not None]
    where, value = ("y", "x") if across else ("x", "y")
    values = [percent(v) for _, v in known]
    return {
        **GREY,
        where: [place for place, _ in known],
        value: values,
        "name": text(name),
        "hovertemplate": f"{text(name)}: %{{{value}:.2f}}",
    }
