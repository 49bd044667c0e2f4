"""How much of an answer comes from image and text together: projections, indices of interaction, and their trend.

Pure functions on arrays of logits, probabilities or values of coalitions; the explainers in ``medground.explainers``
make these arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.errors import MetricError

Array = NDArray[np.floating[Any]]
Table = NDArray[np.float64]


def additive_projection(logits: Array) -> Table:
    """Return the best additive function of image and text: row mean plus column mean minus grand mean.

    Args:
        logits: ``(N, M, ...)``, entry ``[i, j]`` for image i and text j (EMAP, Hessel & Lee 2020).

    Returns:
        The projection of every pair, of the same shape.
    """
    full = np.asarray(logits, np.float64)
    means: Table = full.mean(1, keepdims=True) + full.mean(0, keepdims=True) - full.mean((0, 1), keepdims=True)
    return means


@dataclass(frozen=True)
class Synergy:
    """What the projection leaves, for the N matched pairs.

    Attributes:
        residual: ``(N,)`` norm of logits minus projection.
        additive: ``(N,)`` norm of projection minus grand mean.
        percent: ``(N,)`` 100 residual / (residual + additive); NaN where both are 0.
        projection: ``(N, C)``.
    """

    residual: Table
    additive: Table
    percent: Table
    projection: Table


def projection_synergy(logits: Array, *, centred: bool = True, norm: int = 1) -> Synergy:
    """Return how much of the matched pairs' logits is not additive in image and text.

    The published percentage has no printed formula; this one is ours and uses norms that are unambiguous.

    Args:
        logits: ``(N, N, C)``.
        centred: subtract the mean over classes from every entry first: a softmax does not see it.
        norm: 1 or 2, over classes.
    """
    full = _square(logits, 3)
    if centred:
        full = full - full.mean(2, keepdims=True)
    at = np.arange(len(full))
    projection = additive_projection(full)[at, at]
    residual = np.linalg.norm(full[at, at] - projection, ord=norm, axis=1)
    additive = np.linalg.norm(projection - full.mean((0, 1)), ord=norm, axis=1)
    return Synergy(residual, additive, share_percent(residual, additive), projection)


def share_percent(part: Array, rest: Array) -> Table:
    """Return 100 part / (part + rest); NaN where both are 0."""
    total = part + rest
    share: Table = np.divide(100 * part, total, out=np.full(np.shape(part), np.nan), where=total > 0)
    return share


@dataclass(frozen=True)
class ModalityInteraction:
    """The two-player split of a probability between image and text.

    Attributes:
        matrices: ``(N, 2, 2)`` main effects on the diagonal, half the interaction off it.
        local: ``(N,)`` share of the absolute off-diagonal, in [0, 1]; NaN where all entries are 0.
        overall: the same share after averaging matrices over samples.
        predicted: ``(N,)`` the class looked at.
    """

    matrices: Table
    local: Table
    overall: float
    predicted: NDArray[np.int64]


def modality_interaction(probabilities: Array, *, all_pairs: bool = False) -> ModalityInteraction:
    """Return InterSHAP (Wenderoth et al. 2025) for every matched pair of a full matrix.

    Args:
        probabilities: ``(N, N, C)``, entry ``[i, j]`` for image i and text j.
        all_pairs: the empty coalition is the mean over all pairs; otherwise over matched pairs, as published.
    """
    full = _square(probabilities, 3)
    at = np.arange(len(full))
    predicted = full[at, at].argmax(1)
    both = full[at, at, predicted]
    image = full.mean(1)[at, predicted]
    text = full.mean(0)[at, predicted]
    empty = (full.mean((0, 1)) if all_pairs else full[at, at].mean(0))[predicted]
    half = 0.5 * (both - image - text + empty)
    first = 0.5 * (image - empty) + 0.5 * (both - text) - half
    second = 0.5 * (text - empty) + 0.5 * (both - image) - half
    matrices = np.stack([np.stack([first, half], 1), np.stack([half, second], 1)], 1)
    return ModalityInteraction(matrices, _off_share(matrices), float(_off_share(matrices.mean(0))), predicted)


def _off_share(matrices: Table) -> Table:
    size = np.abs(matrices)
    total = size.sum((-2, -1))
    off = size[..., 0, 1] + size[..., 1, 0]
    share: Table = np.divide(off, total, out=np.full(np.shape(off), np.nan), where=total > 0)
    return share


def shapley_interactions(values: Array) -> Table:
    """Return the exact Shapley interaction index of every pair of players.

    Args:
        values: ``(2**p,)`` value of every coalition; player i is present where bit i of the position is set. p <= 14.

    Returns:
        ``(p, p)`` symmetric, 0 on the diagonal. phi_ij is the sum over coalitions S without i and j of
        ``s! (p-s-2)! / (p-1)!`` times ``v(S+ij) - v(S+i) - v(S+j) + v(S)`` (Grabisch & Roubens 1999).

    Raises:
        MetricError: the length is no power of two, or there are more than 14 players.
    """
    table, p = _players(values)
    indices = np.zeros((p, p))
    if p < 2:
        return indices
    weights = _size_weights(p - 2, lambda s: 1 / ((p - 1) * comb(p - 2, s)))
    for i in range(p):
        once = np.diff(table, axis=p - 1 - i)
        for j in range(i):
            twice = np.diff(once, axis=p - 1 - j)
            indices[i, j] = indices[j, i] = float((twice.ravel() * weights).sum())
    return indices


def shapley_values(values: Array) -> Table:
    """Return the Shapley value of every player; ``values`` as for :func:`shapley_interactions`."""
    table, p = _players(values)
    weights = _size_weights(p - 1, lambda s: 1 / (p * comb(p - 1, s)))
    return np.array([float((np.diff(table, axis=p - 1 - i).ravel() * weights).sum()) for i in range(p)])


def merged(values: Array, groups: Sequence[Sequence[int]]) -> Table:
    """Return the game of merged players: a group is present as a whole or not at all."""
    table: Table = np.asarray(values, np.float64)
    masks = np.array([sum(1 << player for player in group) for group in groups], np.int64)
    at = np.arange(1 << len(groups))
    chosen = (at[:, None] >> np.arange(len(groups))) & 1
    game: Table = table[chosen @ masks]
    return game


def _players(values: Array) -> tuple[Table, int]:
    table = np.asarray(values, np.float64)
    p = table.size.bit_length() - 1
    if table.ndim != 1 or table.size != 1 << p or not 1 <= p <= 14:
        raise MetricError(
            "A game needs a value for every coalition.", expected="2**p values, p = 1..14", got=f"shape {table.shape}"
        )
    return table.reshape((2,) * p), p


def _size_weights(n: int, weight: Any) -> Table:
    """Return the weight of every coalition of n players by its size."""
    sizes = np.bitwise_count(np.arange(1 << n, dtype=np.uint32))
    return np.array([weight(s) for s in range(n + 1)])[sizes]


def unimodal_part(logits: Array, instance: int, replaced: Array, *, axis: int) -> Table:
    """Return what image and text contribute without each other, for perturbed versions of one of them (DIME).

    Args:
        logits: ``(N, N, C)`` of background samples that include the instance.
        instance: position of the instance.
        replaced: ``(Q, N, C)`` outputs of each perturbed version with all N samples of the other modality.
        axis: 0: images are perturbed (rows are replaced); 1: texts (columns).

    Returns:
        ``(Q, C)`` row mean plus column mean minus grand mean at the instance, after the replacement; the multimodal
        part is ``replaced[:, instance]`` minus it.
    """
    full = np.asarray(logits, np.float64)
    full = full if axis == 0 else full.swapaxes(0, 1)
    rows = np.asarray(replaced, np.float64)
    n = len(full)
    change = rows - full[instance]
    own = rows.mean(1)
    other = full[:, instance].mean(0) + change[:, instance] / n
    grand = full.mean((0, 1)) + change.sum(1) / n**2
    unimodal: Table = own + other - grand
    return unimodal


def _square(values: Array, axes: int) -> Table:
    full = np.asarray(values, np.float64)
    if full.ndim != axes or full.shape[0] != full.shape[1]:
        raise MetricError("An image-by-text matrix is square.", expected="(N, N, classes)", got=f"shape {full.shape}")
    return full
