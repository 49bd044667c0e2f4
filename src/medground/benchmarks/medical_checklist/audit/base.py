"""Blind scorers: they see two captions, never a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

TIE = 1e-9
Floats = NDArray[np.float64]


class Pair(NamedTuple):
    """One item as a blind scorer sees it, and what it is grouped by.

    Attributes:
        item_id: distinct.
        cluster: paper, image or scene pair; items of one cluster are never split between fitting and scoring.
        category: semantic type.
        term_positive: the true term as written.
        term_negative: the false one.
        positive: the true caption.
        negative: the false one.
    """

    item_id: str
    cluster: str
    category: str
    term_positive: str
    term_negative: str
    positive: str
    negative: str

    @property
    def turned(self) -> Pair:
        """The same item with the captions exchanged."""
        return self._replace(
            term_positive=self.term_negative,
            term_negative=self.term_positive,
            positive=self.negative,
            negative=self.positive,
        )


class Caption(NamedTuple):
    """One true caption of a reference, with its paper."""

    cluster: str
    text: str


class BlindScorer(Protocol):
    """Scores both captions of items; the higher score is the scorer's choice."""

    name: str

    def scores(self, pairs: Sequence[Pair]) -> Floats:
        """Return (N, 2): the score of the true and of the false caption."""
        ...


def hits(scores: Floats) -> Floats:
    """Return 1 where the true caption scores higher, 0 where lower, one half where equal to 1e-9; (N,).

    Args:
        scores: (N, 2).
    """
    gap = scores[:, 0] - scores[:, 1]
    return np.where(np.abs(gap) < TIE, 0.5, gap > 0)


def disjoint(reference: Iterable[Caption], pairs: Iterable[Pair]) -> list[Caption]:
    """Return the captions of a reference that share no paper with an item."""
    held = {p.cluster for p in pairs}
    return [c for c in reference if c.cluster not in held]
