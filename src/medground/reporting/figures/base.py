"""What figures are made of.

A figure has *choices* (a finding, a measure): the same picture of other numbers. Colours and fonts are the page's; a
trace names its series by a number, so that a model looks the same in every figure, and differs by symbol and dash as
well as by colour.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medground.benchmarks.results import Cell

Trace = dict[str, Any]

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon", "pentagon", "bowtie")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
LONGEST = 40
"""Characters of a name beside or below a plot."""
GREY: Mapping[str, Any] = {"meta": {"series": "grey"}}
"""What is no model of the run: the page draws it in grey."""


@dataclass(frozen=True)
class ReportFigure:
    """A figure.

    Attributes:
        anchor: its id on the page.
        title: above it.
        caption: below it: what to see, and how to read it without colour.
        choices: what can be shown -> traces.
        layout: of plotly, without colours and fonts.
        chooser: what the choices are; empty where there is only one.
        tall: whether it is as high as two others.
    """

    anchor: str
    title: str
    caption: str
    choices: Mapping[str, Sequence[Trace]]
    layout: Mapping[str, Any]
    chooser: str = ""
    tall: bool = False


def text(name: str) -> str:
    """Return a name as text for plotly, which would read markup in it; a very long one is cut."""
    return html.escape(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…", quote=False)


def series(models: Sequence[str], model: str) -> Trace:
    """Return what makes a model look the same in every figure; ``models``: all of the report, in order."""
    k = models.index(model)
    return {
        "name": text(model),
        "legendgroup": f"m{k}",
        "meta": {"series": k},
        "marker": {"symbol": SYMBOLS[k % len(SYMBOLS)], "size": 9},
        "line": {"dash": DASHES[k % len(DASHES)], "width": 2},
    }


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis."""
    return {"title": {"text": text(title)}, "zeroline": False} | more


def percent(value: float) -> float:
    """Return a share in percent, to the digits that a figure can show."""
    return round(100 * value, 4)


def percents(values: Sequence[float | None]) -> list[float | None]:
    """Return shares in percent; undefined stays undefined."""
    return [None if value is None else percent(value) for value in values]


def with_bars(cells: Sequence[Cell | None], places: Sequence[Any], *, across: bool = False) -> Trace:
    """Return points with their intervals, where they are defined.

    Args:
        cells: the numbers.
        places: where they stand on the other axis.
        across: whether the values lie along x rather than along y.
    """
    known = [(place, c, c.value) for place, c in zip(places, cells, strict=True) if c and c.value is not None]
    bars = {
        "type": "data",
        "symmetric": False,
        "array": [0 if c.high is None else percent(c.high - v) for _, c, v in known],
        "arrayminus": [0 if c.low is None else percent(v - c.low) for _, c, v in known],
        "thickness": 1.5,
        "width": 4,
    }
    where, value = ("y", "x") if across else ("x", "y")
    interval = "[%{customdata[1]:.2f}, %{customdata[2]:.2f}], n %{customdata[3]}"
    return {
        where: [place for place, *_ in known],
        value: [percent(v) for *_, v in known],
        f"error_{value}": bars,
        "customdata": [[text(c.group), *percents([c.low, c.high]), c.n] for _, c, _ in known],
        "hovertemplate": f"%{{customdata[0]}}: %{{{value}:.2f}} {interval}",
    }
