"""MultiSHAP (Wang et al. 2025): the Shapley interaction of every cell with every word, in one answer's logit.

The index is an integral over t of the interaction in coalitions that hold each player with probability t, so shared
coalitions estimate all pairs at once: at a few nodes t, K image masks are crossed with M text masks. Double centring
of the K x M values removes exactly what image or text say alone; two ridge regressions, one a modality, give the
interactions. 25 cells and 12 words take some 1,300 calls where the published code's pairwise sampler takes 150,000.
A sum of absolute values adds noise up; ``threshold`` takes what stays within some standard errors of zero for noise.
That is ours, not the paper's, and off by default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import comb
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from medground.errors import ConfigError
from medground.explainers.base import Attribution, Fill, Pool, Table, hide_cells, hide_words
from medground.metrics.interactions import shapley_interactions

Aggregate = Literal["sum_abs", "mean_abs", "mean", "sum"]
Sampler = Literal["crossed", "pairs", "pairs_shared_ids"]
Values = Callable[[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]], Table]
"""Image masks, text masks and pairs of positions in them to the value of each pair."""

_SHRINK = 0.2


class MultiShap:
    """Shapley interactions of cells with words; a map sums them over the other modality.

    Args:
        budget: model calls of the crossed sampler.
        nodes: values of t (Gauss-Legendre).
        fill: colour of absent cells; absent words are deleted.
        aggregate: over the other modality. The published code takes the plain mean, in which opposite signs cancel.
        threshold: standard errors below which a crossed estimate is zero, and by which larger ones are shrunk
            (non-negative garrote; ours); 0, as the paper defines the index: estimates as they are.
        sampler: ``crossed`` as above; ``pairs`` draws coalitions for every pair on its own, as the paper does;
            ``pairs_shared_ids`` is the published code's slip: a drawn number switches on a cell and a word alike.
        draws: coalitions a pair of the pairwise samplers, spread over sizes (published: 128).
        seed: of the masks.
    """

    name: ClassVar[str] = "multishap"

    def __init__(
        self,
        budget: int = 1275,
        nodes: int = 3,
        fill: Fill = "grey",
        aggregate: Aggregate = "sum_abs",
        threshold: float = 0.0,
        sampler: Sampler = "crossed",
        draws: int = 128,
        seed: int = 0,
    ) -> None:
        if nodes < 1 or budget < 16 * nodes or draws < 1:
            raise ConfigError(
                "multishap needs at least one node, 16 calls a node and one draw", got=(nodes, budget, draws)
            )
        self.budget, self.nodes, self.fill, self.aggregate = budget, nodes, fill, aggregate
        self.threshold = threshold
        self.sampler, self.draws, self.seed = sampler, draws, seed

    def calls(self, words: int, cells: int, pool: int) -> int:  # noqa: ARG002  # the contract of all explainers
        """See :class:`medground.explainers.base.Local`."""
        if self.sampler == "crossed":
            return self.budget
        return 4 * cells * words * max(self.draws, cells + words - 1)

    def explain(self, pool: Pool, index: int) -> Attribution:
        """See :class:`medground.explainers.base.Local`."""
        rng, target, spent = pool.rng(index, self.seed, self.name), pool.predicted(index), pool.asker.calls
        value, cells, words = self._values(pool, index, target), pool.grid**2, len(pool.examples[index].words)
        noise = 0.0
        if self.sampler == "crossed":
            rough, noise = crossed(value, cells, words, self.budget, self.nodes, rng)
            interactions = garrote(rough, self.threshold * noise)
        else:
            interactions = pairwise(value, cells, words, self.draws, rng, shared_ids=self.sampler == "pairs_shared_ids")
        return Attribution(
            image=aggregated(interactions, 1, self.aggregate).reshape(pool.grid, pool.grid),
            text=aggregated(interactions, 0, self.aggregate),
            target=target,
            calls=pool.asker.calls - spent,
            extras={
                "interactions": interactions,
                "positive_share": float((interactions > 0).mean()),
                "mean_abs": float(np.abs(interactions).mean()),
                "standard_error": noise,
            },
        )

    def exact(self, pool: Pool, index: int, cells: Sequence[Sequence[int]], words: Sequence[Sequence[int]]) -> Table:
        """Return the exact index of merged players: groups of cells with groups of words, 14 groups at most.

        Args:
            pool: see :class:`medground.explainers.base.Local`.
            index: the example.
            cells: positions of cells, a group each; together they are the image.
            words: positions of words, a group each.

        Returns:
            ``(groups of cells, groups of words)``.
        """
        n, m = len(cells), len(words)
        value = self._values(pool, index, pool.predicted(index))
        shown = _members(cells, pool.grid**2, n)
        spoken = _members(words, len(pool.examples[index].words), m)
        every = np.stack(np.divmod(np.arange(1 << (n + m)), 1 << n)[::-1], 1)
        return shapley_interactions(value(shown, spoken, every))[:n, n:]

    def _values(self, pool: Pool, index: int, target: int) -> Values:
        example = pool.examples[index]

        def value(shown: NDArray[np.bool_], spoken: NDArray[np.bool_], pairs: NDArray[np.int64]) -> Table:
            images, texts = hide_cells(example.image, shown, self.fill), hide_words(example.question, spoken)
            return pool.asker.pairs(images, texts, pairs)[:, target]

        return value


def aggregated(interactions: Table, axis: int, how: Aggregate) -> Table:
    """Return interactions brought together over one axis."""
    size = np.abs(interactions) if how.endswith("abs") else interactions
    joined: Table = size.sum(axis) if how.startswith("sum") else size.mean(axis)
    return joined


def garrote(estimates: Table, level: float) -> Table:
    """Return estimates with those below a level set to zero and the others shrunk: x max(0, 1 - level^2 / x^2)."""
    kept = np.abs(estimates) > level
    shrunk = level**2 / np.where(kept, estimates, 1.0)
    return np.where(kept, estimates - shrunk, 0.0)


def crossed(
    value: Values, cells: int, words: int, budget: int, nodes: int, rng: np.random.Generator
) -> tuple[Table, float]:
    """Estimate all interactions of cells with words from crossed masks; the error falls as the budget grows.

    Args:
        value: the game.
        cells: players of the image.
        words: players of the text.
        budget: evaluations in all.
        nodes: values of t.
        rng: source of the masks.

    Returns:
        ``(cells, words)``, and their standard error, from the two halves of the image masks.
    """
    points, weights = np.polynomial.legendre.leggauss(nodes)
    a_node = budget // nodes
    k = int(np.clip(cells, np.sqrt(a_node), a_node // 4))
    m = a_node // k
    every = np.stack(np.divmod(np.arange(k * m), m), 1)
    parts = (slice(None), slice(k // 2), slice(k // 2, None))
    totals = np.zeros((3, cells, words))
    for t, weight in zip((points + 1) / 2, weights / 2, strict=True):
        shown, spoken = masks(cells, k, t, rng), masks(words, m, t, rng)
        table = value(shown, spoken, every).reshape(k, m)
        totals += [weight * _interactions(table[rows], shown[rows], spoken, t) for rows in parts]
    return totals[0], float(np.sqrt(((totals[1] - totals[2]) ** 2).mean()) / 2)


def _interactions(table: Table, shown: NDArray[np.bool_], spoken: NDArray[np.bool_], t: float) -> Table:
    """Return the interactions that a crossed table of values shows; what one modality says alone is centred away."""
    centred = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
    return np.asarray(_inverse(shown, t) @ centred @ _inverse(spoken, t).T, np.float64)


def masks(n: int, k: int, t: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return k masks of n players, each present with probability t, dealt so that all are present equally often.

    Sizes are the k-quantiles of the binomial distribution; players that were dealt least come first.
    """
    steps = np.cumsum([comb(n, s) * t**s * (1 - t) ** (n - s) for s in range(n + 1)])
    sizes = np.searchsorted(steps, (np.arange(k) + rng.random()) / k).clip(0, n)
    on, dealt = np.zeros((k, n), bool), np.zeros(n)
    for row, size in zip(on, rng.permutation(sizes), strict=True):
        chosen = np.lexsort((rng.random(n), dealt))[:size]
        row[chosen] = True
        dealt[chosen] += 1
    return on


def _inverse(on: NDArray[np.bool_], t: float) -> Table:
    """Return the ridge regression on centred masks as a matrix ``(players, masks)``.

    The penalty is that of a prior worth a fifth of a mask a player; it fades as masks grow in number.
    """
    centred = on - on.mean(0)
    gram = centred.T @ centred + _SHRINK * on.shape[1] * t * (1 - t) * np.eye(on.shape[1])
    return np.asarray(np.linalg.solve(gram, centred.T), np.float64)


def pairwise(
    value: Values, cells: int, words: int, draws: int, rng: np.random.Generator, *, shared_ids: bool = False
) -> Table:
    """Estimate every pair on its own, as the paper does: unbiased, and dear.

    Coalitions of the other players, as many of each size, and the mean of the four-term difference; equal coalitions
    are evaluated once.
    """
    p = cells + words
    each = max(1, draws // (p - 1))
    interactions = np.zeros((cells, words))
    for i, j in product(range(cells), range(words)):
        others = [q for q in range(p) if q not in (i, cells + j)]
        on = np.zeros((each * (p - 1), p), bool)
        for row, size in zip(on, np.repeat(np.arange(p - 1), each), strict=True):
            row[rng.permutation(others)[:size]] = True
        if shared_ids:
            # One set of numbers for both kinds of players: number q is cell q and word q.
            drawn = on[:, : max(cells, words)] | np.pad(on[:, cells:], ((0, 0), (0, max(0, cells - words))))
            on = np.concatenate([drawn[:, :cells], drawn[:, :words]], 1)
        interactions[i, j] = _difference(value, on, i, j, cells)
    return interactions


def _difference(value: Values, on: NDArray[np.bool_], i: int, j: int, cells: int) -> float:
    """Return the mean of v(S+i+j) - v(S+i) - v(S+j) + v(S) over coalitions."""
    four = np.repeat(on[None], 4, 0)
    four[:, :, i] = np.array([True, True, False, False])[:, None]
    four[:, :, cells + j] = np.array([True, False, True, False])[:, None]
    unique, where = np.unique(four.reshape(-1, four.shape[2]), axis=0, return_inverse=True)
    at = np.arange(len(unique))
    values = value(unique[:, :cells], unique[:, cells:], np.stack([at, at], 1))[where.ravel()].reshape(4, -1)
    return float((values[0] - values[1] - values[2] + values[3]).mean())


def _members(groups: Sequence[Sequence[int]], n: int, p: int) -> NDArray[np.bool_]:
    """Return the players that are present for every set of groups, ``(2**p, n)``."""
    table = np.zeros((p, n), bool)
    for row, group in zip(table, groups, strict=True):
        row[list(group)] = True
    present = (np.arange(1 << p)[:, None] >> np.arange(p)) & 1
    shown: NDArray[np.bool_] = (present @ table.astype(int)) > 0
    return shown
