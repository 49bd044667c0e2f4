"""Where anatomies are: the sources of masks that questions and pastes rest on.

A source gives every anatomy of one case as a boolean mask and says in one sentence what it is, which is printed beside
every result: masks of experts, of a network, or halves and thirds of the picture, which know no anatomy at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from medground.imaging.picking import picked
from medground.imaging.rle import Size, checked_size

Mask = NDArray[np.bool_]

LUNG_THIRDS = tuple(f"{side} {third} lung" for side in ("right", "left") for third in ("upper", "mid", "lower"))
ANATOMIES = (*LUNG_THIRDS, "heart", "aorta")
"""The eight anatomies of the paper; sides are the patient's."""
LUNGS = ("right lung", "left lung")
WHOLE: Mapping[str, str] = {third: f"{third.split()[0]} lung" for third in LUNG_THIRDS}
"""Third of a lung -> the lung that holds it."""

CXAS: Mapping[str, tuple[str, ...]] = {
    "right upper lung": ("right upper zone lung",),
    "right mid lung": ("right mid zone lung",),
    "right lower lung": ("right lung base",),
    "left upper lung": ("left upper zone lung",),
    "left mid lung": ("left mid zone lung",),
    "left lower lung": ("left lung base",),
    "right lung": ("right lung",),
    "left lung": ("left lung",),
    "heart": ("heart",),
    "aorta": ("ascending aorta", "aortic arch", "descending aorta"),
}
"""Our anatomies from the labels of CXAS (PAXRay++); its lung bases stand for the lower thirds."""


class MaskSource(Protocol):
    """Gives the anatomies of a case."""

    @property
    def statement(self) -> str:
        """What the masks are, in one sentence."""

    def masks(self, case_id: str, size: Size) -> Mapping[str, Mask]:
        """Return anatomy -> mask ``(height, width)``, all of one size; an empty mapping where there are none.

        Args:
            case_id: of the case.
            size: ``(width, height)`` of its picture, for sources that have no size of their own.

        Raises:
            DataError: a mask cannot be read.
        """

    def fingerprint(self) -> str:
        """A hash of what the masks depend on."""


@dataclass(frozen=True)
class Stripes:
    """Halves and thirds of the picture in the place of lungs: a stand-in that knows no anatomy, and says so.

    Attributes:
        thirds: six parts (and the two halves), or the two halves alone.
    """

    thirds: bool = True

    @property
    def statement(self) -> str:
        """What the masks are."""
        parts = "halves and thirds" if self.thirds else "halves"
        return f"anatomies are {parts} of the picture: a crude stand-in, no segmentation; regions are not lungs"

    def masks(self, case_id: str, size: Size) -> Mapping[str, Mask]:
        """Return halves of the picture, the patient's right on the left, and their thirds."""
        del case_id
        width, height = checked_size(size)
        columns, rows = np.arange(width), np.arange(height)
        masks: dict[str, Mask] = {}
        for side, across in (("right", columns < width // 2), ("left", columns >= width - width // 2)):
            if self.thirds:
                for number, third in enumerate(("upper", "mid", "lower")):
                    masks[f"{side} {third} lung"] = np.outer(3 * rows // height == number, across)
            masks[f"{side} lung"] = np.outer(np.ones(height, dtype=bool), across)
        return masks

    def fingerprint(self) -> str:
        """Return what tells it from other sources."""
        return f"stripes-{'thirds' if self.thirds else 'halves'}-1"


def renamed(masks: Mapping[str, Mask], names: Mapping[str, Sequence[str]] | None) -> dict[str, Mask]:
    """Return our anatomies from a source's own labels: the union of those listed; without a list, names as they are.

    An anatomy none of whose labels is there is left out.
    """
    if names is None:
        return dict(masks)
    by_name = {}
    for anatomy, labels in names.items():
        parts = [masks[label] for label in labels if label in masks]
        if parts:
            by_name[anatomy] = np.logical_or.reduce(parts)
    return by_name


def with_lungs(masks: Mapping[str, Mask]) -> dict[str, Mask]:
    """Return masks with the whole lungs, made from their thirds where the source has none."""
    complete = dict(masks)
    for lung in LUNGS:
        thirds = [masks[third] for third, whole in WHOLE.items() if whole == lung and third in masks]
        if lung not in complete and thirds:
            complete[lung] = np.logical_or.reduce(thirds)
    return complete


def resized(mask: Mask, size: Size) -> Mask:
    """Return a mask brought to ``(width, height)`` by nearest pixels."""
    height, width = mask.shape
    if (width, height) == tuple(size):
        return mask
    return mask[np.ix_(picked(height, size[1], "centre"), picked(width, size[0], "centre"))]
