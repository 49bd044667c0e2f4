"""Cells of grounding: pointing, Dice and IoU by class, view and size of the region, beside floor and class prior."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.results import Cell
from medground.benchmarks.xbench.pairs import Floats, Pairs
from medground.benchmarks.xbench.specs import fixed
from medground.metrics.bootstrap import Clusters
from medground.metrics.differences import compare_macros, compare_means
from medground.metrics.inference import Estimate, estimate, estimate_macro
from medground.metrics.influence import Influence, of_mean

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class How:
    """How intervals and tests are made.

    Attributes:
        level: coverage of the intervals.
        seed: of whatever is drawn: folds, flips beyond what can be enumerated, ranks of models.
        replicates: of the bootstrap of ranks; 0: none.
    """

    level: float = 0.95
    seed: int = 0
    replicates: int = 1000


@dataclass(frozen=True)
class CaseGroup:
    """Pairs that share a finding, a view or a size: which, and how many of them are flat or failed."""

    scope: str
    name: str
    mask: Mask
    flat: int
    failed: int


def differences(pairs: Pairs) -> dict[str, tuple[str, str]]:
    """Return what is the difference of two other measures of the same pairs: name -> (first, second)."""
    at_first = pairs.protocol.fixed[0]
    pairs_of = {"pointing_gain": ("pointing", "pointing_prior")}
    for name in ("dice", "iou"):
        pairs_of[f"{name}_gap"] = (f"{name}@best", fixed(name, at_first))
        pairs_of[f"{name}_gain"] = (f"{name}@best", f"{name}_floor")
    return pairs_of


def grounding_values(pairs: Pairs) -> dict[str, Floats]:
    """Return every measure of every pair: name -> ``(P,)``, NaN where undefined."""
    protocol = pairs.protocol
    floors = dict(zip(("dice", "iou"), pairs.floor, strict=True))
    values = {"pointing": pairs.pointing(), "pointing_prior": np.where(pairs.used, pairs.pointing("prior_"), np.nan)}
    for tau in protocol.fixed:
        values |= {fixed(name, tau): pairs.curves[name][:, protocol.index_of(tau)] for name in floors}
    values |= {f"{name}@best": pairs.at_searched(name) for name in floors}
    if protocol.optimistic and protocol.crossfitted is not None:
        fair = {f"{name}@crossfit": pairs.at_crossfitted(name) for name in floors}
        values |= {name: value for name, value in fair.items() if value is not None}
    values |= {f"{name}_floor": value for name, value in floors.items()}
    if "prior_selected" in pairs.frame.columns:
        values |= {f"{name}_prior": value for name, value in zip(floors, pairs.prior, strict=True)}
    if "ceiling_ties" in pairs.frame.columns:
        reached = dict(zip(floors, pairs.ceiling, strict=True))
        values["pointing_ceiling"] = np.where(pairs.used, pairs.pointing("ceiling_"), np.nan)
        values |= {f"{name}_ceiling": value for name, value in reached.items()}
    values |= {name: values[first] - values[second] for name, (first, second) in differences(pairs).items()}
    return values | pairs.further()


def grounding_cells(
    pairs: Pairs, findings: Sequence[str], edges: Sequence[float], how: How, **who: str
) -> Iterator[Cell]:
    """Yield the cells of one model on one dataset.

    Args:
        pairs: localised pairs of the subset.
        findings: classes in the dataset's order; one without pairs is undefined, not absent.
        edges: shares of the picture that part the size bands.
        how: the intervals.
        who: ``benchmark``, ``reading``, ``model``, ``dataset`` and ``subset`` of the cells.
    """
    values, parts = grounding_values(pairs), differences(pairs)
    groups = list(_groups(pairs, findings, edges))
    everything = next(group for group in groups if group.scope == "pairs")
    for metric, measured in values.items():
        for group in groups:
            estimated = _estimate(values, parts.get(metric), measured, pairs, group.mask, how)
            yield _cell(estimated, pairs, group, scope=group.scope, group_name=group.name, metric=metric, who=who)
        estimated = macro_estimate(values, parts.get(metric), metric, pairs, findings, how)
        yield _cell(estimated, pairs, everything, scope="macro", group_name="", metric=metric, who=who)


def macro_estimate(
    values: Mapping[str, Floats],
    parts: tuple[str, str] | None,
    metric: str,
    pairs: Pairs,
    findings: Sequence[str],
    how: How,
    draws: int = 0,
) -> Estimate:
    """Return a mean over classes; of a difference, with its test where ``draws`` are asked for."""
    masks = [pairs.finding == finding for finding in findings]
    if parts is None:
        return estimate_macro([_mean(values[metric], pairs, mask) for mask in masks], level=how.level)
    first, second = (values[name] for name in parts)
    both = ~np.isnan(first - second)
    pair = [(_mean(first, pairs, mask & both), _mean(second, pairs, mask & both)) for mask in masks]
    return compare_macros(pair, level=how.level, seed=how.seed, draws=draws)


def size_bands(edges: Sequence[float]) -> list[tuple[str, float, float]]:
    """Return (name, from, to) of the size bands, as shares of the picture."""
    marks = sorted(edges)
    names = [f"below {marks[0]:.3g}"] if marks else ["all"]
    names += [f"{low:.3g} to {high:.3g}" for low, high in pairwise(marks)]
    names += [f"{marks[-1]:.3g} and more"] if marks else []
    bounds = pairwise([0.0, *marks, np.inf])
    return [(f"{name} of the picture", low, high) for name, (low, high) in zip(names, bounds, strict=True)]


def _groups(pairs: Pairs, findings: Sequence[str], edges: Sequence[float]) -> Iterator[CaseGroup]:
    """Yield the classes first, in order, then all pairs, views and sizes."""
    state = pairs.frame["state"].to_numpy().astype(str)
    flat, failed = state == "flat", state == "failed"

    def group(scope: str, name: str, mask: Mask) -> CaseGroup:
        return CaseGroup(scope, name, mask, int((mask & flat).sum()), int((mask & failed).sum()))

    for finding in findings:
        yield group("class", finding, pairs.finding == finding)
    yield group("pairs", "", np.ones(len(pairs), dtype=bool))
    views = pairs.frame["view"].fill_null("unknown").to_numpy().astype(str)
    for view in sorted(set(views)):
        yield group("view", view, views == view)
    share = pairs.frame["share"].to_numpy()
    for name, low, high in size_bands(edges):
        yield group("size", name, (share >= low) & (share < high))


def _mean(values: Floats, pairs: Pairs, mask: Mask) -> Influence:
    return of_mean(values[mask], Clusters(pairs.by.codes[mask], pairs.by.count))


def _estimate(
    values: Mapping[str, Floats],
    parts: tuple[str, str] | None,
    measured: Floats,
    pairs: Pairs,
    mask: Mask,
    how: How,
) -> Estimate:
    by = Clusters(pairs.by.codes[mask], pairs.by.count)
    if parts is None:
        return estimate(of_mean(measured[mask], by), level=how.level)
    first, second = (values[name][mask] for name in parts)
    return compare_means(first, second, by, level=how.level, draws=0)


def _cell(
    estimated: Estimate,
    pairs: Pairs,
    group: CaseGroup,
    *,
    scope: str,
    group_name: str,
    metric: str,
    who: Mapping[str, Any],
) -> Cell:
    if estimated.value is None and scope != "macro":
        estimated = replace(estimated, reason=_why(pairs, group.mask))
    return Cell(
        **who,
        scope=scope,
        group=group_name,
        metric=metric,
        value=estimated.value,
        low=estimated.low,
        high=estimated.high,
        n=estimated.n,
        undefined=estimated.n_undefined - (group.failed if scope != "macro" else 0),
        flat=group.flat,
        failed=group.failed,
        reason=estimated.reason if estimated.value is None else None,
        counts={"patients": min(estimated.evidence, default=0)},
    )


def _why(pairs: Pairs, mask: Mask) -> str:
    """Say why a group has no value: no regions at all, or the commonest reason among its pairs."""
    if not mask.any():
        return "no localised case"
    reasons = pairs.frame["reason"].filter(pl.Series(mask)).drop_nulls()
    return str(reasons.mode().sort()[0]) if len(reasons) else "undefined for every pair"
