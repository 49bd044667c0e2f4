"""From a radiograph to what a network sees, the way each model's authors did it, with the exact geometry.

The published pipelines work on 8-bit pictures: pixels are rounded to 256 levels first. Grey pictures are resized once
and copied to the channels, which equals resizing three equal channels.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from medground.imaging.geometry import Geometry, Rounding, Size
from medground.imaging.reading import Radiograph

CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

Rule = Literal["squash", "squash_then_crop", "center_crop", "pad_square", "fit_then_crop", "fit_then_resize"]
Resample = Literal["bilinear", "bicubic", "lanczos", "area"]
Plane = NDArray[np.uint8]
_FILTERS = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


@dataclass(frozen=True)
class Preprocess:
    """One model's preprocessing.

    Attributes:
        rule: ``squash`` to a square; ``squash_then_crop``: squash to ``resize_to``, then the centre; ``center_crop``:
            shortest side to ``resize_to`` (by default ``size``), then the centre; ``pad_square``: pad to a square, then
            resize; ``fit_then_crop``: longest side to ``resize_to``, pad, then the centre; ``fit_then_resize``: longest
            side to ``resize_to``, pad, then that square, normalised, to ``size`` by bicubic interpolation of floats
            without antialiasing (CheXzero).
        size: side of the square that the network sees, in pixels.
        resample: Pillow's filter on 8-bit pixels, or ``area``: the exact mean of the covered pixels, halves to even.
        mean: per channel, of pixels in [0, 1].
        std: per channel.
        resize_to: in pixels; what it means, the rule says.
        rounding: how a crop's start becomes whole: ``round`` (torchvision) or ``floor`` (Hugging Face).
        equalise: equalise the histogram first, as MedKLIP and MAVL do for DICOM frames.
        fill: grey level of padding, per channel.
        stretch: spread grey levels over the whole range first, fractions cut off, as BioViL does.
    """

    rule: Rule
    size: int
    resample: Resample
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    resize_to: int = 0
    rounding: Rounding = "round"
    equalise: bool = False
    fill: tuple[int, int, int] = (0, 0, 0)
    stretch: bool = False

    def geometry(self, source: Size) -> Geometry:
        """Return how the network's input lies on a picture of ``source`` (width, height)."""
        square = (self.size, self.size)
        if self.rule == "squash":
            return Geometry.squash(source, square)
        if self.rule == "squash_then_crop":
            whole = (self.resize_to, self.resize_to)
            return Geometry.squash(source, whole).then(Geometry.crop(whole, self.size, self.rounding))
        if self.rule == "center_crop":
            return Geometry.center_crop(source, self.resize_to or self.size, self.size, rounding=self.rounding)
        if self.rule == "pad_square":
            return Geometry.pad_square(source).then(Geometry.squash((max(source), max(source)), square))
        frame = self._fitted(source)
        if self.rule == "fit_then_resize":
            return frame.then(Geometry.squash(frame.input, square))
        return frame.then(Geometry.crop(frame.input, self.size, self.rounding))

    def _fitted(self, source: Size) -> Geometry:
        """Return the geometry of: longest side to ``resize_to``, then padded to a square on both sides."""
        if self.rule == "fit_then_crop":
            return Geometry.letterbox(source, self.resize_to, rounding="floor")
        # As published, the product is one of floats: 113 lengths up to 6,000 lose a pixel so (320 / 77 * 77 < 320).
        ratio = self.resize_to / max(source)
        width, height = (max(1, int(side * ratio)) for side in source)
        square = (self.resize_to, self.resize_to)
        offset = float((square[0] - width) // 2), float((square[1] - height) // 2)
        return Geometry(source, square, (width / source[0], height / source[1]), offset)

    def __call__(self, image: Radiograph) -> tuple[NDArray[np.float32], Geometry]:
        """Return the network's input ``(3, size, size)`` and its geometry; colours, where the picture brings them."""
        if image.colour is not None and not (self.equalise or self.stretch):
            return self._coloured(image.colour), self.geometry(image.size)
        return self.normalise(image.pixels), self.geometry(image.size)

    def _coloured(self, levels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the network's input for 8-bit colours ``(h, w, 3)``: each channel placed as grey levels are."""
        planes = [table[self._place(levels[..., c], self.fill[c])] for c, table in enumerate(self._tables)]
        return self._shrunk(np.stack(planes))

    def normalise(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the network's input ``(3, size, size)`` for pixels ``(h, w)`` in [0, 1]."""
        levels = np.rint(pixels * 255).astype(np.uint8)
        if self.equalise:
            levels = equalise_histogram(levels)
        if self.stretch:
            levels = stretch_levels(levels)
        planes = {fill: self._place(levels, fill) for fill in set(self.fill)}
        coloured = np.stack([table[planes[fill]] for fill, table in zip(self.fill, self._tables, strict=True)])
        return self._shrunk(coloured)

    def _shrunk(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return normalised values ``(3, h, w)`` at the network's size, where the rule resizes these."""
        if self.rule != "fit_then_resize" or values.shape[-1] == self.size:
            return values
        import torch

        square = torch.from_numpy(values)[None]
        smaller = torch.nn.functional.interpolate(square, (self.size, self.size), mode="bicubic", align_corners=False)
        shrunk: NDArray[np.float32] = smaller[0].numpy()
        return shrunk

    @property
    def _tables(self) -> list[NDArray[np.float32]]:
        """What each of 256 levels becomes, a table a channel."""
        levels: NDArray[np.float32] = np.arange(256).astype(np.float32) / np.float32(255)
        return [(levels - np.float32(mean)) / np.float32(std) for mean, std in zip(self.mean, self.std, strict=True)]

    def _place(self, levels: Plane, fill: int) -> Plane:
        """Resize, crop and pad 8-bit pixels as :meth:`geometry` says."""
        height, width = levels.shape
        if self.rule == "pad_square":
            square = _canvas(levels, Geometry.pad_square((width, height)), fill)
            return resize(square, (self.size, self.size), self.resample)
        fits = self.rule == "fit_then_resize"
        geometry = self._fitted((width, height)) if fits else self.geometry((width, height))
        resized = tuple(round(side * scale) for side, scale in zip((width, height), geometry.scale, strict=True))
        return _canvas(resize(levels, (resized[0], resized[1]), self.resample), geometry, fill)

    def describe(self) -> dict[str, Any]:
        """Return the preprocessing as JSON-like data, for fingerprints and reports."""
        return asdict(self)


def _canvas(levels: Plane, geometry: Geometry, fill: int) -> Plane:
    """Put resized pixels at a geometry's offset: what lies outside its frame is cut, the rest of the frame filled."""
    canvas = np.full((geometry.input[1], geometry.input[0]), fill, dtype=np.uint8)
    slices = []
    for axis in (1, 0):
        side, frame, place = levels.shape[1 - axis], geometry.input[axis], round(geometry.offset[axis])
        start, stop = max(0, place), min(frame, place + side)
        slices.append((slice(start, stop), slice(start - place, stop - place)))
    (rows, from_rows), (columns, from_columns) = slices
    canvas[rows, columns] = levels[from_rows, from_columns]
    return canvas


def resize(levels: Plane, size: Size, resample: Resample) -> Plane:
    """Return 8-bit pixels ``(h, w)`` at another size (width, height)."""
    if resample == "area":
        return _area(levels, size)
    picture = Image.fromarray(np.ascontiguousarray(levels))
    return np.asarray(picture.resize(size, _FILTERS[resample]), dtype=np.uint8)


def _area(levels: Plane, size: Size) -> Plane:
    """Return the exact mean over each target pixel's area, rounded with halves to even (OpenCV's INTER_AREA)."""
    rows = _means(levels.astype(np.float64), size[1])
    return np.rint(_means(rows.T, size[0]).T).astype(np.uint8)


def _means(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the means of ``count`` equal stretches along the first axis, fractions of a row included."""
    length = len(values)
    # Stretch i covers i * length / count to (i + 1) * length / count; whole numbers keep the fractions exact.
    whole, part = np.divmod(np.arange(count + 1) * length, count)
    totals = np.vstack([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
    padded = np.vstack([values, np.zeros_like(values[:1])])
    edges = totals[whole] + padded[whole] * (part / count)[:, None]
    return np.diff(edges, axis=0) * (count / length)


def stretch_levels(levels: Plane) -> Plane:
    """Return 8-bit pixels whose darkest is 0 and whose brightest is 255; in between fractions are cut off.

    A picture of one level becomes black. The steps are those of BioViL's reader, so that they round alike.
    """
    darkest, brightest = int(levels.min()), int(levels.max())
    if darkest == brightest:
        return np.zeros_like(levels)
    table = np.clip(np.arange(256) - darkest, 0, brightest - darkest) / float(brightest - darkest)
    stretched: Plane = (table * 255).astype(np.uint8)[levels]
    return stretched


def equalise_histogram(levels: Plane) -> Plane:
    """Return 8-bit pixels with an equalised histogram.

    256 bins between the least and the greatest level; each pixel becomes the share of pixels up to its bin, linear
    between bin centres, as scikit-image does; the result is cut, not rounded, to 256 levels, as MedKLIP does. It is
    worked out once a level and looked up for every pixel.
    """
    pixels = np.bincount(levels.ravel(), minlength=256)
    present = np.flatnonzero(pixels)
    values = np.arange(256) / 255
    counts, edges = np.histogram(values[present], bins=256, weights=pixels[present])
    centres = (edges[:-1] + edges[1:]) / 2
    shares = np.cumsum(counts) / counts.sum()
    table: Plane = (np.interp(values, centres, shares) * 255).astype(np.uint8)
    return table[levels]
