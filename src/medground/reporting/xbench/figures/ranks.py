"""How firmly models are ranked: the rank of each, and the ranks that it gets when the patients are drawn again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medground.benchmarks.printing import heading
from medground.reporting.figures.base import ReportFigure, Trace, axis, percent, series
from medground.reporting.runs import unique_names
from medground.reporting.xbench.pool import Pooled


def ranking(pool: Pooled, dataset: str, anchor: str) -> ReportFigure | None:
    """Return the figure, or None where no run has ranked several models on the dataset.

    Args:
        pool: its runs; each ranks its own models.
        dataset: label.
        anchor: id on the page.
    """
    choices: dict[str, list[Trace]] = {}
    several = len(pool.runs) > 1
    for (run, labels), name in zip(pool.labels_by_run(), unique_names(pool.runs), strict=True):
        for record in run.data.get("ranks", []):
            if record["dataset"] == dataset and record["model"] in labels:
                title = heading(pool.spec(record["metric"])) + (f" · {name}" if several else "")
                choices.setdefault(title, []).append(_place(pool, labels[record["model"]], record))
    if not choices:
        return None
    most = max(len(traces) for traces in choices.values())
    return ReportFigure(
        anchor,
        "How firm the ranking is",
        "Point: rank by the printed figure, 1 is best. Bar: ranks when the patients are drawn again. Where bars "
        "overlap, the order of two models is not settled; compare them in pairs.",
        choices,
        {
            "xaxis": axis("rank", dtick=1, range=[0.5, most + 0.5]),
            "yaxis": axis("", type="category", autorange="reversed"),
            "height": 150 + 34 * most,
        },
        "Measure",
    )


def _place(pool: Pooled, model: str, record: Mapping[str, Any]) -> Trace:
    bars = {"type": "data", "symmetric": False, "thickness": 1.5, "width": 4}
    bars |= {"array": [record["high"] - record["rank"]], "arrayminus": [record["rank"] - record["low"]]}
    look = series(pool.models, model)
    drawn = f"{record['low']:g} to {record['high']:g}"
    first = f"first in {percent(record['first']):.1f} % of {record['replicates']:,} draws"
    return {
        **look,
        "x": [record["rank"]],
        "y": [look["name"]],
        "mode": "markers",
        "error_x": bars,
        "hovertemplate": f"rank %{{x:g}}, {drawn}; {first}, {record['regions']:,} regions",
    }
