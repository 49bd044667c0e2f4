"""How a model's input lies on the pixels of a picture, for boxes, masks and saliency maps, both ways.

A :class:`Geometry` is an axis-aligned affine map from the original pixels of a picture to the frame that the model
sees: ``input = source * scale + offset``. What a crop removed has no place in that frame, and what padding added has
no place in the picture; neither is ever filled in silently.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from medground.errors import ImageError, RegionError

if TYPE_CHECKING:
    from medground.imaging._resampling import Taps

Size = tuple[int, int]
MapRule = Literal["bilinear", "bilinear_corners", "nearest"]
PixelRule = Literal["bilinear", "bicubic", "lanczos", "area", "nearest"]
Rounding = Literal["round", "floor"]

_FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "area": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


@dataclass(frozen=True)
class Geometry:
    """An axis-aligned affine map from a picture's original pixels to the model's input frame.

    Attributes:
        source: ``(width, height)`` of the picture.
        input: ``(width, height)`` of the frame the model sees.
        scale: input pixels a source pixel, in x and y.
        offset: where the picture's top-left corner lies in the input frame.
    """

    source: Size
    input: Size
    scale: tuple[float, float]
    offset: tuple[float, float]

    def __post_init__(self) -> None:
        sizes = [*self.source, *self.input]
        usable = all(side >= 1 for side in sizes) and all(math.isfinite(s) and s > 0 for s in self.scale)
        if not usable or not all(math.isfinite(o) for o in self.offset):
            raise ImageError(
                "a geometry cannot be inverted",
                expected="sizes of at least 1, finite scales above 0, finite offsets",
                got=self.to_dict(),
            )

    @classmethod
    def identity(cls, size: Size) -> Geometry:
        """Return the geometry of a model that sees the picture as it is."""
        return cls.squash(size, size)

    @classmethod
    def squash(cls, source: Size, input: Size) -> Geometry:
        """Return the geometry of a resize that ignores the aspect."""
        return cls(source, input, (input[0] / source[0], input[1] / source[1]), (0.0, 0.0))

    @classmethod
    def center_crop(
        cls, source: Size, resize_to: int, crop: int | Size | None = None, rounding: Rounding = "round"
    ) -> Geometry:
        """Return the geometry of: shortest side to ``resize_to``, then a centred crop.

        The longest side becomes ``int(resize_to * longest / shortest)`` and the crop starts at
        ``round((side - crop) / 2)``, halves to the even neighbour, as torchvision and OpenAI's CLIP do; Hugging
        Face's processors take ``(side - crop) // 2``, which is ``rounding="floor"``.

        Args:
            source: ``(width, height)`` of the picture.
            resize_to: pixels of the shortest side.
            crop: pixels of the crop, a square's side or ``(width, height)``; by default ``resize_to``.
            rounding: how the crop's start becomes a whole number.
        """
        width, height = source
        short, long = min(source), max(source)
        resized = resize_to, int(resize_to * long / short)
        resized_size = resized if width <= height else resized[::-1]
        return cls.squash(source, resized_size).then(cls.crop(resized_size, crop or resize_to, rounding))

    @classmethod
    def crop(cls, source: Size, crop: int | Size, rounding: Rounding = "round") -> Geometry:
        """Return the geometry of a centred crop without a resize; a side that is too small is padded."""
        size = (crop, crop) if isinstance(crop, int) else crop
        offset = tuple(-_half(side - kept, rounding) for side, kept in zip(source, size, strict=True))
        return cls(source, size, (1.0, 1.0), (float(offset[0]), float(offset[1])))

    @classmethod
    def letterbox(cls, source: Size, input: int | Size, rounding: Rounding = "round") -> Geometry:
        """Return the geometry of: as large as fits, then padding on both sides.

        Each side becomes ``round(side * ratio)``, or its floor, with the ratio of the side that fits first; an odd
        pixel of padding goes to the right or the bottom.

        Args:
            source: ``(width, height)`` of the picture.
            input: the frame, a square's side or ``(width, height)``.
            rounding: how the other side becomes a whole number.
        """
        frame = (input, input) if isinstance(input, int) else input
        widest = frame[0] * source[1] <= frame[1] * source[0]  # in whole numbers: the width fits first
        numerator, denominator = (frame[0], source[0]) if widest else (frame[1], source[1])
        sides = [max(1, _divided(side * numerator, denominator, rounding)) for side in source]
        resized = (sides[0], sides[1])
        pad = [(whole - side) // 2 for whole, side in zip(frame, resized, strict=True)]
        scale = (resized[0] / source[0], resized[1] / source[1])
        return cls(source, frame, scale, (float(pad[0]), float(pad[1])))

    @classmethod
    def pad_square(cls, source: Size) -> Geometry:
        """Return the geometry of padding to a square of the longest side, the picture centred."""
        return cls.letterbox(source, max(source))

    def then(self, other: Geometry) -> Geometry:
        """Return this geometry followed by another on its input frame.

        Raises:
            ImageError: the other geometry starts from another size.
        """
        if other.source != self.input:
            raise ImageError(
                "two geometries do not follow each other",
                expected=f"one that starts from {self.input[0]} x {self.input[1]}",
                got=f"{other.source[0]} x {other.source[1]}",
            )
        (sx, sy), (tx, ty), (ox, oy), (px, py) = self.scale, other.scale, self.offset, other.offset
        return Geometry(self.source, other.input, (sx * tx, sy * ty), (ox * tx + px, oy * ty + py))

    @property
    def is_squash(self) -> bool:
        """Whether the picture fills the input frame exactly."""
        filled = Geometry.squash(self.source, self.input)
        return self.offset == (0.0, 0.0) and all(
            math.isclose(scale, fitting, rel_tol=1e-12) for scale, fitting in zip(self.scale, filled.scale, strict=True)
        )

    def boxes_to_input(self, boxes: ArrayLike, *, clip: bool = False) -> NDArray[np.float64]:
        """Return boxes ``(n, 4)`` of x0, y0, x1, y1 in the input frame, cut at its edges if ``clip``."""
        moved = _boxes(boxes) * np.tile(self.scale, 2) + np.tile(self.offset, 2)
        return _cut(moved, self.input) if clip else moved

    def boxes_to_source(self, boxes: ArrayLike, *, clip: bool = False) -> NDArray[np.float64]:
        """Return boxes ``(n, 4)`` of the input frame in original pixels, cut at the picture's edges if ``clip``."""
        moved = (_boxes(boxes) - np.tile(self.offset, 2)) / np.tile(self.scale, 2)
        return _cut(moved, self.source) if clip else moved

    def share_kept(self, box: ArrayLike) -> float:
        """Return the share of one original box's area that lies in the input frame; NaN for a box without area."""
        whole, kept = self.boxes_to_input(box)[0], self.boxes_to_input(box, clip=True)[0]
        area = float(np.prod(whole[2:] - whole[:2]))
        return float(np.prod(kept[2:] - kept[:2])) / area if area > 0 else math.nan

    def mask_to_input(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return an original mask ``(height, width)`` in the input frame; padding is False.

        Each pixel takes the one that its centre falls on.

        Raises:
            RegionError: the mask does not have the picture's size.
        """
        columns, rows = self._places(self.input, self.source, self.scale, self.offset)
        return _looked_up(mask, self.source, rows, columns)

    def mask_to_source(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the input frame in original pixels ``(height, width)``; what was cropped away is False.

        Raises:
            RegionError: the mask does not have the input's size.
        """
        scale = (1 / self.scale[0], 1 / self.scale[1])
        offset = (-self.offset[0] * scale[0], -self.offset[1] * scale[1])
        columns, rows = self._places(self.source, self.input, scale, offset)
        return _looked_up(mask, self.input, rows, columns)

    @staticmethod
    def _places(
        target: Size, source: Size, scale: tuple[float, float], offset: tuple[float, float]
    ) -> list[NDArray[np.int64]]:
        """Return per axis which source pixel each target pixel's centre falls on, -1 for none."""
        places = []
        for out, size, s, o in zip(target, source, scale, offset, strict=True):
            # The slack keeps a place that is a whole number but for rounding from falling short of it.
            place = np.floor((np.arange(out) + 0.5 - o) / s + 1e-9).astype(np.int64)
            places.append(np.where((place >= 0) & (place < size), place, -1))
        return places

    def covered(self, size: Size | None = None) -> NDArray[np.bool_]:
        """Return which pixels of the picture, rastered at ``size`` (by default its own), the model sees.

        A pixel is seen when its centre lies in the input frame. Shape ``(height, width)``.
        """
        rows, columns = _taps_of((1, 1), self, size or self.source, "nearest")
        return np.logical_and.outer(rows.seen, columns.seen)

    def to_dict(self) -> dict[str, Any]:
        """Return the geometry as JSON-like data."""
        return {
            "source": list(self.source),
            "input": list(self.input),
            "scale": list(self.scale),
            "offset": list(self.offset),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Geometry:
        """Return the geometry of :meth:`to_dict`, equal to the last bit.

        Raises:
            ImageError: a key is missing or a value is no pair of numbers.
        """
        try:
            source, frame, scale, offset = (tuple(data[k]) for k in ("source", "input", "scale", "offset"))
            (a, b), (c, d), (e, f), (g, h) = source, frame, scale, offset
            return cls((int(a), int(b)), (int(c), int(d)), (float(e), float(f)), (float(g), float(h)))
        except (KeyError, TypeError, ValueError) as error:
            raise ImageError(
                "a geometry cannot be read", expected="pairs: source, input, scale, offset", got=data
            ) from error


def upsample(grid_map: ArrayLike, size: Size, rule: MapRule = "bilinear") -> NDArray[np.float64]:
    """Return a map ``(h, w)`` that covers the whole frame, rastered at ``size`` (width, height).

    Rules: ``bilinear`` reads between cell centres with half-pixel centres, held constant beyond the outermost ones
    (``align_corners=False``); ``bilinear_corners`` puts the outermost cells on the outermost pixels
    (``align_corners=True``); ``nearest`` gives row i the cell ``floor(i h / H)``.

    The result is float64 ``(height, width)``, deterministic, and symmetric wherever the map is: equal maxima stay
    equal and a flat map stays flat.
    """
    from medground.imaging import _resampling

    grid = _grid(grid_map)
    rows = _resampling.plain_taps(grid.shape[0], size[1], rule)
    return _resampling.read(grid, rows, _resampling.plain_taps(grid.shape[1], size[0], rule))


def resample_map(
    grid_map: ArrayLike, geometry: Geometry, size: Size | None = None, rule: MapRule = "bilinear"
) -> NDArray[np.float64]:
    """Return a map on the model's grid, laid on the whole original picture rastered at ``size``.

    The grid covers the model's input frame; ``geometry`` says where the picture lies in it. Pixels whose centre a
    crop removed are NaN: the model has said nothing about them. For a squash this is :func:`upsample`, bit for bit.

    Args:
        grid_map: ``(h, w)`` saliency.
        geometry: from the picture to the model's input.
        size: ``(width, height)`` of the raster; by default the picture's own.
        rule: see :func:`upsample`; where a crop or padding moved the picture, ``nearest`` gives a pixel the cell that
            its centre lies in, and ``bilinear_corners`` puts the outermost cells on the input's outermost pixels.
    """
    from medground.imaging import _resampling

    grid = _grid(grid_map)
    rows, columns = _taps_of((grid.shape[1], grid.shape[0]), geometry, size or geometry.source, rule)
    return _resampling.read(grid, rows, columns)


def _taps_of(cells: Size, geometry: Geometry, size: Size, rule: MapRule) -> tuple[Taps, Taps]:
    """Return the taps of rows and of columns."""
    from medground.imaging import _resampling

    def along(axis: int) -> Taps:
        # rational() undoes the rounding of a quotient of whole numbers before it is multiplied back.
        extent = _resampling.rational(geometry.scale[axis]) * geometry.source[axis]
        offset = _resampling.rational(geometry.offset[axis])
        return _resampling.framed_taps(cells[axis], size[axis], rule, extent, offset, geometry.input[axis])

    return along(1), along(0)


def resize_pixels(pixels: NDArray[np.float32], size: Size, rule: PixelRule = "bilinear") -> NDArray[np.float32]:
    """Return pixels ``(h, w)`` resized to ``size`` (width, height) in float32 by Pillow's filters.

    Every filter but ``nearest`` widens when it shrinks (antialiasing); ``area`` is the mean of the covered pixels.
    ``bicubic`` and ``lanczos`` can leave the range of their input.
    """
    picture = Image.fromarray(np.ascontiguousarray(pixels, dtype=np.float32), mode="F")
    return np.array(picture.resize(size, _FILTERS[rule]), dtype=np.float32)


def apply(
    geometry: Geometry, pixels: NDArray[np.float32], rule: PixelRule = "bilinear", fill: float = 0.0
) -> NDArray[np.float32]:
    """Return what the model sees of a picture: resized once, then cropped and padded with ``fill``.

    A composition that pads or crops before it resizes can have an offset of fractions; apply its parts in turn.

    Raises:
        ImageError: the pixels do not have the geometry's source size, or its offset is not whole.
    """
    height, width = pixels.shape
    if (width, height) != geometry.source:
        raise ImageError("a geometry is of another picture", expected=geometry.source, got=(width, height))
    resized = [round(side * scale) for side, scale in zip(geometry.source, geometry.scale, strict=True)]
    if any(place != round(place) for place in geometry.offset):
        raise ImageError("a geometry's offset is not whole", expected="whole pixels", got=geometry.offset)
    moved = resize_pixels(pixels, (resized[0], resized[1]), rule)
    canvas = np.full((geometry.input[1], geometry.input[0]), fill, dtype=np.float32)
    inner, outer = [], []
    for side, frame, place in zip(resized, geometry.input, map(round, geometry.offset), strict=True):
        inner.append(slice(max(0, -place), min(side, frame - place)))
        outer.append(slice(max(0, place), min(frame, place + side)))
    canvas[outer[1], outer[0]] = moved[inner[1], inner[0]]
    return canvas


def _grid(grid_map: ArrayLike) -> NDArray[np.float64]:
    grid = np.asarray(grid_map)
    if grid.dtype not in (np.float32, np.float64):  # both are read exactly as they are
        grid = grid.astype(np.float64)
    if grid.ndim != 2 or grid.size == 0:
        raise ImageError("a map has the wrong shape", expected="(h, w), both at least 1", got=grid.shape)
    return grid


def _boxes(boxes: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(boxes, dtype=np.float64).reshape(-1, 4)


def _cut(boxes: NDArray[np.float64], frame: Sequence[int]) -> NDArray[np.float64]:
    return np.clip(boxes, 0.0, np.tile(np.asarray(frame, dtype=np.float64), 2))


def _half(number: int, rounding: Rounding) -> int:
    return round(number / 2) if rounding == "round" else number // 2


def _divided(numerator: int, denominator: int, rounding: Rounding) -> int:
    return round(numerator / denominator) if rounding == "round" else numerator // denominator


def _looked_up(
    mask: NDArray[np.bool_], size: Size, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> NDArray[np.bool_]:
    mask = np.asarray(mask, dtype=bool)
    if mask.shape != (size[1], size[0]):
        raise RegionError("a mask does not fit its geometry", expected=(size[1], size[0]), got=mask.shape)
    taken = mask[np.ix_(rows, columns)]
    taken[rows < 0] = False
    taken[:, columns < 0] = False
    return taken
