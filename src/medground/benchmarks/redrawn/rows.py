"""One row an explanation: how much of it lies on what the answer hung on, and how much anything would have there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.redrawn.scenes import class_prior
from medground.benchmarks.requests import Answer
from medground.imaging.geometry import upsample
from medground.metrics.relevance import relevance_mass

OWN = "own map"
"""Method of the map that a model gives itself."""

DENIED = "the model does not say yes"
NOTHING = "no finding that was taken away mattered to the answer"

SCHEMA = pl.Schema(
    {
        "item": pl.String(),
        "case": pl.Int64(),
        "finding": pl.String(),
        "method": pl.String(),
        "odds": pl.Float64(),
        "follows": pl.Float64(),
        "mass": pl.Float64(),
        "prior": pl.Float64(),
        "even": pl.Float64(),
        "ceiling": pl.Float64(),
        "flat": pl.Boolean(),
        "retest": pl.Float64(),
        "reason": pl.String(),
    }
)
"""``follows``: 1 where taking away the finding that is asked about costs most, 0 where something else does
or nothing. ``mass``, ``prior`` and ``even`` are shares of the explanation, of the class prior and of an even map on
what the answer hung on: each region, weighed by what its removal costs; ``ceiling`` is that of these regions drawn
on the explanation's own grid. Undefined where the answer is no."""


def blank(item_id: str, case: int, finding: str, method: str) -> dict[str, Any]:
    """Return a row in which nothing is known yet."""
    return dict.fromkeys(SCHEMA.names()) | {"item": item_id, "case": case, "finding": finding, "method": method}


def row_of(item_id: str, case: int, finding: str, odds: Answer, method: str, told: Answer) -> dict[str, Any]:
    """Return the row of one explanation.

    Args:
        item_id: of the item.
        case: number of the phantom.
        finding: that was asked about.
        odds: log-odds of yes with everything there and without each finding, and the regions of the findings.
        method: of the explanation.
        told: its map, and how alike a second one is.
    """
    values = np.asarray(odds.arrays["odds"], np.float64)
    row = blank(item_id, case, finding, method) | {"odds": float(values[0]), "retest": told.values["retest"]}
    if values[0] <= 0:
        return row | {"reason": DENIED}
    costs = dict(zip(odds.values["findings"], np.maximum(values[0] - values[1:], 0).tolist(), strict=True))
    total = sum(costs.values())
    row["follows"] = float(total > 0 and costs[finding] == max(costs.values()))
    if total <= 0:
        return row | {"reason": NOTHING}
    if "map" not in told.arrays:
        return row | {"reason": told.values["reason"] or "no map"}
    regions = {f: np.asarray(odds.arrays[f"region/{f}"], np.bool_) for f in costs}
    weights = {f: cost / total for f, cost in costs.items()}
    shown = laid(told.arrays["map"], regions[finding].shape)
    prior = class_prior(finding, regions[finding].shape[0])
    return row | {
        "mass": on_cause(shown, regions, weights),
        "prior": on_cause(prior, regions, weights),
        "even": on_cause(np.ones_like(shown), regions, weights),
        "ceiling": on_cause(best(told.arrays["map"].shape, regions, weights), regions, weights),
        "flat": bool(np.ptp(shown) == 0),
    }


def on_cause(
    values: NDArray[np.float64], regions: Mapping[str, NDArray[np.bool_]], weights: Mapping[str, float]
) -> float:
    """Return the share of a map on the regions, each weighed by what its removal cost.

    Args:
        values: ``(H, W)``.
        regions: finding -> pixels.
        weights: finding -> share of the cost; they sum to 1.

    Example:
        >>> on_cause(np.array([[3.0, 1.0]]), {"Mass": np.array([[True, False]])}, {"Mass": 1.0})
        0.75
    """
    return float(sum(weight * relevance_mass(values, regions[finding]) for finding, weight in weights.items()))


def laid(values: NDArray[Any], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return a map of cells or pixels on the picture's pixels; what speaks against the answer counts as nothing."""
    positive = np.maximum(np.asarray(values, np.float64), 0)
    if positive.shape == shape:
        return positive
    return np.asarray(upsample(positive, (shape[1], shape[0]), "nearest"), np.float64)


def best(
    grid: tuple[int, ...], regions: Mapping[str, NDArray[np.bool_]], weights: Mapping[str, float]
) -> NDArray[np.float64]:
    """Return the regions, weighed, as a map of ``grid`` cells can hold them: the share of a cell that they cover."""
    truth = np.sum([weight * regions[f] for f, weight in weights.items()], 0)
    if truth.shape == grid:
        return np.asarray(truth, np.float64)
    rows, columns = ((np.arange(n) * g) // n for n, g in zip(truth.shape, grid, strict=True))
    sums, counts = np.zeros(grid), np.zeros(grid)
    np.add.at(sums, (rows[:, None], columns[None]), truth)
    np.add.at(counts, (rows[:, None], columns[None]), 1)
    return laid(sums / counts, (truth.shape[0], truth.shape[1]))
