"""Partial information decomposition (BROJA, as in Liang et al. 2023): synergy between clusters of images and texts.

Each modality is made discrete: unit length, two principal components, k-means. Synergy is what image and text clusters
tell together about the model's answer beyond what any distribution with the same pairwise marginals would.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from medground.explainers.base import Pool, Scores, Table
from medground.metrics.information import decompose


class Pid:
    """Synergy of image and text clusters about the answer, in nats.

    Args:
        clusters: a modality. The published code takes 20; with 50 examples that leaves one sample a cell, and synergy
            measures only over-fitting.
        pairs: ``all`` counts every image with every text of the pool, ``matched`` the examples alone, as published.
        rounded: round to two decimals, as the published code does.
        seed: of the clustering.
    """

    name: ClassVar[str] = "pid"

    def __init__(
        self,
        clusters: int = 6,
        pairs: Literal["all", "matched"] = "all",
        rounded: bool = False,
        seed: int = 0,
    ) -> None:
        self.clusters, self.pairs, self.rounded, self.seed = clusters, pairs, rounded, seed

    def calls(self, words: int, cells: int, pool: int) -> int:  # noqa: ARG002  # the contract of all explainers
        """See :class:`medground.explainers.base.Global`."""
        return 0

    def score(self, pool: Pool) -> Scores:
        """Return the pool's synergy, and one value an example with that mean and the synergy's spread (jackknife)."""
        images = cluster(pool.images.reshape(len(pool), -1).astype(np.float64), self.clusters, self.seed)
        texts = cluster(_word_counts(pool.questions), self.clusters, self.seed)
        answers = pool.logits.argmax(2)
        n = len(pool)
        counted = np.ones((n, n)) if self.pairs == "all" else np.eye(n)
        whole = decompose(_histogram(images, texts, answers, counted))
        each = np.full(n, np.nan)
        if n > 2:
            for i in range(n):
                without = counted.copy()
                without[i], without[:, i] = 0, 0
                each[i] = -(n - 1) * decompose(_histogram(images, texts, answers, without), gap=1e-5).synergy
            each += whole.synergy - each.mean()
        parts = [whole.redundancy, whole.unique1, whole.unique2, whole.synergy]
        names = ("redundancy", "unique_image", "unique_text", "synergy")
        shown = {name: round(part, 2) if self.rounded else part for name, part in zip(names, parts, strict=True)}
        return Scores(each=each, overall=shown["synergy"], extras=shown)


def cluster(features: Table, k: int, seed: int, starts: int = 10) -> NDArray[np.int64]:
    """Return one of at most k labels a row: unit length, two principal components, the best of ten k-means."""
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    unit = np.divide(features, lengths, out=np.zeros_like(features), where=lengths > 0)
    left, scale, _ = np.linalg.svd(unit - unit.mean(0), full_matrices=False)
    points: Table = (left[:, :2] * scale[:2]).round(12)
    distinct, same = np.unique(points, axis=0, return_inverse=True)
    if len(distinct) <= k:
        return same.ravel().astype(np.int64)
    rng = np.random.default_rng(seed)
    runs = [_lloyd(points, distinct[rng.permutation(len(distinct))[:k]]) for _ in range(starts)]
    return min(runs, key=lambda run: run[0])[1]


def _lloyd(points: Table, centres: Table, rounds: int = 100) -> tuple[float, NDArray[np.int64]]:
    """Return the spread within clusters and the labels; a centre that loses all points stays where it is."""
    labels = np.full(len(points), -1)
    for _ in range(rounds):
        apart = ((points[:, None] - centres) ** 2).sum(-1)
        before, labels = labels, apart.argmin(1)
        if (labels == before).all():
            break
        for c in np.unique(labels):
            centres[c] = points[labels == c].mean(0)
    return float(apart.min(1).sum()), labels


def _word_counts(texts: list[str]) -> Table:
    words = sorted({word for text in texts for word in text.split()})
    return np.array([[text.split().count(word) for word in words] for text in texts], np.float64)


def _histogram(
    images: NDArray[np.int64], texts: NDArray[np.int64], answers: NDArray[np.integer], counted: Table
) -> Table:
    """Return ``(image clusters, text clusters, answers that occur)`` counts."""
    distinct, position = np.unique(answers, return_inverse=True)
    table = np.zeros((images.max() + 1, texts.max() + 1, len(distinct)))
    i, j = np.nonzero(counted)
    np.add.at(table, (images[i], texts[j], position.reshape(answers.shape)[i, j]), counted[i, j])
    return table
