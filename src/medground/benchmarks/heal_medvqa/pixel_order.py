"""Which way run lengths read a mask: told from where anatomies must lie and how they hang together.

The released files hold flat pairs (0-based start, length) and do not say whether pixels run along rows or down columns;
public loaders disagree. Read in the wrong order a mask of another shape falls apart, and one of a square picture is
mirrored at its diagonal: a right lower lung then lies at the upper left of the patient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from medground.errors import RegionError
from medground.imaging import rle
from medground.imaging.rle import Order

_ENOUGH = 2.0  # lead of one order over the other, in masks that speak for it


@dataclass(frozen=True)
class CodedMask:
    """One mask as it stands in a file.

    Attributes:
        anatomy: its name.
        pairs: flat (start, length) pairs; empty or None: no mask.
        height: of the mask.
        width: of the mask.
    """

    anatomy: str
    pairs: Sequence[int] | None
    height: int | None
    width: int | None

    @property
    def is_empty(self) -> bool:
        """Whether there is no pixel to read."""
        return not self.pairs or not self.height or not self.width

    def read(self, order: Order) -> NDArray[np.bool_]:
        """Return the mask ``(height, width)``.

        Raises:
            RegionError: it is empty, or malformed.
        """
        if self.is_empty:
            raise RegionError("a mask is empty or missing", where=self.anatomy, expected="pairs, height and width")
        size = (int(self.width or 0), int(self.height or 0))
        return rle.mask_from_counts(rle.counts_from_pairs(list(self.pairs or ()), size, order), size)


def detected_order(masks: Iterable[CodedMask], *, limit: int = 200) -> Order:
    """Return the pixel order that the masks speak for.

    Each mask that tells the two apart has one vote: for the order under which it lies on the expected side and height
    of the patient, and hangs together better.

    Args:
        masks: of named anatomies; empty ones are passed over.
        limit: masks looked at.

    Raises:
        RegionError: the votes do not decide; name the order then.
    """
    lead, seen = 0.0, 0
    for mask in masks:
        if mask.is_empty:
            continue
        lead += _plausible(mask.anatomy, mask.read("row")) - _plausible(mask.anatomy, mask.read("column"))
        seen += 1
        if seen >= limit:
            break
    if abs(lead) < min(_ENOUGH, 0.5 * max(seen, 1)):
        raise RegionError(
            "the pixel order of run lengths cannot be told from their masks",
            expected="right or left, upper or lower anatomies, or pictures that are not square",
            got=f"{seen} masks, lead {lead:+.1f}",
            fix="say which: order: row, or order: column",
        )
    return "row" if lead > 0 else "column"


def _plausible(anatomy: str, mask: NDArray[np.bool_]) -> float:
    """Return how well a mask fits its name, 0 to 2: half a point a word of place, one for being in one piece."""
    rows, columns = np.nonzero(mask)
    x, y = columns.mean() / mask.shape[1], rows.mean() / mask.shape[0]
    words = anatomy.lower().split()
    score = 0.0
    # The patient's right is on the left of the picture.
    score += 0.5 * (("right" in words and x < 0.5) or ("left" in words and x > 0.5))
    score += 0.5 * (("upper" in words and y < 0.5) or ("lower" in words and y > 0.5))
    pieces = np.bincount(label(mask)[0].ravel())[1:]
    return score + float(pieces.max() / pieces.sum())
