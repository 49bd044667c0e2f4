"""One visual perturbation: the queried region of a picture, replaced by that of a donor.

Grey values of the donor are brought to those of the whole target picture by default. Matching inside the region would
give a clean lung the brightness of the lesion that it replaces, so that option is for comparison alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from medground.imaging.cloning import cloned
from medground.imaging.pasting import (
    Feather,
    Mask,
    Matching,
    Support,
    alpha_of,
    blended,
    box_of,
    matched,
    moments,
    residue,
    scaled_donor,
    support_of,
)

Blend = Literal["feather", "poisson"]


@dataclass(frozen=True)
class PasteRule:
    """Every choice of a paste; part of the record of a run.

    Attributes:
        blend: ``feather``: a soft edge; ``poisson``: cloning, where the edge is the target's.
        feather: ``inward`` changes nothing outside the region; ``both_sides`` does.
        sigma: of the feather, as a share of the picture's width (0.012 is 2.7 pixels of 224).
        support: whose mask is pasted.
        matching: which grey values are matched; see :mod:`medground.imaging.pasting`.
    """

    blend: Blend = "feather"
    feather: Feather = "inward"
    sigma: float = 0.012
    support: Support = "target"
    matching: Matching = "picture"

    def in_words(self) -> str:
        """Return the rule in one line, for records and reports."""
        edge = (
            "Poisson cloning" if self.blend == "poisson" else f"{self.feather} feather of {100 * self.sigma:g} % width"
        )
        grey = {"picture": "matched to the whole picture", "region": "matched to the region", "none": "not matched"}
        return f"{edge}, support {self.support}, grey values {grey[self.matching]}"


@dataclass(frozen=True, eq=False)
class Pasted:
    """A perturbed picture.

    Attributes:
        pixels: ``(height, width)`` float32 in [0, 1].
        residue_hard: share of the lesion outside the paste; None without a lesion of known place.
        residue_soft: mean weight of the target over the lesion.
        clipped: share of pixels that left [0, 1] and were cut.
    """

    pixels: NDArray[np.float32]
    residue_hard: float | None
    residue_soft: float | None
    clipped: float


def paste(
    target: NDArray[Any],
    target_mask: Mask,
    donor: NDArray[Any],
    donor_mask: Mask,
    rule: PasteRule,
    lesion: Mask | None = None,
) -> Pasted:
    """Return the target with the donor's region in the place of its own.

    Args:
        target: ``(height, width)`` in [0, 1].
        target_mask: region of the target.
        donor: ``(h, w)`` in [0, 1], any size.
        donor_mask: region of the donor.
        rule: how it is done.
        lesion: where the queried finding is in the target, for what the paste leaves of it.

    Raises:
        RegionError: a mask without a pixel, or of another size than its picture.
    """
    box = box_of(target_mask)
    block, placed = scaled_donor(donor, donor_mask, box)
    support = support_of(target_mask, placed, box, rule.support)
    if rule.matching == "picture":
        block = matched(block, moments(donor), moments(target))
    elif rule.matching == "region":
        here = target_mask[box[1] : box[3], box[0] : box[2]]
        block = matched(block, moments(block[here]), moments(target[target_mask]))
    if rule.blend == "poisson":
        alpha = alpha_of(support, box, 0.0)
        image = cloned(target, block, support, box)
    else:
        alpha = alpha_of(support, box, rule.sigma * target.shape[1], rule.feather)
        image = blended(target, block, alpha, box)
    left = residue(lesion, support, alpha) if lesion is not None else None
    outside = float(np.count_nonzero((image < 0) | (image > 1)) / image.size)
    pixels = np.clip(image, 0.0, 1.0).astype(np.float32)
    return Pasted(pixels, left and left[0], left and left[1], outside)
