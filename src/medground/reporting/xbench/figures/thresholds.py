"""Mean Dice at every threshold, with the fixed and the searched points."""

from __future__ import annotations

from collections.abc import Iterator

from medground.benchmarks.results import Cell
from medground.benchmarks.xbench.specs import fixed
from medground.reporting.figures.base import ReportFigure, Trace, axis, percent, percents, series
from medground.reporting.xbench.pool import Pooled

MEAN = "mean over classes"


def threshold_curves(pool: Pooled, dataset: str, anchor: str) -> ReportFigure:
    """Return the figure of a dataset: the mean over classes first, then every finding."""
    steps = pool.facts["protocol"]["steps"]
    taus = [k / steps for k in range(steps + 1)]
    curves: dict[str, list[Trace]] = {MEAN: []}
    for record in pool.records("curves"):
        if record["dataset"] == dataset:
            look = series(pool.models, record["model"]) | {
                "mode": "lines",
                "hovertemplate": "τ %{x:.2f}: Dice %{y:.2f}",
            }
            curves.setdefault(record["finding"] or MEAN, []).append(look | {"x": taus, "y": percents(record["dice"])})
    for finding in curves:
        curves[finding] += _points(pool, dataset, "" if finding == MEAN else finding)
    searched = "searched on the scored cases: optimistic" if pool.facts["optimistic"] else "searched on other patients"
    return ReportFigure(
        anchor,
        "Dice by threshold",
        f"Hollow: a fixed threshold. Filled: the threshold {searched}. A curve that is highest at 0 has its best Dice "
        "by marking everything.",
        curves,
        {"xaxis": axis("threshold τ", range=[-0.02, 1.02]), "yaxis": axis("mean Dice, %", rangemode="tozero")},
        "Finding",
    )


def _points(pool: Pooled, dataset: str, finding: str) -> Iterator[Trace]:
    """Yield fixed and searched points of every model; searched ones where a single threshold holds for the curve."""
    scope, group = ("class", finding) if finding else ("macro", "")
    searched: dict[str, set[float]] = {}
    for record in pool.records("thresholds"):
        if (record["dataset"], record["subset"]) == (dataset, "main") and record["finding"] in {"", finding}:
            searched.setdefault(record["model"], set()).add(record["tau"])
    for model in pool.models_on(dataset):
        look = series(pool.models, model) | {"mode": "markers", "showlegend": False}
        symbol = look["marker"]["symbol"]
        for tau in pool.facts["protocol"]["fixed"]:
            cell = pool.cell(model, dataset, fixed("dice", tau), scope, group)
            yield from _point(look, tau, cell, f"{symbol}-open", "fixed")
        taus = sorted(searched.get(model, ()))
        if len(taus) == 1:
            yield from _point(look, taus[0], pool.cell(model, dataset, "dice@best", scope, group), symbol, "searched")


def _point(look: Trace, tau: float, cell: Cell | None, symbol: str, what: str) -> Iterator[Trace]:
    if cell is not None and cell.value is not None:
        marker = {"symbol": symbol, "size": 11, "line": {"width": 2}}
        hover = f"{what} τ %{{x}}: Dice %{{y:.2f}}"
        yield look | {"x": [tau], "y": [percent(cell.value)], "marker": marker, "hovertemplate": hover}
