"""AUC against pointing: one point a model or a finding, and the line through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from medground.reporting.figures.base import GREY, ReportFigure, Trace, axis, percent, percents, series, text
from medground.reporting.words import count
from medground.reporting.xbench.pool import Pooled


def auc_against_pointing(pool: Pooled, anchor: str, printed: Mapping[str, float]) -> ReportFigure:
    """Return the figure.

    Args:
        pool: its runs; each has a line of its own.
        anchor: id on the page.
        printed: model of the paper -> its pointing in percent. The paper prints no AUC, so they stand at the side.
    """
    traces: list[Trace] = []
    notes: list[str] = []
    for run, labels in pool.labels_by_run():
        fit = run.data["correlation"]
        traces += _points(pool, fit, labels)
        if fit["r2"] is not None:
            traces.append(_line(fit))
            notes.append(f"R² {fit['r2']:.2f} over {count(len(fit['models']), 'model')}; baselines take no part.")
    if not notes:
        notes.append(f"No line: {pool.facts['correlation']['reason']}.")
    if printed:
        traces.append(_ticks(printed))
        notes.append("Grey ticks at the right: pointing as the paper prints it. It prints R² 0.92, and no model's AUC.")
    layout = {
        "xaxis": axis("macro AUC, %", domain=[0, 0.9 if printed else 1]),
        "yaxis": axis("pointing, %", rangemode="tozero"),
        "xaxis2": {"domain": [0.94, 1], "visible": False, "range": [0, 2]},
    }
    return ReportFigure(anchor, "AUC against pointing", " ".join(dict.fromkeys(notes)), {"": traces}, layout)


def findings_against(pool: Pooled, anchor: str) -> ReportFigure | None:
    """Return AUC against pointing with one point a finding, for each model and for all together; None without any."""
    choices: dict[str, list[Trace]] = {}
    notes: list[str] = []
    for run, labels in pool.labels_by_run():
        for entry in run.data.get("correlation_by_class", []):
            if entry["model"] and entry["model"] not in labels:
                continue
            name = text(labels[entry["model"]]) if entry["model"] else "all models"
            choices[name] = [
                *_findings(pool, entry, labels),
                *([_line_through(entry)] if entry["r2"] is not None else []),
            ]
            notes.append(f"{name}: {_agreement(entry)}")
    if not choices:
        return None
    caption = "One point a finding, on the cases that have both figures. " + "; ".join(notes) + "."
    layout = {"xaxis": axis("AUC, %"), "yaxis": axis("pointing, %", rangemode="tozero")}
    return ReportFigure(anchor, "AUC against pointing, by finding", caption, choices, layout, "Model")


def _agreement(entry: Mapping[str, Any]) -> str:
    if entry["r2"] is None:
        return f"no line, {entry['reason']}"
    ranks = entry["rank_correlation"]
    ranked = "" if ranks is None else f", rank correlation {ranks:.2f}"
    return f"R² {entry['r2']:.2f}{ranked} over {count(entry['n'], 'finding')}"


def _findings(pool: Pooled, entry: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Trace]:
    known = [(p, r) for p, r in zip(entry["points"], entry["residuals"], strict=True) if p["model"] in labels]
    for model in dict.fromkeys(point["model"] for point, _ in known):
        own = [(point, residual) for point, residual in known if point["model"] == model]
        beside = [["" if r is None else f", {percent(r):+.2f} from the line", p["dataset"]] for p, r in own]
        yield series(pool.models, labels[model]) | {
            "x": percents([point["auc"] for point, _ in own]),
            "y": percents([point["pointing"] for point, _ in own]),
            "text": [text(point["finding"]) for point, _ in own],
            "customdata": [[distance, text(dataset)] for distance, dataset in beside],
            "mode": "markers",
            "hovertemplate": "%{text} (%{customdata[1]}): AUC %{x:.2f}, pointing %{y:.2f}%{customdata[0]}",
        }


def _line_through(entry: Mapping[str, Any]) -> Trace:
    return _line({**entry, "auc": [point["auc"] for point in entry["points"]]})


def _points(pool: Pooled, fit: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[Trace]:
    points = zip(fit["models"], fit.get("auc", []), fit.get("pointing", []), fit.get("residuals", []), strict=True)
    for model, auc, pointing, residual in points:
        if model not in labels:
            continue
        beside = "" if residual is None else f", {percent(residual):+.2f} from the line"
        yield series(pool.models, labels[model]) | {
            "x": [percent(auc)],
            "y": [percent(pointing)],
            "mode": "markers",
            "hovertemplate": f"AUC %{{x:.2f}}: pointing %{{y:.2f}}{beside}",
        }


def _line(fit: Mapping[str, Any]) -> Trace:
    ends = [min(fit["auc"]), max(fit["auc"])]
    heights = [fit["intercept"] + fit["slope"] * x for x in ends]
    line = {"x": percents(ends), "y": percents(heights), "mode": "lines", "line": {"dash": "dot", "width": 1.5}}
    return {**GREY, **line, "showlegend": False, "hoverinfo": "skip"}


def _ticks(printed: Mapping[str, float]) -> Trace:
    return {
        **GREY,
        "x": [1] * len(printed),
        "y": list(printed.values()),
        "text": [text(name) for name in printed],
        "xaxis": "x2",
        "mode": "markers",
        "name": "as printed",
        "marker": {"symbol": "line-ew-open", "size": 12, "line": {"width": 2}},
        "hovertemplate": "%{text}: pointing %{y:.2f}",
    }
