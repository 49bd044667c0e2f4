"""Small changes of a picture that leave its finding what it is: of brightness, contrast, noise, place and side.

Each is one rule over a picture and over a region, so that both stay together. What is moved out of the picture is gone,
and what is moved in is 0 (black).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from medground.errors import ConfigError
from medground.imaging.boxes import Box, clipped
from medground.imaging.reading import Radiograph
from medground.imaging.regions import Region
from medground.imaging.rle import Size

Mask = NDArray[np.bool_]
Kind = Literal["brightness", "contrast", "noise", "turn", "shift", "flip"]
KINDS: tuple[Kind, ...] = get_args(Kind)

USUAL: Mapping[Kind, float] = {
    "brightness": 0.1,
    "contrast": 0.25,
    "noise": 0.05,
    "turn": 5.0,
    "shift": 0.05,
    "flip": 1,
}
RANGES: Mapping[Kind, tuple[float, float]] = {
    "brightness": (-1, 1),
    "contrast": (-1, 4),
    "noise": (0, 1),
    "turn": (0, 45),
    "shift": (0, 0.5),
    "flip": (1, 1),
}
T = TypeVar("T", bound=np.generic)

MIDDLE = 0.5  # grey that a change of contrast leaves as it is
_OTHER_SIDE = {
    "left": "right",
    "lt": "rt",
    "sinistral": "dextral",
    "levoscoliosis": "dextroscoliosis",
    "levocardia": "dextrocardia",
}
_OTHER_SIDE |= {b: a for a, b in _OTHER_SIDE.items()}
_SIDED = re.compile(rf"(?<![A-Za-z])({'|'.join(_OTHER_SIDE)})(?![A-Za-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Augmentation:
    """One change.

    Attributes:
        kind: ``brightness`` adds ``amount`` to every value; ``contrast`` stretches values about .5 by ``1 + amount``;
            ``noise`` adds normal noise of that standard deviation; ``turn`` turns about the middle by so many degrees,
            the direction drawn for each case; ``shift`` moves by that share of the shorter side, the direction drawn
            for each case, by whole pixels; ``flip`` exchanges left and right.
        amount: see above; None: the usual one of the kind.
        seed: of noise and directions, which depend on it and on the case's id alone.

    Example:
        >>> Augmentation("brightness").amount, Augmentation("flip").moves
        (0.1, True)
    """

    kind: Kind
    amount: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError("there is no such augmentation", expected=", ".join(KINDS), got=self.kind)
        if self.amount is None:
            object.__setattr__(self, "amount", float(USUAL[self.kind]))
        low, high = RANGES[self.kind]
        given = float(self.amount or 0.0)
        if not (low <= given <= high) or given == 0:
            raise ConfigError(
                "the amount of an augmentation is out of range",
                where=f"{self.kind}: amount",
                expected="none: a flip has no amount" if low == high else f"{low:g} to {high:g}, and not 0",
                got=self.amount,
            )

    @property
    def moves(self) -> bool:
        """Whether regions move with the picture."""
        return self.kind in {"turn", "shift", "flip"}

    @property
    def key(self) -> str:
        """Everything that a changed picture depends on beside the picture and its case, as text."""
        return f"{self.kind} {self.amount!r} {self.seed}"

    def picture(self, image: Radiograph, case_id: str) -> Radiograph:
        """Return a changed picture of the same size, values in [0, 1]; colours are dropped."""
        changed = np.clip(self._pixels(image.pixels, case_id), 0, 1).astype(np.float32)
        changed.flags.writeable = False
        return replace(image, pixels=changed, colour=None, steps=(*image.steps, f"{self.kind} {self.amount:g}"))

    def region(self, region: Region, case_id: str) -> Region:
        """Return where a region lies in the changed picture; empty where it has left it."""
        if self.kind == "flip":
            return _flipped(region)
        if self.kind == "shift":
            return _shifted(region, *self._steps(region.frame, case_id))
        if self.kind == "turn":
            drawn = Image.fromarray(region.mask().astype(np.uint8))
            turned = drawn.rotate(self._degrees(case_id), resample=Image.Resampling.NEAREST, fillcolor=0)
            return replace(Region.from_mask(np.asarray(turned)), notes=region.notes)
        return region

    def words(self, text: str) -> str:
        """Return a finding's name, or other words about a picture, as they are true of the changed one."""
        return other_side(text) if self.kind == "flip" else text

    def _pixels(self, pixels: NDArray[np.float32], case_id: str) -> NDArray[np.floating[Any]]:
        amount = float(self.amount or 0.0)
        if self.kind == "brightness":
            return pixels + np.float32(amount)
        if self.kind == "contrast":
            return MIDDLE + (pixels - MIDDLE) * np.float32(1 + amount)
        if self.kind == "noise":
            return pixels + amount * _drawn(self.seed, case_id).standard_normal(pixels.shape)
        if self.kind == "flip":
            return pixels[:, ::-1]
        if self.kind == "shift":
            return _moved(pixels, *self._steps((pixels.shape[1], pixels.shape[0]), case_id))
        picture = Image.fromarray(pixels)
        return np.asarray(picture.rotate(self._degrees(case_id), resample=Image.Resampling.BILINEAR, fillcolor=0))

    def _degrees(self, case_id: str) -> float:
        """How far a case is turned, counter-clockwise."""
        return float(self.amount or 0.0) * (1 if _drawn(self.seed, case_id).random() < 0.5 else -1)

    def _steps(self, size: Size, case_id: str) -> tuple[int, int]:
        """How many pixels of a frame a case is moved, to the right and down."""
        angle = 2 * math.pi * _drawn(self.seed, case_id).random()
        length = float(self.amount or 0.0) * min(size)
        return round(length * math.cos(angle)), round(length * math.sin(angle))


def other_side(text: str) -> str:
    """Exchange left and right in words, letters' case kept.

    Example:
        >>> other_side("Left-sided effusion, right lung clear; upright")
        'Right-sided effusion, left lung clear; upright'
    """

    def exchanged(match: re.Match[str]) -> str:
        word = match[0]
        other = _OTHER_SIDE[word.lower()]
        return other.upper() if word.isupper() else other.capitalize() if word[0].isupper() else other

    return _SIDED.sub(exchanged, text)


def _drawn(seed: int, case_id: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed}\0{case_id}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def _moved(array: NDArray[T], right: int, down: int) -> NDArray[T]:
    """Move the pixels of an array; zeros come in."""
    height, width = array.shape
    moved = np.zeros_like(array)
    rows = slice(max(down, 0), min(height + down, height)), slice(max(-down, 0), min(height - down, height))
    columns = slice(max(right, 0), min(width + right, width)), slice(max(-right, 0), min(width - right, width))
    moved[rows[0], columns[0]] = array[rows[1], columns[1]]
    return moved


def _flipped(region: Region) -> Region:
    width, _ = region.frame
    boxes = tuple(replace(b, x0=width - b.x1, x1=width - b.x0) for b in region.boxes)
    return _joined(region, boxes, lambda drawn: drawn[:, ::-1])


def _shifted(region: Region, right: int, down: int) -> Region:
    moved = (replace(b, x0=b.x0 + right, x1=b.x1 + right, y0=b.y0 + down, y1=b.y1 + down) for b in region.boxes)
    inside = (clipped(box, region.frame) for box in moved)
    boxes = tuple(box for box in inside if box is not None)
    return _joined(region, boxes, lambda drawn: _moved(drawn, right, down))


def _joined(region: Region, boxes: tuple[Box, ...], change: Callable[[Mask], Mask]) -> Region:
    """Return moved boxes with the changed mask of what else the region holds."""
    drawn = replace(region, boxes=())
    if not drawn.polygons and not drawn.masks:
        return replace(region, boxes=boxes)
    return replace(Region.from_mask(change(drawn.mask())), boxes=boxes, notes=region.notes)
