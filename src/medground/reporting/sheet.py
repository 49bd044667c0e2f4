"""A contact sheet: cases as they were decoded, with their regions and maps on them, to be looked at before a run."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from medground.imaging.geometry import Geometry, resize_pixels
from medground.imaging.reading import Radiograph
from medground.imaging.regions import Region
from medground.reporting.overlay import map_frame, outline, shown_picture
from medground.reporting.page import environment, policy, styles

HUES = ("#e6550d", "#1f9e89", "#8da0ff", "#e7298a", "#b8de29", "#00b4d8", "#ffd166", "#c77dff")
"""Colours of outlines, told apart on grey."""
WARM = (255, 122, 0)
"""Colour of a map: the warmer, the higher."""
FINEST = 128
"""Cells of a map's side on a sheet."""


@dataclass(frozen=True)
class Mark:
    """A region on a picture: its finding, colour and outline (an SVG path in the pixels of its frame)."""

    finding: str
    colour: str
    path: str
    frame: tuple[int, int]


@dataclass(frozen=True)
class Overlay:
    """A model's map of a finding: a PNG with alpha, in base64, and the place of its frame in the picture's pixels."""

    label: str
    finding: str
    png: str
    place: tuple[float, float, float, float]
    note: str


@dataclass(frozen=True)
class Tile:
    """One case.

    Attributes:
        case_id: of the case.
        size: ``(width, height)`` of the picture; that of a square where it could not be read.
        picture: WebP in base64; empty where it could not be read.
        facts: what was decoded, how, and what is said of it, in words.
        marks: its regions.
        maps: of models.
        problem: why there is no picture.
    """

    case_id: str
    size: tuple[int, int]
    picture: str
    facts: tuple[str, ...]
    marks: tuple[Mark, ...] = ()
    maps: tuple[Overlay, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class SheetPart:
    """The cases of one dataset that are shown."""

    dataset: str
    terms: str
    total: int
    tiles: Sequence[Tile] = field(default_factory=tuple)


def tile(
    image: Radiograph,
    regions: Mapping[str, Region],
    maps: Sequence[Overlay] = (),
    labels: Mapping[str, bool | None] | None = None,
    notes: Sequence[str] = (),
) -> Tile:
    """Return a case as it is shown.

    Args:
        image: decoded.
        regions: finding -> where it is.
        maps: of models.
        labels: finding -> present, absent or not annotated.
        notes: what else is said, such as a region that could not be made.
    """
    marks = tuple(
        Mark(finding, HUES[i % len(HUES)], outline(region), region.frame)
        for i, (finding, region) in enumerate(regions.items())
    )
    low, high = float(image.pixels.min()), float(image.pixels.max())
    facts = [
        f"{image.size[0]} x {image.size[1]}, values {image.value_range[0]:g} to {image.value_range[1]:g}",
        f"shown from {low:.2f} to {high:.2f}, mean {float(image.pixels.mean()):.2f}",
        *image.steps,
        *notes,
    ]
    present = [name for name, state in (labels or {}).items() if state and name not in regions]
    facts += [f"present without a region: {', '.join(present)}"] if present else []
    return Tile(image.case_id, image.size, shown_picture(image.pixels), tuple(facts), marks, tuple(maps))


def overlay(label: str, finding: str, saliency: NDArray[np.floating[Any]], geometry: Geometry) -> Overlay:
    """Return a map ``(h, w)`` as it lies on its picture: from clear at its least value to full at its greatest."""
    values = np.asarray(saliency, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    scaled = ((values - low) / (high - low) if high > low else np.zeros_like(values)).astype(np.float32)
    size = min(scaled.shape[1], FINEST), min(scaled.shape[0], FINEST)
    if size != scaled.shape[::-1]:
        scaled = resize_pixels(scaled, size, "area")
    alpha = np.round(scaled * 190).astype(np.uint8)
    colour = np.broadcast_to(np.array(WARM, dtype=np.uint8), (*alpha.shape, 3))
    out = io.BytesIO()
    Image.fromarray(np.dstack([colour, alpha])).save(out, "PNG")
    peak = np.unravel_index(int(values.argmax()), values.shape)
    note = (
        f"{values.shape[1]} x {values.shape[0]} cells, {low:.3g} to {high:.3g}, peak at cell x {peak[1]}, y {peak[0]}"
    )
    return Overlay(label, finding, base64.b64encode(out.getvalue()).decode("ascii"), map_frame(geometry), note)


def sheet(title: str, parts: Sequence[SheetPart]) -> str:
    """Return a contact sheet as one HTML page that asks nothing of the world and runs no script."""
    style = styles("page.css", "sheet.css")
    page = environment().get_template("sheet.html")
    return page.render(title=title, parts=parts, policy=policy((), [style]), style=style)
