"""A moment: one item on which a model did best or worst at a question, as a picture or as what was said."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

LONGEST = 240
"""Pixels of a moment's longest side: some 5 kB."""
MOST_BYTES = 4_000_000
"""Of all moments of a page, as text; the rest is left out."""
_STOPS = np.array([[10, 4, 30], [87, 16, 110], [188, 55, 84], [249, 142, 9], [252, 250, 150]], dtype=np.float64)
"""Dark to light with lightness that grows evenly, so that a map reads in grey; as the case browser colours it."""
_OPACITY = 0.65


@dataclass(frozen=True)
class Moment:
    """One item.

    Attributes:
        question: key of the question that it is about.
        model: whose.
        best: whether it is the best; else the worst.
        title: what it is: a finding and a case, or a question.
        words: what came of it, with its figure.
        picture: a data address; empty where none may be shown.
        size: (width, height) of the picture's frame, in which outline and peak are.
        outline: the true region as an SVG path; empty where there is none.
        peak: (x, y) of the map's maximum; None where there is none.
        overlay: the map as a data address, coloured, with its transparency; empty where there is none.
        place: (x, y, width, height) of the map in the frame.
        lines: (who, what) that was said, where the moment is a conversation.
    """

    question: str
    model: str
    best: bool
    title: str
    words: str
    picture: str = ""
    size: tuple[float, float] = (1.0, 1.0)
    outline: str = ""
    peak: tuple[float, float] | None = None
    overlay: str = ""
    place: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)
    lines: tuple[tuple[str, str], ...] = ()

    @property
    def bytes(self) -> int:
        """What it takes on a page."""
        return len(self.picture) + len(self.overlay) + len(self.outline)


def thumbnail(encoded: str) -> str:
    """Return a picture in base64 as the address of a small WebP."""
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        small = image.convert("L")
        small.thumbnail((LONGEST, LONGEST))
        return _address(small, quality=70)


def coloured(encoded: str) -> str:
    """Return a map in base64 (8-bit grey, with alpha where it says nothing) as the address of an overlay."""
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        bands = np.asarray(image.convert("LA"), dtype=np.float64)
    return _address(Image.fromarray(colours(bands[..., 0] / 255, bands[..., 1] / 255)), lossless=True)


def colours(values: NDArray[np.float64], seen: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return values ``(h, w)`` in [0, 1] as RGBA, the stronger the less transparent.

    Args:
        values: of the map.
        seen: ``(h, w)`` 0 where the map says nothing.
    """
    place = values * (len(_STOPS) - 1)
    low = np.minimum(place.astype(int), len(_STOPS) - 2)
    rgb = _STOPS[low] + (place - low)[..., None] * (_STOPS[low + 1] - _STOPS[low])
    alpha = 255 * _OPACITY * values * seen
    return np.concatenate([rgb, alpha[..., None]], axis=-1).round().astype(np.uint8)


def within(moments: Sequence[Moment], most: int = MOST_BYTES) -> list[Moment]:
    """Return moments that a page has room for; a best and its worst go together."""
    pairs: dict[tuple[str, str], list[Moment]] = {}
    for moment in moments:
        pairs.setdefault((moment.model, moment.question), []).append(moment)
    kept: list[Moment] = []
    for pair in pairs.values():
        most -= sum(moment.bytes for moment in pair)
        if most >= 0:
            kept += pair
    return kept


def _address(image: Image.Image, **options: int | bool) -> str:
    out = io.BytesIO()
    image.save(out, "WEBP", method=4, **options)
    return f"data:image/webp;base64,{base64.b64encode(out.getvalue()).decode('ascii')}"
