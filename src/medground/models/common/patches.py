"""From a mask on a picture to highlighted tokens: exact areas of the patches that the vision tower sees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.errors import RegionError

Plane = NDArray[np.float64]


class Coverage(NamedTuple):
    """How a mask lies on the patches.

    Attributes:
        share: ``(rows, columns)``: share of each patch that the mask covers, in [0, 1].
        visible: share of the mask that the crop leaves in sight, 0 to 1; 0 is "mask cropped away", NaN an empty one.
    """

    share: Plane
    visible: float

    def marked(self, threshold: float = 0.5, *, inclusive: bool = True) -> NDArray[np.bool_]:
        """Return the patches that count as highlighted: at least (or more than) ``threshold`` of them covered."""
        return self.share >= threshold if inclusive else self.share > threshold


def patch_coverage(mask: NDArray[np.bool_], size: int, patch: int, *, squash: bool = False) -> Coverage:
    """Return the share of every patch that a mask covers; no pixel is resampled.

    The picture is resized so that its shorter side is ``size`` (the longer one ``int(size * long / short)``) and its
    middle is cut out, as CLIP's processor does; each patch is taken back to the mask's own pixels.

    Args:
        mask: ``(height, width)`` of the original picture.
        size: side of the tower's input.
        patch: side of a patch.
        squash: the picture is resized to a square instead, nothing is cut off.

    Raises:
        RegionError: the mask is no plane, or patches do not divide the input.
    """
    if mask.ndim != 2 or 0 in mask.shape or size < 1 or patch < 1 or size % patch:
        raise RegionError(
            "a mask cannot be laid on patches",
            expected="a mask (height, width), and a size that patches divide",
            got=f"mask {mask.shape}, size {size}, patch {patch}",
        )
    height, width = mask.shape
    if squash:
        resized = (size, size)
    else:
        short = min(height, width)
        resized = (int(size * height / short), int(size * width / short))
        resized = (size, resized[1]) if height <= width else (resized[0], size)
    offset = [(whole - size) // 2 for whole in resized]
    edges = [
        np.clip((offset[axis] + np.arange(0, size + 1, patch)) * mask.shape[axis] / resized[axis], 0, mask.shape[axis])
        for axis in (0, 1)
    ]
    area = _integral(mask.astype(np.float64), edges[0], edges[1])
    cells = np.outer(np.diff(edges[0]), np.diff(edges[1]))
    total = float(mask.sum())
    return Coverage(area / cells, float(area.sum()) / total if total else float("nan"))


def _integral(plane: Plane, rows: Plane, columns: Plane) -> Plane:
    """Return the integral of a piecewise constant plane over the cells of a grid with fractional edges."""
    whole: Plane = overlaps(rows, plane.shape[0]) @ plane @ overlaps(columns, plane.shape[1]).T
    return whole


def overlaps(edges: Plane, count: int) -> Plane:
    """Return the length of every pixel inside every cell, ``(cells, count)``."""
    low, high = edges[:-1, None], edges[1:, None]
    pixels = np.arange(count)
    lengths: Plane = np.clip(np.minimum(high, pixels + 1) - np.maximum(low, pixels), 0, None)
    return lengths
