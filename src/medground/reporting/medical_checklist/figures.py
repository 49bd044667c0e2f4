"""Accuracy of captions as figures: beside what sees no picture, along bins, and group by group."""

from __future__ import annotations

import re
from collections.abc import Sequence

from medground.benchmarks.results import Cell
from medground.reporting.figures.base import ReportFigure, Trace, axis, series, text, with_bars

CHANCE = 50
_BESIDE = (
    ("accuracy", "the picture"),
    ("accuracy_shuffled", "another picture"),
    ("accuracy_blank", "a blank picture"),
    ("blind", "best blind scorer"),
)


def beside_the_blind(cells: Sequence[Cell], models: Sequence[str], anchor: str) -> ReportFigure:
    """Return each model with its picture, another, a blank one, and the best scorer of text alone."""
    held = {(c.metric, c.model): c for c in cells if c.scope == "all" and not c.group}
    known = [(metric, words) for metric, words in _BESIDE if any((metric, m) in held for m in models)]
    names = [text(words) for _, words in known]
    traces = [
        series(models, model)
        | {"mode": "markers"}
        | with_bars(
            [held.get((metric, model)) for metric, _ in known], _spread(len(known), k, len(models)), across=True
        )
        for k, model in enumerate(models)
    ]
    ticks = {"tickvals": list(range(len(known))), "ticktext": names, "autorange": "reversed"}
    layout = {"xaxis": axis("accuracy, %"), "yaxis": axis("", **ticks), "height": 160 + 46 * len(known), **_CHANCE_UP}
    caption = "A model that looks is right with its own picture alone. Dotted: chance. Bars: clustered intervals."
    return ReportFigure(anchor, "With and without the picture", caption, {"accuracy": traces}, layout)


def bins(cells: Sequence[Cell], models: Sequence[str], scope: str, title: str, unit: str, anchor: str) -> ReportFigure:
    """Return accuracy along ordered bins."""
    groups = sorted({c.group for c in cells if c.metric == "accuracy" and c.scope == scope}, key=_number)
    held = {(c.group, c.model): c for c in cells if c.metric == "accuracy" and c.scope == scope}
    places = [_short(group) for group in groups]
    traces = [
        series(models, model)
        | {"mode": "lines+markers"}
        | with_bars([held.get((group, model)) for group in groups], places)
        for model in models
    ]
    layout = {
        "xaxis": axis(unit, type="category", tickangle=-40, title_standoff=60),
        "yaxis": axis("accuracy, %"),
        # Above: below the plot it would lie on the slanting names of the bins and the title of their axis.
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"},
        **_CHANCE_ACROSS,
    }
    return ReportFigure(anchor, title, "Dotted: chance. Bars: clustered intervals.", {"accuracy": traces}, layout)


def lines(cells: Sequence[Cell], models: Sequence[str], scope: str, title: str, note: str, anchor: str) -> ReportFigure:
    """Return every group as a line, with every model on it."""
    groups = sorted({c.group for c in cells if c.metric == "accuracy" and c.scope == scope})
    held = {(c.group, c.model): c for c in cells if c.metric == "accuracy" and c.scope == scope}
    traces: list[Trace] = [
        series(models, model)
        | {"mode": "markers"}
        | with_bars([held.get((g, model)) for g in groups], _spread(len(groups), k, len(models)), across=True)
        for k, model in enumerate(models)
    ]
    ticks = {"tickvals": list(range(len(groups))), "ticktext": [text(g) for g in groups], "autorange": "reversed"}
    height = 150 + len(groups) * (30 + 12 * max(0, len(models) - 2))
    layout = {"xaxis": axis("accuracy, %"), "yaxis": axis("", **ticks), "height": height, **_CHANCE_UP}
    return ReportFigure(anchor, title, note, {"accuracy": traces}, layout, tall=len(groups) > 8)


def _spread(groups: int, k: int, models: int) -> list[float]:
    """Return a model's places: those of one line share it, spread over 0.6 of the way to the next."""
    shift = 0.6 * (k / (models - 1) - 0.5) if models > 1 else 0.0
    return [line + shift for line in range(groups)]


def _short(group: str) -> str:
    """Return the name of a bin as it fits below an axis: "24 to 27.7778" as "24-28", "0.11 to 0.22" as ".11-.22"."""
    ends = group.partition(": ")[2].split(" to ") or [group]
    rounded = [re.sub(r"^0(?=\.)", "", f"{float(e):.2f}" if "." in e and float(e) <= 1 else _whole(e)) for e in ends]
    return "-".join(rounded)


def _whole(end: str) -> str:
    return f"{float(end):.0f}" if re.fullmatch(r"[\d.]+", end) else end


def _number(group: str) -> tuple[int, str]:
    head = group.partition(":")[0]
    return (int(head) if head.isdecimal() else 0, group)


_LINE = {"type": "line", "line": {"dash": "dot", "width": 1.5}, "layer": "below"}
_CHANCE_UP = {"shapes": [_LINE | {"x0": CHANCE, "x1": CHANCE, "y0": 0, "y1": 1, "yref": "paper"}]}
_CHANCE_ACROSS = {"shapes": [_LINE | {"y0": CHANCE, "y1": CHANCE, "x0": 0, "x1": 1, "xref": "paper"}]}
