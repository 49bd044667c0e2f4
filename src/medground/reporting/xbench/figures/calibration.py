"""Probability against how often a finding is present."""

from __future__ import annotations

from medground.reporting.figures.base import GREY, ReportFigure, Trace, axis, series
from medground.reporting.xbench.pool import Pooled


def reliability(pool: Pooled, dataset: str, anchor: str) -> ReportFigure:
    """Return the reliability diagram of a dataset, all findings together."""
    perfect = {"x": [0, 1], "y": [0, 1], "mode": "lines", "name": "perfect", "line": {"dash": "dot", "width": 1.5}}
    traces: list[Trace] = [{**GREY, **perfect, "hoverinfo": "skip"}]
    for record in pool.records("reliability"):
        if record["dataset"] == dataset:
            bins = zip(record["probability"], record["frequency"], record["count"], strict=True)
            filled = [(p, f, n) for p, f, n in bins if n]
            traces.append(
                series(pool.models, record["model"])
                | {
                    "x": [p for p, _, _ in filled],
                    "y": [f for _, f, _ in filled],
                    "customdata": [n for *_, n in filled],
                    "mode": "lines+markers",
                    "hovertemplate": "p %{x:.3f}: present in %{y:.3f} of %{customdata}",
                }
            )
    unit = {"range": [-0.02, 1.02]}
    return ReportFigure(
        anchor,
        "Reliability",
        "Mean probability of each of ten bins against the share in which the finding is present. Below the dotted line "
        "a model is too sure that it is.",
        {"": traces},
        {"xaxis": axis("probability", **unit), "yaxis": axis("share present", **unit)},
    )
