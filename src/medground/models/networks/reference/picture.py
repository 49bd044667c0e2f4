"""What the network sees of a radiograph: squashed to 224 by 224, 256 grey levels. The same in training and use."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from medground.imaging.geometry import resize_pixels

SIZE = 224


def picture(pixels: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return ``(224, 224)`` grey values of a radiograph ``(h, w)`` in [0, 1]; the aspect is not kept."""
    small = pixels if pixels.shape == (SIZE, SIZE) else resize_pixels(pixels, (SIZE, SIZE), "bilinear")
    return np.rint(np.clip(small, 0, 1) * 255).astype(np.uint8)
