"""Where a finding is: a union of boxes, polygons and masks in the pixels of one frame.

A :class:`Region` never travels without its frame ``(width, height)``. It is kept as published (boxes stay boxes) and
is turned into pixels only when a protocol says how: by which rule a box of fractions becomes whole pixels
(:data:`BoxRule`), and by which rule the mask is brought to another size (:data:`ResizeRule`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from medground.errors import RegionError
from medground.imaging import rle
from medground.imaging.rle import Size

BoxRule = Literal["size_cut", "corner_cut", "rounded"]
"""How a box of fractions becomes whole pixels, ``x`` standing for ``y`` too:

* ``size_cut``: ``x0 = int(x)``, ``x1 = x0 + int(w)`` (the MedKLIP and MAVL loaders);
* ``corner_cut``: ``x0 = int(x)``, ``x1 = int(x + w)``;
* ``rounded``: ``x0 = round(x)``, ``x1 = round(x + w)``, halves to the even neighbour.
"""

ResizeRule = Literal["floor", "centre", "none"]
"""Which pixel of H rows the row i of H' rows takes: ``floor(i H / H')`` (``floor``, as the published loaders do) or
``floor((i + 1/2) H / H')`` (``centre``); ``none`` allows no other size than the frame's."""

_SLACK = 1e-6  # pixels by which sums of published decimals may miss the frame's edge or a whole number

PixelBox = tuple[int, int, int, int]
Polygon = tuple[tuple[float, float], ...]


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
        return x0, y0, x0 + int(self.width + _SLACK), y0 + int(self.height + _SLACK)


@dataclass(frozen=True)
class Region:
    """A union of boxes, polygons and masks in one frame; the constructors below check what they are given.

    Attributes:
        frame: ``(width, height)`` of the pixels that everything is stated in.
        boxes: half-open boxes.
        polygons: outlines as ``((x, y), ...)``; filled with their outline drawn, as Pillow draws a polygon.
        masks: COCO counts (column-major run lengths), one tuple a mask.
        notes: what was mended while the region was made; not part of its identity.
    """

    frame: Size
    boxes: tuple[Box, ...] = ()
    polygons: tuple[Polygon, ...] = ()
    masks: tuple[tuple[int, ...], ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def from_boxes(cls, frame: Sequence[int], boxes: Iterable[Box | Sequence[float]], *, clip: bool = False) -> Region:
        """Return the union of boxes, given as :class:`Box` or as ``x0, y0, x1, y1``.

        Args:
            frame: ``(width, height)`` the boxes are stated in.
            boxes: at least partly inside the frame.
            clip: cut what overhangs, and say so in ``notes``, rather than refuse it.

        Raises:
            RegionError: a box that is no box, is outside its frame, or overhangs it without ``clip``.
        """
        size, kept, notes = rle.checked_size(frame), [], []
        for given in boxes:
            box = _checked_box(given)
            inside = _clipped(box, size)
            if inside is None or (inside is not box and not clip):
                raise RegionError(
                    "a box lies outside its frame" if inside is None else "a box reaches beyond its frame",
                    where=f"box {_numbers(box.corners)}",
                    expected=f"x in 0..{size[0]} and y in 0..{size[1]} (frame {size[0]} x {size[1]})",
                    got=_numbers(box.corners),
                    fix="check that the box is x0, y0, x1, y1 in the pixels of this frame",
                )
            if inside is not box:
                notes.append(f"box {_numbers(box.corners)} clipped to the frame {size[0]} x {size[1]}")
            kept.append(inside)
        return cls(size, boxes=tuple(kept), notes=tuple(notes))

    @classmethod
    def from_polygons(cls, frame: Sequence[int], polygons: Iterable[ArrayLike], *, clip: bool = False) -> Region:
        """Return the union of polygons, each an ``(n, 2)`` array of x, y with n of at least 3.

        Args:
            frame: ``(width, height)`` the points are stated in.
            polygons: outlines; holes cannot be expressed.
            clip: allow points outside the frame (the drawing ends at its edge) and say so in ``notes``.

        Raises:
            RegionError: a polygon of fewer than 3 points, with NaN, outside its frame, or beyond it without ``clip``.
        """
        size, kept, notes = rle.checked_size(frame), [], []
        for number, given in enumerate(polygons):
            points = _checked_polygon(given, number)
            limits = np.array(size, dtype=np.float64)
            beyond = bool((points < -_SLACK).any() or (points > limits + _SLACK).any())
            outside = bool((points.max(axis=0) < 0).any() or (points.min(axis=0) > limits).any())
            if outside or (beyond and not clip):
                low, high = points.min(axis=0), points.max(axis=0)
                raise RegionError(
                    "a polygon lies outside its frame" if outside else "a polygon reaches beyond its frame",
                    where=f"polygon {number}",
                    expected=f"x in 0..{size[0]} and y in 0..{size[1]} (frame {size[0]} x {size[1]})",
                    got=f"x in {low[0]:g}..{high[0]:g}, y in {low[1]:g}..{high[1]:g}",
                )
            if beyond:
                notes.append(f"polygon {number} clipped to the frame {size[0]} x {size[1]}")
            kept.append(tuple((float(x), float(y)) for x, y in points))
        return cls(size, polygons=tuple(kept), notes=tuple(notes))

    @classmethod
    def from_mask(cls, mask: ArrayLike) -> Region:
        """Return the region of a mask ``(height, width)``, boolean or of whole numbers (anything but 0 is inside).

        Raises:
            RegionError: not two axes (a picture with channels), no pixels, or not boolean or whole numbers.
        """
        array = np.asarray(mask)
        if array.ndim != 2 or array.size == 0:
            raise RegionError("a mask has the wrong shape", expected="(height, width)", got=array.shape)
        if array.dtype.kind not in "bui":
            raise RegionError("a mask has the wrong type", expected="boolean or whole numbers", got=array.dtype)
        size = rle.checked_size((array.shape[1], array.shape[0]))
        return cls(size, masks=(tuple(rle.counts_from_mask(array != 0).tolist()),))

    @classmethod
    def from_counts(cls, frame: Sequence[int], counts: ArrayLike) -> Region:
        """Return the region of COCO counts in a frame ``(width, height)``.

        Raises:
            RegionError: malformed counts, see :func:`medground.imaging.rle.checked_counts`.
        """
        return cls(rle.checked_size(frame), masks=(tuple(rle.checked_counts(counts, frame).tolist()),))

    @classmethod
    def from_coco(cls, size: Sequence[int], counts: str | bytes | Sequence[int]) -> Region:
        """Return the region of a COCO object ``{"size": [height, width], "counts": ...}``, compressed or not.

        Raises:
            RegionError: a malformed size or code.
        """
        if not isinstance(size, Sequence | np.ndarray) or len(size) != 2:
            raise RegionError("a COCO size is not usable", expected="[height, width]", got=size)
        runs = rle.counts_from_string(counts) if isinstance(counts, str | bytes) else counts
        return cls.from_counts((size[1], size[0]), runs)

    @classmethod
    def union(cls, *regions: Region) -> Region:
        """Return the union of at least one region.

        Raises:
            RegionError: no region, or different frames.
        """
        frames = {region.frame for region in regions}
        if len(frames) != 1:
            raise RegionError(
                "regions of different frames cannot be united" if frames else "no region to unite",
                expected="one frame (width, height)",
                got=", ".join(f"{w} x {h}" for w, h in sorted(frames)) or "none",
            )
        return cls(
            frames.pop(),
            boxes=tuple(box for region in regions for box in region.boxes),
            polygons=tuple(polygon for region in regions for polygon in region.polygons),
            masks=tuple(mask for region in regions for mask in region.masks),
            notes=tuple(note for region in regions for note in region.notes),
        )

    def mask(self, rule: BoxRule = "size_cut") -> NDArray[np.bool_]:
        """Return the pixels of the region on its own frame, ``(height, width)``."""
        return self.mask_at(self.frame, rule)

    def mask_at(
        self, size: Sequence[int], rule: BoxRule = "size_cut", resize: ResizeRule = "floor"
    ) -> NDArray[np.bool_]:
        """Return the region's mask brought to ``size`` (width, height) by picking nearest pixels.

        Equal to ``mask(rule)`` followed by the pick, without drawing boxes in full.

        Raises:
            RegionError: ``resize`` is ``none`` and the size is not the frame's.
        """
        (W, H), (w, h) = rle.checked_size(size), self.frame
        if resize == "none" and (w, h) != (W, H):
            raise RegionError("a mask does not fit and must not be resized", expected=f"{w} x {h}", got=f"{W} x {H}")
        canvas = np.zeros((H, W), dtype=bool)
        for box in self.boxes:
            x0, y0, x1, y1 = box.pixels(rule)
            rows = slice(_first_taking(y0, h, H, resize), _first_taking(y1, h, H, resize))
            canvas[rows, _first_taking(x0, w, W, resize) : _first_taking(x1, w, W, resize)] = True
        if self.polygons or self.masks:
            drawn = self._drawn()
            if (w, h) != (W, H):
                drawn = drawn[np.ix_(picked(h, H, resize), picked(w, W, resize))]
            canvas |= drawn
        return canvas

    def _drawn(self) -> NDArray[np.bool_]:
        """Return the union of the polygons and masks on the frame."""
        width, height = self.frame
        canvas = np.zeros((height, width), dtype=bool)
        if self.polygons:
            picture = Image.new("L", self.frame, 0)
            pen = ImageDraw.Draw(picture)
            for polygon in self.polygons:
                pen.polygon(polygon, outline=1, fill=1)
            canvas |= np.asarray(picture) != 0
        for counts in self.masks:
            canvas |= rle.mask_from_counts(counts, self.frame)
        return canvas

    @cached_property
    def area(self) -> int:
        """Pixels of the region on its own frame, boxes by ``size_cut``."""
        if len(self.masks) == 1 and not self.boxes and not self.polygons:
            return rle.area(self.masks[0])
        return int(np.count_nonzero(self.mask()))

    @property
    def is_empty(self) -> bool:
        """Whether no pixel of the frame is in the region, boxes by ``size_cut``."""
        return self.area == 0

    def bbox(self, rule: BoxRule = "size_cut") -> PixelBox | None:
        """Return the half-open bounding box of the region's pixels, or None when there are none."""
        return rle.bbox(rle.counts_from_mask(self.mask(rule)), self.frame[1])

    def contains(self, x: float, y: float, rule: BoxRule = "size_cut") -> bool:
        """Return whether the pixel that holds the point ``x, y`` is in the region."""
        (width, height), (column, row) = self.frame, (math.floor(x), math.floor(y))
        if not (0 <= column < width and 0 <= row < height):
            return False
        corners = (box.pixels(rule) for box in self.boxes)
        if any(x0 <= column < x1 and y0 <= row < y1 for x0, y0, x1, y1 in corners):
            return True
        return bool(self.polygons or self.masks) and bool(self._drawn()[row, column])

    def widened(self, margin: int, rule: BoxRule = "size_cut") -> Region:
        """Return the region grown by ``margin`` pixels of its frame on every side, cut at the frame's edge.

        Boxes become whole pixels by ``rule`` first and stay boxes; polygons and masks are dilated by a square of
        ``2 margin + 1``. The result's pixels are those of ``mask(rule)`` dilated by that square.

        Raises:
            RegionError: a negative margin.
        """
        if margin < 0:
            raise RegionError("a margin is negative", expected="0 pixels or more", got=margin)
        if margin == 0:
            return self
        width, height = self.frame
        boxes = tuple(
            Box(max(x0 - margin, 0), max(y0 - margin, 0), min(x1 + margin, width), min(y1 + margin, height))
            for x0, y0, x1, y1 in (box.pixels(rule) for box in self.boxes)
            if x1 > x0 and y1 > y0
        )
        masks: tuple[tuple[int, ...], ...] = ()
        if self.polygons or self.masks:
            masks = (tuple(rle.counts_from_mask(_dilated(self._drawn(), margin)).tolist()),)
        return Region(self.frame, boxes=boxes, masks=masks, notes=self.notes)

    def fingerprint(self) -> str:
        """Return a short hash of frame, boxes, polygons and masks, the same on every machine."""
        parts = (
            self.frame,
            [(box.corners, box.published) for box in self.boxes],
            self.polygons,
            self.masks,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def picked(source: int, target: int, resize: ResizeRule) -> NDArray[np.int64]:
    """Return which of ``source`` rows each of ``target`` rows takes, under a :data:`ResizeRule`."""
    index = np.arange(target, dtype=np.int64)
    if resize == "centre":
        return (2 * index + 1) * source // (2 * target)
    return index * source // target


def _first_taking(edge: int, source: int, target: int, resize: ResizeRule) -> int:
    """Return the first of ``target`` rows that takes row ``edge`` of ``source`` rows or a later one."""
    edge = min(max(edge, 0), source)
    if resize == "centre":
        return max(0, -((source - 2 * target * edge) // (2 * source)))
    return -(-edge * target // source)


def _checked_box(given: Box | Sequence[float]) -> Box:
    try:
        if isinstance(given, Box):
            box = given
        else:
            x0, y0, x1, y1 = (float(corner) for corner in given)
            box = Box(x0, y0, x1, y1)
        usable = all(math.isfinite(c) for c in box.corners) and box.x1 > box.x0 and box.y1 > box.y0
        got: Any = _numbers(box.corners)
    except (TypeError, ValueError):
        usable, got = False, given
    if not usable:
        raise RegionError("a box is degenerate", expected="finite x0 < x1 and y0 < y1", got=got)
    return box


def _clipped(box: Box, frame: Size) -> Box | None:
    """Return the box itself if it lies in the frame, its part inside if it overhangs, None if it lies outside."""
    width, height = frame
    x0, y0, x1, y1 = max(box.x0, 0.0), max(box.y0, 0.0), min(box.x1, width), min(box.y1, height)
    if x0 >= x1 or y0 >= y1:
        return None
    moved = max(abs(a - b) for a, b in zip(box.corners, (x0, y0, x1, y1), strict=True))
    return box if moved <= _SLACK else Box(x0, y0, x1, y1)


def _checked_polygon(given: ArrayLike, number: int) -> NDArray[np.float64]:
    try:
        points = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.zeros(0)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 3 or not bool(np.isfinite(points).all()):
        raise RegionError(
            "a polygon is degenerate",
            where=f"polygon {number}",
            expected="3 points or more, each x, y and finite",
            got=f"shape {points.shape}",
        )
    return points


def _dilated(mask: NDArray[np.bool_], margin: int) -> NDArray[np.bool_]:
    """Return the mask dilated by a square of ``2 margin + 1``: one window sum along each axis."""
    for _ in range(2):
        padded = np.pad(mask, ((margin + 1, margin), (0, 0)))
        sums = np.cumsum(padded, axis=0, dtype=np.int32)
        mask = (sums[2 * margin + 1 :] > sums[: -2 * margin - 1]).T
    return mask


def _numbers(values: Iterable[float]) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"
