"""Partial information decomposition of a discrete distribution (BROJA), solved to high precision.

Bertschinger et al. 2014: among the distributions q with the marginals q(x1, y) = p(x1, y) and q(x2, y) = p(x2, y),
take the one with the largest H(Y | X1, X2). What X1 tells beyond X2 under q is unique; what p tells beyond q is
synergy. The convex program is solved by a barrier method whose Newton step uses the structure of the problem.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError

Table = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
    """The four parts of I(Y; X1, X2), in nats."""

    redundancy: float
    unique1: float
    unique2: float
    synergy: float


def decompose(joint: ArrayLike, *, gap: float = 1e-10) -> Parts:
    """Decompose what two variables tell about a third.

    Args:
        joint: ``(|X1|, |X2|, |Y|)`` probabilities or counts; normalised here.
        gap: how far from the optimum, in nats, the program may stop.

    Raises:
        MetricError: not a table of three axes, a negative entry, or no mass.
    """
    table = np.asarray(joint, np.float64)
    if table.ndim != 3 or not np.isfinite(table).all() or (table < 0).any() or table.sum() <= 0:
        raise MetricError("A joint distribution is a table of three axes.", got=f"shape {table.shape}")
    p = table / table.sum()
    q = optimum(p, gap=gap)
    i_p, i_q = _information(p), _information(q)
    first, second = _information(p.sum(1)[:, None]), _information(p.sum(0)[None])
    unique1, unique2 = i_q - second, i_q - first
    return Parts(first - unique1, unique1, unique2, i_p - i_q)


def _information(p: Table) -> float:
    """Return I(X1 X2; Y)."""
    pairs, y = p.sum(2, keepdims=True), p.sum((0, 1), keepdims=True)
    held = p > 0
    return float((p[held] * np.log(p[held] / (pairs * y)[held])).sum())


def optimum(p: Table, *, gap: float = 1e-10) -> Table:
    """Return the distribution with p's two marginals and the largest H(Y | X1, X2).

    Args:
        p: a normalised table.
        gap: bound on what the objective may lack.
    """
    left, right, y = p.sum(1), p.sum(0), p.sum((0, 1))
    held = (left[:, None] > 0) & (right[None] > 0)
    # Independent given y: feasible, and inside the polytope wherever q is free at all.
    q: Table = np.divide(left[:, None] * right[None], y, out=np.zeros_like(p), where=held)
    size, weight = int(held.sum()), 1.0
    keep = _constraints(left, right)
    while True:
        for _ in range(50):
            step, decrement = _newton(q, held, weight, keep)
            if decrement < 1e-9:
                break
            q = _walk(q, step, held, decrement)
        if size / weight < gap:
            return q
        weight *= 8


def _constraints(left: Table, right: Table) -> NDArray[np.bool_]:
    """Return which marginals bind: positive ones, less one a y, which follows from the others."""
    keep_left, keep_right = left > 0, right > 0
    for k in range(right.shape[1]):
        kept = np.flatnonzero(keep_right[:, k])
        if kept.size:
            keep_right[kept[-1], k] = False
    return np.concatenate([keep_left.ravel(), keep_right.ravel()])


def _newton(q: Table, held: NDArray[np.bool_], weight: float, keep: NDArray[np.bool_]) -> tuple[Table, float]:
    """Return the Newton step of ``weight * (-H) - sum log q`` within the constraints, and its decrement.

    The Hessian is one small block a pair (x1, x2): a diagonal less a constant, inverted in closed form.
    """
    n1, n2, ny = q.shape
    pairs = q.sum(2, keepdims=True)
    safe = np.where(held, q, 1.0)
    ratio = safe / np.where(pairs > 0, pairs, 1.0)
    gradient = np.where(held, weight * np.log(ratio) - 1 / safe, 0.0)
    inverse = np.where(held, safe**2 / (weight * safe + 1), 0.0)
    # pairs / weight - inverse.sum(2), without the cancellation of its two terms.
    slack = np.where(held, safe / (weight * (weight * safe + 1)), 0.0).sum(2, keepdims=True)
    spread = inverse / np.sqrt(np.where(slack > 0, slack, np.inf))

    def solve(v: Table) -> Table:
        step: Table = inverse * v + spread * (spread * v).sum(2, keepdims=True)
        return step

    blocks = spread[..., :, None] * spread[..., None, :]
    blocks[..., np.arange(ny), np.arange(ny)] += inverse
    schur = np.zeros((n1 * ny + n2 * ny,) * 2)
    corner = schur[: n1 * ny, : n1 * ny].reshape(n1, ny, n1, ny)
    corner[np.arange(n1), :, np.arange(n1)] = blocks.sum(1)
    corner = schur[n1 * ny :, n1 * ny :].reshape(n2, ny, n2, ny)
    corner[np.arange(n2), :, np.arange(n2)] = blocks.sum(0)
    cross = blocks.transpose(0, 2, 1, 3).reshape(n1 * ny, n2 * ny)
    schur[: n1 * ny, n1 * ny :], schur[n1 * ny :, : n1 * ny] = cross, cross.T
    free = solve(gradient)
    sums = np.concatenate([free.sum(1).ravel(), free.sum(0).ravel()])
    dual = np.zeros_like(sums)
    dual[keep] = _solve(schur[np.ix_(keep, keep)], sums[keep])
    back = dual[: n1 * ny].reshape(n1, 1, ny) + dual[n1 * ny :].reshape(1, n2, ny)
    step = -solve(np.where(held, gradient - back, 0.0))
    return step, float(-(gradient * step).sum())


def _solve(matrix: Table, values: Table) -> Table:
    """Solve a positive definite system; near the border of the polytope it may be singular to rounding."""
    try:
        return np.asarray(np.linalg.solve(matrix, values), np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, values, rcond=None)[0], np.float64)


def _walk(q: Table, step: Table, held: NDArray[np.bool_], decrement: float) -> Table:
    """Return q after a damped step, as self-concordance allows, that keeps it positive."""
    shrinking = held & (step < 0)
    border = float((-q[shrinking] / step[shrinking]).min(initial=np.inf))
    damped = 1.0 if decrement < 0.05 else 1 / (1 + float(np.sqrt(decrement)))
    return q + min(damped, 0.95 * border) * step
