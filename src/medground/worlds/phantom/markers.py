"""What is not the patient: the side letter, initials, the words on portable pictures."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from medground.worlds.phantom.streams import chance, uniform


class Marker(NamedTuple):
    """Words on the picture: text, left and top in image widths, height in image widths, grey value."""

    words: tuple[tuple[str, float, float, float, int], ...]


def draw_marker(rng: np.random.Generator, view: str) -> Marker:
    """Draw the markers: an L beside the patient's left shoulder, and words on most portable pictures.

    Args:
        rng: the markers' stream.
        view: PA or AP; an empty one for words that do not follow it.
    """
    height = uniform(rng, 0.032, 0.050)
    grey = int(uniform(rng, 205, 255))
    words = [("L", uniform(rng, 0.86, 0.93), uniform(rng, 0.02, 0.10), height, grey)]
    if chance(rng, 0.4):
        initials = "".join(chr(ord("A") + int(rng.integers(26))) for _ in range(2))
        words.append((initials, words[0][1], words[0][2] + 1.15 * height, 0.6 * height, grey))
    if view == "AP" and chance(rng, 0.7):
        x, y = uniform(rng, 0.02, 0.10), uniform(rng, 0.02, 0.08)
        words.append(("AP", x + 0.03, y, 0.55 * height, grey))
        words.append(("PORTABLE", x, y + 0.05, 0.55 * height, grey))
    return Marker(tuple(words))


@functools.lru_cache(maxsize=32)
def _font(pixels: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(pixels)


def stamp(pixels: NDArray[np.uint8], marker: Marker) -> NDArray[np.uint8]:
    """Return the picture with its markers; ``pixels`` is ``(size, size)``."""
    image = Image.fromarray(pixels)
    pen = ImageDraw.Draw(image)
    size = pixels.shape[0]
    for text, x, y, height, grey in marker.words:
        pen.text((x * size, y * size), text, fill=grey, font=_font(max(round(height * size), 6)))
    return np.asarray(image)
