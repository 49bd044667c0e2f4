"""What lies on a picture: the outline of the true region and the model's map. Pure functions on arrays."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from medground.imaging.geometry import Geometry, resize_pixels
from medground.imaging.picking import picked
from medground.imaging.regions import Region

LONGEST = 512
"""Pixels of a picture's longest side in a report."""
FINEST = 64
"""Cells of a map's side in a report; a finer map is averaged down to it."""
QUALITY = 74
"""Of WebP: no visible change in a radiograph of this size, about 15 kB."""

Corner = tuple[int, int]
_Edge = tuple[int, int, int, int]


def outline(region: Region) -> str:
    """Return the outline of a region as an SVG path in the pixels of its frame; boxes and polygons as published."""
    corners = [box.corners for box in region.boxes]
    paths = [_path([(x0, y0), (x1, y0), (x1, y1), (x0, y1)]) for x0, y0, x1, y1 in corners]
    paths += [_path(polygon) for polygon in region.polygons]
    if region.masks:
        paths += _mask_paths(Region(region.frame, masks=region.masks))
    return "".join(paths)


def region_cells(region: Region, side: int = 64) -> NDArray[np.float64]:
    """Return the centres ``(K, 2)`` of a region's cells on a coarse raster, as shares of the picture's sides."""
    width, height = region.frame
    w, h = min(width, side), min(height, side)
    mask = region.mask()[np.ix_(picked(height, h, "centre"), picked(width, w, "centre"))]
    rows, columns = np.nonzero(mask)
    return np.stack([(columns + 0.5) / w, (rows + 0.5) / h], axis=1)


def distance(peak: tuple[float, float], cells: NDArray[np.float64], frame: tuple[int, int]) -> float | None:
    """Return how far a peak lies from a region, as a share of the picture's longer side; about 0 inside.

    Args:
        peak: as shares of the picture's sides.
        cells: of the region, from `region_cells`; None is returned where there are none.
        frame: (width, height) of the picture.

    Example:
        >>> distance((0.25, 0.5), np.array([[0.75, 0.5]]), (200, 100))
        0.5
    """
    if not len(cells):
        return None
    sides = np.array(frame) / max(frame)
    return float(np.sqrt((((cells - peak) * sides) ** 2).sum(axis=1)).min())


def _mask_paths(region: Region) -> Iterator[str]:
    """Trace masks on a raster no finer than the picture that they are shown on."""
    (width, height), shrink = region.frame, max(1.0, max(region.frame) / LONGEST)
    w, h = max(1, round(width / shrink)), max(1, round(height / shrink))
    mask = region.mask()[np.ix_(picked(height, h, "centre"), picked(width, w, "centre"))]
    for loop in trace(mask):
        yield _path([(x * width / w, y * height / h) for x, y in loop])


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}".replace(".0", "") for x, y in points) + "Z"


def trace(mask: NDArray[np.bool_]) -> list[list[Corner]]:
    """Return the closed outlines of a mask ``(height, width)`` along the edges of its pixels.

    A loop lists its corners ``(x, y)`` with the inside to the right of the way: outer outlines run clockwise (y points
    down), holes against it. Pixels that touch only at a corner get loops of their own.
    """
    remaining = dict.fromkeys(_edges(np.asarray(mask, dtype=bool)))
    every = set(remaining)
    loops = []
    while remaining:
        first = edge = next(iter(remaining))
        loop: list[Corner] = []
        while True:
            del remaining[edge]
            following = _after(edge, every)
            if following[2:] != edge[2:]:
                loop.append(following[:2])
            edge = following
            if edge == first:
                break
        loops.append(loop)
    return loops


def _edges(mask: NDArray[np.bool_]) -> list[_Edge]:
    """Return (x, y, dx, dy) of every pixel edge between inside and outside, the inside to its right."""
    inside = np.pad(mask, 1)
    # Per side of a pixel: where the neighbour is, where the edge starts, and which way it goes.
    sides = (((-1, 0), (0, 0), (1, 0)), ((0, 1), (1, 0), (0, 1)), ((1, 0), (1, 1), (-1, 0)), ((0, -1), (0, 1), (0, -1)))
    edges: list[_Edge] = []
    for (row, column), (x, y), way in sides:
        rows, columns = np.nonzero(inside & ~np.roll(inside, (-row, -column), (0, 1)))
        edges += [(c - 1 + x, r - 1 + y, *way) for r, c in zip(rows.tolist(), columns.tolist(), strict=True)]
    return edges


def _after(edge: _Edge, every: set[_Edge]) -> _Edge:
    """Return the edge that goes on: to the right first, which keeps pixels that touch at a corner apart."""
    x, y, dx, dy = edge
    end = x + dx, y + dy
    return next(e for way in ((-dy, dx), (dx, dy), (dy, -dx)) if (e := (*end, *way)) in every)


@dataclass(frozen=True)
class ShownMap:
    """A map as a report holds it.

    Attributes:
        png: 8-bit grey, in base64: black is the smallest value, white the largest; a flat map is black.
        size: ``(width, height)`` of the PNG, at most 64 cells a side.
        low: the smallest value.
        high: the largest value.
    """

    png: str
    size: tuple[int, int]
    low: float
    high: float

    def cut(self, tau: float, normalise: str) -> float:
        """Return the grey value (0 to 255) at which a threshold of the protocol lies.

        On a flat map it lies below black or above white, as the protocol selects everything or nothing.
        """
        if normalise == "minmax":
            return 255 * tau
        value = tau * self.high if normalise == "max" else tau
        if self.high > self.low:
            return 255 * (value - self.low) / (self.high - self.low)
        return math.copysign(256, value - self.low)


def shown_map(saliency: NDArray[np.floating[Any]]) -> ShownMap | None:
    """Return a map ``(h, w)`` as a report holds it, or None where it holds a value that is no number."""
    if not np.isfinite(saliency).all():
        return None
    height, width = saliency.shape
    size = min(width, FINEST), min(height, FINEST)
    values = np.asarray(saliency, dtype=np.float64)
    low, high = float(values.min()), float(values.max())
    scaled = ((values - low) / (high - low) if high > low else np.zeros_like(values)).astype(np.float32)
    if size != (width, height):
        scaled = resize_pixels(scaled, size, "area")
    return ShownMap(_encoded(scaled, "PNG"), size, low, high)


def map_frame(geometry: Geometry) -> tuple[float, float, float, float]:
    """Return x, y, width and height of the model's input frame in original pixels: where its map belongs."""
    (sx, sy), (ox, oy), (w, h) = geometry.scale, geometry.offset, geometry.input
    return -ox / sx, -oy / sy, w / sx, h / sy


def shown_picture(pixels: NDArray[np.float32]) -> str:
    """Return a radiograph as a small WebP in base64."""
    height, width = pixels.shape
    shrink = max(1.0, max(width, height) / LONGEST)
    size = max(1, round(width / shrink)), max(1, round(height / shrink))
    return _encoded(resize_pixels(pixels, size, "area"), "WEBP", quality=QUALITY, method=4)


def _encoded(grey: NDArray[np.float32], kind: str, **options: int | bool) -> str:
    out = io.BytesIO()
    levels = np.round(np.clip(grey, 0, 1) * 255).astype(np.uint8)
    Image.fromarray(levels).save(out, kind, **options)
    return base64.b64encode(out.getvalue()).decode("ascii")
