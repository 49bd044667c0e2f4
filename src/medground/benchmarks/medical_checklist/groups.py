"""How items are grouped in tables: bins of caption length and of similarity, and terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

BINS = 9


def length_edges(n_tokens: ArrayLike, bins: int = BINS) -> NDArray[np.float64]:
    """Return the inner edges of bins with about equally many captions: quantiles k / bins, linear."""
    held = np.asarray(n_tokens, dtype=np.float64)
    return np.quantile(held, [k / bins for k in range(1, bins)]) if len(held) else np.zeros(bins - 1)


def length_bins(n_tokens: ArrayLike, edges: ArrayLike) -> NDArray[np.intp]:
    """Return the bin of each caption; one on an edge goes into the lower bin."""
    return np.searchsorted(np.asarray(edges, dtype=np.float64), np.asarray(n_tokens, dtype=np.float64), side="left")


def similarity_bins(similarity: ArrayLike, bins: int = BINS) -> NDArray[np.intp]:
    """Return the bin of each similarity: equal bins on [0, 1], closed on the left, the last on both sides.

    Negative similarities count as 0.
    """
    held = np.clip(np.asarray(similarity, dtype=np.float64), 0.0, 1.0)
    inner = np.linspace(0, 1, bins + 1)[1:-1]
    return np.searchsorted(inner, held, side="right")


class TermRow(NamedTuple):
    """How one term fares.

    Attributes:
        term: ignoring case.
        n_positive: items in which it is the true term.
        hits: of these, those that the model gets right.
        n_replacement: items in which it is the false term.
        wins: of these, those in which the model prefers it.
    """

    term: str
    n_positive: int
    hits: float
    n_replacement: int
    wins: float

    @property
    def preference(self) -> float:
        """Share of all its appearances in which the model prefers it."""
        return (self.hits + self.wins) / (self.n_positive + self.n_replacement)


def by_term(positives: Sequence[str], negatives: Sequence[str], credit: ArrayLike) -> list[TermRow]:
    """Return every term with its hits and wins; summed over terms, wins equal the number of items.

    Args:
        positives: (N,) true terms.
        negatives: (N,) false terms.
        credit: (N,) 1, 0, one half; NaN is left out.
    """
    held: dict[str, list[float]] = {}
    for a, b, value in zip(positives, negatives, np.asarray(credit, dtype=np.float64), strict=True):
        if np.isnan(value):
            continue
        first, second = held.setdefault(a, [0, 0, 0, 0]), held.setdefault(b, [0, 0, 0, 0])
        first[0] += 1
        first[1] += float(value)
        second[2] += 1
        second[3] += 1 - float(value)
    return [TermRow(t, int(v[0]), v[1], int(v[2]), v[3]) for t, v in sorted(held.items())]
