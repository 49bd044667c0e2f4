"""Single lesions of a finding, from the region that a dataset gives."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import label

from medground.benchmarks.heal_medvqa.masks import Mask
from medground.benchmarks.heal_medvqa.relation import Lesion
from medground.imaging.regions import Region
from medground.imaging.rle import Size

_SPECK = 0.02  # pieces below this share of the largest one are crumbs of an outline, no lesions


def lesions_of(finding: str, region: Region, size: Size) -> list[Lesion]:
    """Return each box, and each connected piece of the masks, as a lesion of its own.

    Args:
        finding: its name.
        region: in its own frame.
        size: ``(width, height)`` of the anatomy masks that lesions are held against.
    """
    lesions = [Lesion(finding, box.corners, region.frame) for box in region.boxes]
    if region.polygons or region.masks:
        drawn = Region(region.frame, polygons=region.polygons, masks=region.masks)
        lesions += [Lesion(finding, mask=piece) for piece in pieces(drawn.mask_at(size, resize="centre"))]
    return lesions


def pieces(mask: Mask) -> list[Mask]:
    """Return the connected pieces of a mask (diagonal neighbours count), crumbs left out."""
    numbers, count = label(mask, np.ones((3, 3), dtype=bool))
    areas = np.bincount(numbers.ravel())[1 : count + 1]
    return [numbers == n + 1 for n, area in enumerate(areas) if area >= _SPECK * areas.max()]


def touching(mask: Mask, region: Mask) -> Mask:
    """Return the pieces of a mask that share pixels with a region: a lesion of the other lung is none of this one."""
    numbers, _ = label(mask, np.ones((3, 3), dtype=bool))
    here = np.unique(numbers[region & mask])
    return np.isin(numbers, here[here > 0])
