"""Pictures of GridVQA-X: a scene with its cause, and the maps of both models beside it, as shapes for one SVG each.

Colours are blue and orange, which colour-blind readers tell apart; the cause is an outline and never a colour.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from PIL import Image

from medground.errors import MedgroundError
from medground.worlds.gridvqa.build import picture_of
from medground.worlds.gridvqa.records import from_neutral

FIGURES = 60
"""Figures of a page at most."""
SCENES = 6
"""Scenes an explainer at most."""
PANEL, GAP, TOP, LETTER, LINE = 210, 19, 34, 7.2, 22
"""Pixels: side of a board, between panels, above a board, a letter's width, a line of words."""
PIXELS = 32
"""Pixels a side of a cell in the picture."""
POSITIVE, NEGATIVE = "#d55e00", "#0072b2"


@dataclass(frozen=True)
class DrawnWord:
    """A word where it stands, with its colour; ``cause`` underlines it."""

    text: str
    x: float
    y: float
    width: float
    colour: str
    opacity: float
    cause: bool


@dataclass(frozen=True)
class Panel:
    """One board with the question below it."""

    title: str
    x: int
    picture: str = ""
    squares: Sequence[tuple[float, float, str, float]] = ()
    words: Sequence[DrawnWord] = ()
    missing: str = ""


@dataclass(frozen=True)
class SceneDrawing:
    """One figure: what is seen, and the same in words."""

    alt: str
    caption: str
    cell: float
    height: float
    width: int
    outline: str
    panels: Sequence[Panel] = field(default_factory=list)


def drawings(pictures: Sequence[Mapping[str, Any]], models: Mapping[str, str]) -> list[tuple[str, list[SceneDrawing]]]:
    """Return explainers with their figures: the same scenes for each, spread evenly over the buckets with relations.

    Args:
        pictures: the kept scenes of a summary, with the maps of every regime.
        models: regime -> label of its model.
    """
    kept = [p for p in pictures if any(m["regime"] in ("pure", "cross") for m in p["maps"])]
    methods = list(dict.fromkeys(m["method"] for p in kept for m in p["maps"]))[:FIGURES]
    if not methods:
        return []
    chosen = _spread(kept, max(1, min(SCENES, FIGURES // len(methods))))
    return [(method, [d for picture in chosen for d in _drawing(picture, method, models)]) for method in methods]


def _spread(pictures: Sequence[Mapping[str, Any]], n: int) -> list[Mapping[str, Any]]:
    """Return n scenes, the first of a bucket each, evenly over the buckets; with relations where there are any."""
    buckets = [next(of) for _, of in groupby(pictures, lambda p: _bucket(p["scene"]))]
    related = [p for p in buckets if any(clause["relations"] for clause in p["scene"]["clauses"])] or buckets
    return [related[k * len(related) // n] for k in range(n)] if len(related) > n else related


def _bucket(scene: Mapping[str, Any]) -> str:
    return f"depth {scene['depth']}, type {scene['qtype']}, {scene['form']}"


def _drawing(picture: Mapping[str, Any], method: str, models: Mapping[str, str]) -> Iterator[SceneDrawing]:
    scene = picture["scene"]
    try:
        png = _png(scene)
    except MedgroundError:
        return
    maps = {m["regime"]: m for m in picture["maps"] if m["method"] == method}
    shown = [regime for regime in ("pure", "cross") if regime in maps]
    if not shown:
        return
    cell = PANEL / scene["grid"]
    panels = [Panel(f"right answer: {scene['answer']}", 0, png, (), _words(scene, None))]
    lines = []
    for k, regime in enumerate(shown, 1):
        answer = picture["answers"].get(regime, "")
        panels.append(_panel(scene, maps[regime], f"{models[regime]}: {answer}", k * (PANEL + GAP), cell))
        lines.append(f"{models[regime]} says {answer}; {_shares(maps[regime])}")
    height = TOP + PANEL + 12 + max(word.y for panel in panels for word in panel.words) + LINE - 6
    yield SceneDrawing(
        f"Scene of {_bucket(scene)}, question: {scene['question']} Right answer: {scene['answer']}. {method}. "
        + ". ".join(lines),
        f"{_bucket(scene)}: {'. '.join(lines)}.",
        cell,
        height,
        len(panels) * (PANEL + GAP) - GAP,
        _outline(scene["vision_mask"], cell),
        panels,
    )


def _panel(scene: Mapping[str, Any], maps: Mapping[str, Any], title: str, x: int, cell: float) -> Panel:
    grid, values = scene["grid"], maps["image_map"]
    squares = [
        ((k % grid) * cell, (k // grid) * cell, colour, opacity)
        for k, (colour, opacity) in enumerate(_shades(values or []))
    ]
    missing = "" if values else maps["reason"] or "no map of the image"
    # A label can be as long as its author likes, a panel cannot.
    short = title if len(title) * LETTER <= PANEL else f"…{title[1 - int(PANEL / LETTER) :]}"
    return Panel(short, x, "", squares, _words(scene, maps["text_map"]), missing[:28])


def _shades(values: Sequence[float | None]) -> list[tuple[str, float]]:
    """Return colour and opacity of each value: the sign, and its share of the largest magnitude."""
    known = [value or 0.0 for value in values]
    top = max((abs(value) for value in known), default=0.0)
    return [(POSITIVE if value >= 0 else NEGATIVE, round(abs(value) / top, 3) if top else 0.0) for value in known]


def _words(scene: Mapping[str, Any], values: Sequence[float] | None) -> list[DrawnWord]:
    words, causes = scene["words"], scene["text_mask_correct"]
    shades = _shades(values) if values and len(values) == len(words) else [(POSITIVE, 0.0)] * len(words)
    placed: list[DrawnWord] = []
    x, y = 0.0, 14.0
    for word, cause, (colour, opacity) in zip(words, causes, shades, strict=True):
        width = len(word) * LETTER
        if x and x + width > PANEL:
            x, y = 0.0, y + LINE
        placed.append(DrawnWord(word, round(x, 1), y, round(width, 1), colour, opacity, bool(cause)))
        x += width + LETTER
    return placed


def _outline(cells: Sequence[Sequence[int]], cell: float) -> str:
    """Return the border of a set of cells as an SVG path: edges with the set on one side only."""
    held = {(x, y) for x, y in cells}
    edges = []
    for x, y in sorted(held):
        left, top, right, bottom = (round(v * cell, 2) for v in (x, y, x + 1, y + 1))
        sides = {
            (x - 1, y): f"M{left} {top}V{bottom}",
            (x + 1, y): f"M{right} {top}V{bottom}",
            (x, y - 1): f"M{left} {top}H{right}",
            (x, y + 1): f"M{left} {bottom}H{right}",
        }
        edges += [path for neighbour, path in sides.items() if neighbour not in held]
    return "".join(edges)


def _shares(maps: Mapping[str, Any]) -> str:
    parts = [
        f"{100 * maps[key]:.0f} % of the {name} mass on the cause"
        for key, name in (("image_mass", "image"), ("text_mass", "word"))
        if maps[key] is not None
    ]
    return ", ".join(parts) or maps["reason"] or "nothing measured"


def _png(scene: Mapping[str, Any]) -> str:
    """Return the picture of a scene as an address that holds it.

    Raises:
        MedgroundError: the record is not a scene of the grammar.
    """
    data = io.BytesIO()
    picture = picture_of(from_neutral(scene), PIXELS).round().astype(np.uint8)
    Image.fromarray(picture).save(data, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
