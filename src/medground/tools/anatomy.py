"""Masks and landmarks of a case, and where they come from.

They come from the truth of a phantom, from a folder of masks that somebody made, or from a segmentation model
(:mod:`medground.tools.sources`). Names follow the tools: ``heart``, ``left_lung``, ``right_lung``, ``trachea``,
``rib_9``, ``right_hemidiaphragm``, ``left_scapula``, ``right_scapula``, ``upper_mediastinum``, ``aortic_arch``,
``descending_aorta_upper``, ``descending_aorta``, ``ascending_aorta``. Left and right are the patient's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from medground.errors import DataError

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Anatomy:
    """What is known of a case's anatomy, in pixels of its picture.

    Attributes:
        view: ``PA``, ``AP``, or None where it is not known.
        masks: name -> (height, width) booleans.
        landmarks: name -> a point (x, y), a list of points, a number, or ``content_box`` as x0, y0, x1, y1.
    """

    width: int
    height: int
    view: str | None
    masks: Mapping[str, Mask] = field(default_factory=dict)
    landmarks: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Hold every mask against the size of the picture, once read."""
        if self.view not in ("PA", "AP", None):
            raise DataError("a view is not known", expected="PA, AP or None", got=repr(self.view))

    def box(self, name: str) -> Box | None:
        """Return a mask cut to its bounding box, or None where it is missing or empty.

        Raises:
            DataError: the mask has not the size of the picture.
        """
        mask = self.masks.get(name)
        if mask is None:
            return None
        if mask.shape != (self.height, self.width):
            raise DataError(
                f"the mask {name!r} has not the size of its picture",
                expected=f"{self.width} x {self.height}",
                got=f"{mask.shape[-1]} x {mask.shape[0]}",
            )
        return Box.of(np.asarray(mask, dtype=np.bool_))

    def point(self, name: str) -> tuple[float, float] | None:
        """Return a landmark as x, y, or None where it is missing."""
        value = self.landmarks.get(name)
        if value is None:
            return None
        try:
            x, y = (float(part) for part in value)
        except (TypeError, ValueError) as error:
            raise DataError(f"the landmark {name!r} is no point", expected="x, y", got=repr(value)) from error
        return x, y


@dataclass(frozen=True)
class Box:
    """A mask cut to its bounding box: rows ``y0`` on, columns ``x0`` on, inclusive ends ``x1`` and ``y1``."""

    x0: int
    y0: int
    x1: int
    y1: int
    mask: Mask

    @classmethod
    def of(cls, mask: Mask) -> Box | None:
        """Cut a mask to its box; None where it is empty."""
        rows = np.flatnonzero(mask.any(axis=1))
        if rows.size == 0:
            return None
        y0, y1 = int(rows[0]), int(rows[-1])
        columns = np.flatnonzero(mask[y0 : y1 + 1].any(axis=0))
        x0, x1 = int(columns[0]), int(columns[-1])
        return cls(x0, y0, x1, y1, mask[y0 : y1 + 1, x0 : x1 + 1])

    @property
    def width(self) -> int:
        """Xmax - xmin of pixel indices, as the tasks count a width."""
        return self.x1 - self.x0

    @property
    def height(self) -> int:
        """Ymax - ymin of pixel indices."""
        return self.y1 - self.y0

    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows that hold a pixel, with the first and last column of each."""
        filled = np.flatnonzero(self.mask.any(axis=1))
        inside = self.mask[filled]
        first = inside.argmax(axis=1) + self.x0
        last = self.x0 + inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        return filled + self.y0, first, last


class Masks(Protocol):
    """A source of anatomy for a case, by its id."""

    def anatomy(self, case_id: str) -> Anatomy:
        """Return the masks and landmarks of a case."""


class Segmenter(Protocol):
    """A model that finds anatomy in a picture."""

    def masks(self, radiograph: Any) -> Mapping[str, Mask]:
        """Return anatomy name -> mask on the picture's own pixels."""
