"""Metrics that anybody adds by one file, computed from the counts that a run has kept: no model and no map is needed.

A metric of this kind is a class with a ``name``, a ``spec`` that says what it is, and one method from `Counts` to one
value a (case, finding). Everything else follows as for the metrics that ship: means by finding, view and size, means
over findings, intervals by patient, tables, comparisons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from medground.errors import MetricError
from medground.metrics.spec import MetricSpec

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """What is known of P pairs (case, finding) with a region, at T thresholds.

    Attributes:
        thresholds: (T,) the protocol's grid, then its fixed thresholds outside the grid.
        selected: (P, T) pixels that a threshold selects.
        inside: (P, T) of these, pixels inside the region.
        area: (P,) pixels of the region on the protocol's grid.
        total: (P,) pixels of the grid.
        searched: (P,) place of each pair's searched threshold among the T; -1 where there is none.
        crossfitted: (P,) the same from the other half of the patients; None where the protocol has no such search.
        ties: (P,) pixels that share the map's maximum; NaN where undefined.
        ties_inside: (P,) of these, pixels inside the region.
        used: (P,) whether the pair is scored; the others must come out as NaN, and do whatever a metric says.
    """

    thresholds: Floats
    selected: NDArray[np.int64]
    inside: NDArray[np.int64]
    area: NDArray[np.int64]
    total: NDArray[np.int64]
    searched: NDArray[np.intp]
    crossfitted: NDArray[np.intp] | None
    ties: Floats
    ties_inside: Floats
    used: NDArray[np.bool_]

    def at(self, counts: NDArray[np.int64], index: NDArray[np.intp]) -> Floats:
        """Return one of the two (P, T) counts at a threshold a pair, (P,); NaN where there is none."""
        taken = np.take_along_axis(counts, np.maximum(index, 0)[:, None], axis=1)[:, 0].astype(np.float64)
        return np.where((index >= 0) & self.used, taken, np.nan)


@runtime_checkable
class CountedMetric(Protocol):
    """A metric over kept counts."""

    name: ClassVar[str]
    spec: ClassVar[MetricSpec]

    def values(self, counts: Counts) -> Floats:
        """Return one value a pair, (P,), in the bounds of the specification; NaN where undefined."""


def measured(metric: CountedMetric, counts: Counts) -> Floats:
    """Return what a metric says of every pair, checked; pairs that are not scored are NaN.

    Raises:
        MetricError: another shape, an infinite value, or one outside the bounds of the specification.
    """
    values = np.asarray(metric.values(counts), dtype=np.float64)
    if values.shape != counts.area.shape:
        raise MetricError(
            "a metric gives one value a pair", where=metric.name, expected=counts.area.shape, got=values.shape
        )
    values = np.where(counts.used, values, np.nan)
    known = values[~np.isnan(values)]
    low, high = metric.spec.bounds or (-np.inf, np.inf)
    if known.size and not (np.isfinite(known).all() and low <= known.min() and known.max() <= high):
        raise MetricError(
            "a value lies outside the bounds of its metric",
            where=metric.name,
            expected=f"{low:g} to {high:g}, NaN where undefined",
            got=f"{known.min():g} to {known.max():g}",
            fix="state other bounds in the metric's spec, or bounds=None",
        )
    return values


__all__ = ["CountedMetric", "Counts", "measured"]
