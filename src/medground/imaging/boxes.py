"""Boxes as published, and the rules that turn their fractions into whole pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from medground.errors import RegionError
from medground.imaging.rle import Size

BoxRule = Literal["size_cut", "corner_cut", "rounded"]
"""How a box of fractions becomes whole pixels, ``x`` standing for ``y`` too:

* ``size_cut``: ``x0 = int(x)``, ``x1 = x0 + int(w)`` (the MedKLIP and MAVL loaders);
* ``corner_cut``: ``x0 = int(x)``, ``x1 = int(x + w)``;
* ``rounded``: ``x0 = round(x)``, ``x1 = round(x + w)``, halves to the even neighbour.
"""

SLACK = 1e-6  # pixels by which sums of published decimals may miss the frame's edge or a whole number

PixelBox = tuple[int, int, int, int]


@dataclass(frozen=True)
class Box:
    """A half-open box ``[x0, x1) x [y0, y1)``.

    Attributes:
        published: width and height where the publisher gave these, since ``(x + w) - x`` is not always ``w``.
    """

    x0: float
    y0: float
    x1: float
    y1: float
    published: tuple[float, float] | None = None

    @classmethod
    def from_xywh(cls, x: float, y: float, w: float, h: float) -> Box:
        """Return the box published as upper left corner, width and height."""
        return cls(x, y, x + w, y + h, (w, h))

    @property
    def corners(self) -> tuple[float, float, float, float]:
        """``x0, y0, x1, y1``."""
        return self.x0, self.y0, self.x1, self.y1

    @property
    def width(self) -> float:
        """Width in pixels, as published where it was."""
        return self.published[0] if self.published else self.x1 - self.x0

    @property
    def height(self) -> float:
        """Height in pixels, as published where it was."""
        return self.published[1] if self.published else self.y1 - self.y0

    def pixels(self, rule: BoxRule = "size_cut") -> PixelBox:
        """Return whole pixels ``x0, y0, x1, y1`` under a rule; they can be empty for a box below one pixel."""
        if rule == "rounded":
            return round(self.x0), round(self.y0), round(self.x1), round(self.y1)
        x0, y0 = int(self.x0), int(self.y0)
        if rule == "corner_cut":
            return x0, y0, int(self.x1), int(self.y1)
        if self.published:
            return x0, y0, x0 + int(self.width), y0 + int(self.height)
        # A width that was never published is a difference of decimals: 223.3 - 10.3 must count as 213.
        return x0, y0, x0 + int(self.width + SLACK), y0 + int(self.height + SLACK)


def checked_box(given: Box | Sequence[float]) -> Box:
    """Return the box, if it is one.

    Raises:
        RegionError: not four finite numbers with ``x0 < x1`` and ``y0 < y1``.
    """
    try:
        if isinstance(given, Box):
            box = given
        else:
            x0, y0, x1, y1 = (float(corner) for corner in given)
            box = Box(x0, y0, x1, y1)
        finite = all(math.isfinite(value) for value in (*box.corners, box.width, box.height))
        usable = finite and box.x1 > box.x0 and box.y1 > box.y0
        got: Any = numbers(box.corners)
    except (TypeError, ValueError):
        usable, got = False, given
    if not usable:
        raise RegionError("a box is degenerate", expected="finite x0 < x1 and y0 < y1", got=got)
    return box


def clipped(box: Box, frame: Size) -> Box | None:
    """Return the box itself if it lies in the frame, its part inside if it overhangs, None if it lies outside.

    The part inside covers the frame to its last pixel where the box went beyond, under every rule.
    """
    x0, y0, x1, y1 = max(box.x0, 0.0), max(box.y0, 0.0), min(box.x1, frame[0]), min(box.y1, frame[1])
    if x0 >= x1 or y0 >= y1:
        return None
    if max(x0 - box.x0, y0 - box.y0, box.x1 - x1, box.y1 - y1) <= SLACK:
        return box
    width = x1 - int(x0) if x1 < box.x1 else box.width - (x0 - box.x0)
    height = y1 - int(y0) if y1 < box.y1 else box.height - (y0 - box.y0)
    return Box(x0, y0, x1, y1, (width, height) if box.published or x1 < box.x1 or y1 < box.y1 else None)


def numbers(values: Iterable[float]) -> str:
    """Return numbers as they are shown in messages."""
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"
