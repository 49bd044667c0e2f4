"""What searching a threshold is worth: overlap at the searched threshold minus overlap at the fixed one, by dataset."""

from __future__ import annotations

from medground.benchmarks.printing import heading
from medground.reporting.figures.base import ReportFigure, Trace, axis, series, text, with_bars
from medground.reporting.xbench.pool import Pooled

GAPS = ("dice_gap", "iou_gap")


def gain_of_searching(pool: Pooled, anchor: str) -> ReportFigure:
    """Return one point a model and dataset, as in figure 4 of the paper."""
    places = [text(dataset) for dataset in pool.datasets]
    choices: dict[str, list[Trace]] = {}
    for metric in GAPS:
        choices[heading(pool.spec(metric))] = [
            series(pool.models, model)
            | {"mode": "markers"}
            | with_bars([pool.cell(model, d, metric, pool.whole(metric)) for d in pool.datasets], places)
            for model in pool.models
        ]
    return ReportFigure(
        anchor,
        "What searching a threshold is worth",
        "Overlap at the searched threshold minus overlap at the fixed one. A large gap says that a model's maps need a "
        "threshold of their own, which nobody has without regions of the same kind.",
        choices,
        {"xaxis": axis("", type="category"), "yaxis": axis("points", rangemode="tozero")},
        "Measure",
    )
