"""Training examples in memory, and the batches drawn from them: small integers until the last moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medground.models.networks.reference.picture import SIZE

MASK: Final = 56
"""Side of a stored mask: twice the saliency grid, so that a mask can still be turned and shifted."""


_CODE: Final[Mapping[bool | None, int]] = {True: 1, False: 0, None: -1}


@dataclass(frozen=True)
class Examples:
    """Pictures with what is known about them, for a fixed list of concepts.

    Attributes:
        images: ``(N, 224, 224)`` grey values.
        labels: ``(N, C)``: 1 present, 0 absent, -1 unknown.
        rows: ``(N, C)``: row of the mask, or -1 where there is none.
        masks: ``(M, 56, 56)``: share of each cell that is covered, 0 to 255.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int8]
    rows: NDArray[np.int32]
    masks: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.images)

    def take(self, index: Sequence[int] | NDArray[np.integer]) -> Examples:
        """Return the examples of ``index``; masks are shared."""
        return Examples(self.images[index], self.labels[index], self.rows[index], self.masks)


def coverage(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return the share of each of ``56 x 56`` cells that a mask ``(224, 224)`` covers, 0 to 255."""
    factor = SIZE // MASK
    counts = mask.reshape(MASK, factor, MASK, factor).sum((1, 3), dtype=np.uint16)
    cells: NDArray[np.uint8] = (counts * 255 // factor**2).astype(np.uint8)
    return cells


def join(parts: Sequence[Examples]) -> Examples:
    """Return several sets of examples as one."""
    shifts = np.cumsum([0, *(len(part.masks) for part in parts)])
    return Examples(
        np.concatenate([part.images for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate([np.where(p.rows >= 0, p.rows + s, -1) for p, s in zip(parts, shifts, strict=False)]).astype(
            np.int32
        ),
        np.concatenate([part.masks for part in parts]),
    )


class Collector:
    """Gathers examples one by one, for an ordered list of concepts."""

    def __init__(self, concepts: Sequence[str]) -> None:
        self._concepts = tuple(concepts)
        self._images: list[NDArray[np.uint8]] = []
        self._labels: list[list[int]] = []
        self._rows: list[list[int]] = []
        self._masks: list[NDArray[np.uint8]] = []

    def add(
        self,
        image: NDArray[np.uint8],
        labels: Mapping[str, bool | None],
        masks: Mapping[str, NDArray[np.bool_]],
    ) -> None:
        """Add one picture.

        Args:
            image: ``(224, 224)`` grey values.
            labels: concept -> present; a missing one is unknown.
            masks: concept -> where it is, ``(224, 224)``.
        """
        self._images.append(image)
        self._labels.append([_CODE[labels.get(concept)] for concept in self._concepts])
        rows = []
        for concept in self._concepts:
            rows.append(len(self._masks) if concept in masks else -1)
            if concept in masks:
                self._masks.append(coverage(masks[concept]))
        self._rows.append(rows)

    def examples(self) -> Examples:
        """Return what was gathered."""
        return Examples(
            np.array(self._images, np.uint8).reshape(-1, SIZE, SIZE),
            np.array(self._labels, np.int8).reshape(-1, len(self._concepts)),
            np.array(self._rows, np.int32).reshape(-1, len(self._concepts)),
            np.array(self._masks, np.uint8).reshape(-1, MASK, MASK),
        )
