"""Where a finding is: a union of boxes, polygons and masks in the pixels of one frame.

A :class:`Region` never travels without its frame ``(width, height)``. It is kept as published (boxes stay boxes) and
is turned into pixels only when a protocol says how: by which rule a box of fractions becomes whole pixels
(:data:`~medground.imaging.boxes.BoxRule`), and by which rule the mask is brought to another size
(:data:`~medground.imaging.picking.ResizeRule`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from medground.errors import RegionError
from medground.imaging import rle
from medground.imaging.boxes import SLACK, Box, BoxRule, PixelBox, checked_box, clipped, numbers
from medground.imaging.picking import ResizeRule, first_taking, picked
from medground.imaging.rle import Size

__all__ = ["Box", "BoxRule", "PixelBox", "Polygon", "Region", "ResizeRule"]

Polygon = tuple[tuple[float, float], ...]

_FARTHEST = 1 << 20  # pixels; points beyond would overflow the drawing, and stand in no picture


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
            box = checked_box(given)
            inside = clipped(box, size)
            if inside is None or (inside is not box and not clip):
                raise RegionError(
                    "a box lies outside its frame" if inside is None else "a box reaches beyond its frame",
                    where=f"box {numbers(box.corners)}",
                    expected=f"x in 0..{size[0]} and y in 0..{size[1]} (frame {size[0]} x {size[1]})",
                    got=numbers(box.corners),
                    fix="check that the box is x0, y0, x1, y1 in the pixels of this frame",
                )
            if inside is not box:
                notes.append(f"box {numbers(box.corners)} clipped to the frame {size[0]} x {size[1]}")
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
            beyond = bool((points < -SLACK).any() or (points > limits + SLACK).any())
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
            rows = slice(first_taking(y0, h, H, resize), first_taking(y1, h, H, resize))
            canvas[rows, first_taking(x0, w, W, resize) : first_taking(x1, w, W, resize)] = True
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
        if len(self.boxes) == 1 and not self.masks and not self.polygons:
            x0, y0, x1, y1 = self.boxes[0].pixels()
            return max(0, min(x1, self.frame[0]) - x0) * max(0, min(y1, self.frame[1]) - y0)
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
        # Numbers of any type that are equal are written alike.
        boxes = [
            (tuple(map(float, box.corners)), tuple(map(float, box.published)) if box.published else None)
            for box in self.boxes
        ]
        parts = (self.frame, boxes, self.polygons, self.masks)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _checked_polygon(given: ArrayLike, number: int) -> NDArray[np.float64]:
    try:
        points = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        points = np.zeros(0)
    shaped = points.ndim == 2 and points.shape[1] == 2 and len(points) >= 3
    if not shaped or not bool((np.abs(points) <= _FARTHEST).all()):  # NaN is not less than anything
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
