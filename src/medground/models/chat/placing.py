"""What a chat model's kept replies about a finding mean: is it there, and where. Pure, so that it can be read again.

The model reads its own replies so, and a run that kept them is read so without the model. A reply that does not meet
its schema, or a box that is none in its format, has no value and no map, with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from medground.imaging.geometry import Geometry, Size
from medground.models.messages import Reply

BoxFormat = Literal["thousandths", "shares", "pixels"]
FORMATS: tuple[BoxFormat, ...] = ("thousandths", "shares", "pixels")
GRID = 112
"""Cells a side of a map that boxes are drawn on."""
VALUES: Mapping[str, float] = {"yes": 1.0, "no": 0.0, "uncertain": 0.5}
"""An answer -> the score and probability that it stands for."""


@dataclass(frozen=True)
class Where:
    """A finding's map, or why there is none.

    Attributes:
        map: on the grid, before any normalising; None where there is none.
        reason: why.
        geometry: how it lies on the picture, where the model says so itself.
        replies: what it was read from, JSON-like.
        boxes: corners as shares of the picture's sides, where it was told in boxes.
    """

    map: NDArray[np.float32] | None
    reason: str = ""
    geometry: Geometry | None = None
    replies: Mapping[str, Any] = field(default_factory=dict)
    boxes: tuple[tuple[float, float, float, float], ...] | None = None


def presence_of(reply: Reply) -> tuple[float, str]:
    """Return the score of a structured answer, NaN where there is none, and why there is none."""
    if reply.outcome != "ok":
        return float("nan"), f"{reply.outcome}: {reply.reason}"
    return VALUES[reply.data["answer"]], ""


def place_of(reply: Reply, form: BoxFormat, size: Size) -> Where:
    """Return the map of a structured reply's boxes, or why there is none.

    Args:
        reply: whose ``data`` holds ``boxes``.
        form: in which they were asked for.
        size: (width, height) of the picture.
    """
    if reply.outcome != "ok":
        return Where(None, f"{reply.outcome}: {reply.reason}")
    return map_of(reply.data["boxes"], form, size)


def map_of(boxes: Sequence[Sequence[float]], form: BoxFormat, size: Size) -> Where:
    """Return boxes in a format as a map; boxes outside of the picture or turned round cannot be read."""
    width, height = {"thousandths": (1000, 1000), "shares": (1, 1), "pixels": size}[form]
    shares = []
    for x0, y0, x1, y1 in boxes:
        box = (x0 / width, y0 / height, x1 / width, y1 / height)
        # A little beyond the edge is rounding, more is another format.
        if not (-0.02 <= box[0] < box[2] <= 1.02 and -0.02 <= box[1] < box[3] <= 1.02):
            return Where(None, f"unreadable: a box that is none in {form}")
        shares.append(box)
    return Where(cells_of(shares), boxes=tuple(shares))


def cells_of(boxes: Sequence[tuple[float, float, float, float]]) -> NDArray[np.float32]:
    """Return the share of each cell of the grid that boxes cover; their corners are shares of the sides."""
    cells = np.zeros((GRID, GRID), np.float32)
    edges = np.arange(GRID + 1) / GRID
    for x0, y0, x1, y1 in boxes:
        across = np.clip(np.minimum(edges[1:], x1) - np.maximum(edges[:-1], x0), 0, None) * GRID
        down = np.clip(np.minimum(edges[1:], y1) - np.maximum(edges[:-1], y0), 0, None) * GRID
        cells = np.maximum(cells, np.outer(down, across).astype(np.float32))
    return cells
