"""Cells of grounding: pointing, Dice and IoU by class, view and size of the region, beside floor and class prior."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.results import Cell
from medground.benchmarks.xbench.pairs import Floats, Pairs
from medground.benchmarks.xbench.specs import OVERLAPS, fixed
from medground.metrics.bootstrap import Clusters, bootstrap_sums, clusters, macro_replicates, percentile_interval
from medground.metrics.values import Value, mean_defined

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Resampling:
    """How intervals are made: replicates drawn by patient, their seed, and the coverage."""

    replicates: int
    seed: int
    level: float


def grounding_values(pairs: Pairs) -> dict[str, Floats]:
    """Return every measure of every pair: name -> ``(P,)``, NaN where undefined."""
    protocol = pairs.protocol
    dice, iou = pairs.at_searched("dice"), pairs.at_searched("iou")
    floor_dice, floor_iou = pairs.floor
    unsearched = {
        fixed(name, tau): pairs.curves[name][:, protocol.index_of(tau)] for tau in protocol.fixed for name in OVERLAPS
    }
    first = protocol.fixed[0]
    pointing = pairs.pointing()
    prior = np.where(pairs.used, pairs.pointing("prior_"), np.nan)
    return {
        "pointing": pointing,
        "pointing_prior": prior,
        "pointing_gain": pointing - prior,
        **unsearched,
        "dice@best": dice,
        "iou@best": iou,
        "dice_gap": dice - unsearched[fixed("dice", first)],
        "iou_gap": iou - unsearched[fixed("iou", first)],
        "dice_floor": floor_dice,
        "iou_floor": floor_iou,
        "dice_gain": dice - floor_dice,
        "iou_gain": iou - floor_iou,
    }


def grounding_cells(
    pairs: Pairs, findings: Sequence[str], edges: Sequence[float], how: Resampling, **who: str
) -> Iterator[Cell]:
    """Yield the cells of one model on one dataset.

    Args:
        pairs: localised pairs of the subset.
        findings: classes in the dataset's order; one without pairs is undefined, not absent.
        edges: shares of the picture that part the size bands.
        how: the intervals.
        who: ``benchmark``, ``reading``, ``model``, ``dataset`` and ``subset`` of the cells.
    """
    values = grounding_values(pairs)
    groups = list(_groups(pairs, findings, edges))
    replicates = _replicates(pairs, values, [mask for *_, mask in groups], how)
    codes = _patients(pairs).codes
    for m, (metric, measured) in enumerate(values.items()):
        by_class = []
        for g, (scope, group, mask) in enumerate(groups):
            value = mean_defined(measured[mask], reason=_why(pairs, mask))
            if scope == "class":
                by_class.append(value)
            # One patient says nothing about the next: the group has no interval, but stays in the macro mean.
            alone = len(np.unique(codes[mask & ~np.isnan(measured)])) < 2
            spread = np.full(how.replicates, np.nan) if alone else replicates[:, g, m]
            yield _cell(value, spread, pairs, mask, how, scope=scope, group=group, metric=metric, **who)
        macro = mean_defined([v.value for v in by_class], reason="no class is defined")
        spread = macro_replicates(replicates[:, : len(findings), m])
        everything = np.ones(len(pairs), dtype=bool)
        yield _cell(macro, spread, pairs, everything, how, scope="macro", group="", metric=metric, **who)


def size_bands(edges: Sequence[float]) -> list[tuple[str, float, float]]:
    """Return (name, from, to) of the size bands, as shares of the picture."""
    marks = sorted(edges)
    names = [f"below {marks[0]:.3g}"] if marks else ["all"]
    names += [f"{low:.3g} to {high:.3g}" for low, high in pairwise(marks)]
    names += [f"{marks[-1]:.3g} and more"] if marks else []
    bounds = pairwise([0.0, *marks, np.inf])
    return [(f"{name} of the picture", low, high) for name, (low, high) in zip(names, bounds, strict=True)]


def _groups(pairs: Pairs, findings: Sequence[str], edges: Sequence[float]) -> Iterator[tuple[str, str, Mask]]:
    """Yield (scope, group, mask); the classes come first, in order."""
    for finding in findings:
        yield "class", finding, pairs.finding == finding
    yield "pairs", "", np.ones(len(pairs), dtype=bool)
    views = pairs.frame["view"].fill_null("unknown").to_numpy().astype(str)
    for view in sorted(set(views)):
        yield "view", view, views == view
    share = pairs.frame["share"].to_numpy()
    for name, low, high in size_bands(edges):
        yield "size", name, (share >= low) & (share < high)


def _replicates(
    pairs: Pairs, values: Mapping[str, Floats], masks: Sequence[Mask], how: Resampling
) -> NDArray[np.float64]:
    """Return bootstrap means ``(B, groups, metrics)``, the same draws of patients for all; NaN where none is drawn."""
    shape = (how.replicates, len(masks), len(values))
    if not how.replicates or not len(pairs):
        return np.full(shape, np.nan)
    columns = np.stack([np.where(mask, measured, np.nan) for mask in masks for measured in values.values()], axis=1)
    defined = ~np.isnan(columns)
    by = _patients(pairs)
    sums = bootstrap_sums(np.hstack([np.where(defined, columns, 0.0), defined]), by, how.replicates, how.seed)
    above, below = np.hsplit(sums, 2)
    means: NDArray[np.float64] = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return means.reshape(shape)


def _patients(pairs: Pairs) -> Clusters:
    return clusters(pairs.frame["patient_id"].to_list(), pairs.frame["case_id"].to_list())


def _cell(
    value: Value, replicates: NDArray[np.float64], pairs: Pairs, mask: Mask, how: Resampling, **where: Any
) -> Cell:
    state = pairs.frame["state"].to_numpy().astype(str)[mask]
    failed = int((state == "failed").sum())
    undefined = value.n_undefined - (failed if where["scope"] != "macro" else 0)
    interval = percentile_interval(replicates, how.level) if value.value is not None and how.replicates else None
    return Cell(
        **where,
        value=value.value,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        n=value.n,
        undefined=undefined,
        flat=int((state == "flat").sum()),
        failed=failed,
        counts={"skipped": interval.skipped} if interval and interval.skipped else {},
        reason=value.reason,
    )


def _why(pairs: Pairs, mask: Mask) -> str:
    """Say why a group has no value: no regions at all, or the commonest reason among its pairs."""
    if not mask.any():
        return "no localised case"
    reasons = pairs.frame.filter(pl.Series(mask))["reason"].drop_nulls()
    return str(reasons.mode().sort()[0]) if len(reasons) else "undefined for every pair"
