"""What every decoder hands on: displayed values with their range and history."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.errors import ImageError

Size = tuple[int, int]


class Displayed(NamedTuple):
    """A decoded picture.

    Attributes:
        pixels: ``(height, width)`` float32 in [0, 1].
        value_range: the values that were mapped to 0 and 1.
        steps: what was done, in words.
    """

    pixels: NDArray[np.float32]
    value_range: tuple[float, float]
    steps: tuple[str, ...]


def checked_frame(size: Size, max_pixels: int) -> Size:
    """Return a picture's size if it is one to decode.

    Raises:
        ImageError: a side of zero, or more pixels than allowed (a decompression bomb).
    """
    width, height = size
    if width < 1 or height < 1:
        raise ImageError(
            "a picture has no pixels", expected="a width and height of 1 or more", got=f"{width} x {height}"
        )
    if width * height > max_pixels:
        raise ImageError(
            "a picture is too large, which can be an attack (a decompression bomb)",
            expected=f"at most {max_pixels} pixels",
            got=f"{width} x {height}",
        )
    return size
