"""From rows of counts to values: one entry a (case, finding) pair that has a region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.xbench.protocol import Protocol
from medground.metrics.bootstrap import Clusters, clusters
from medground.metrics.counted import CountedMetric, Counts, measured
from medground.metrics.folds import patient_folds
from medground.metrics.sweep import best_threshold, overlap

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Pairs of one model on one dataset, as arrays over P pairs and T thresholds.

    Attributes:
        frame: the rows behind them.
        protocol: the choices under which they were counted.
        seed: of the cross-fitted folds.
        metrics: further metrics over the counts.
    """

    frame: pl.DataFrame
    protocol: Protocol
    seed: int = 0
    metrics: tuple[CountedMetric, ...] = ()

    @classmethod
    def of(cls, rows: pl.DataFrame, protocol: Protocol, seed: int = 0, metrics: Sequence[CountedMetric] = ()) -> Pairs:
        """Keep the rows whose finding is localised in their case."""
        return cls(rows.filter(pl.col("localised")), protocol, seed, tuple(metrics))

    def __len__(self) -> int:
        return len(self.frame)

    @cached_property
    def finding(self) -> NDArray[np.str_]:
        """``(P,)`` names."""
        return self.frame["finding"].to_numpy().astype(str)

    @cached_property
    def patient(self) -> list[str]:
        """``(P,)`` clusters: the patient, or the case where none is known."""
        return cluster_ids(self.frame)

    @cached_property
    def by(self) -> Clusters:
        """The patients of the P pairs; a case of an unknown patient stands alone."""
        return clusters(self.frame["patient_id"].to_list(), self.frame["case_id"].to_list())

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """``(P,)``: scored, as opposed to undefined or failed."""
        return self.frame["state"].is_in(["ok", "flat"]).to_numpy()

    @cached_property
    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Selected ``(P, T)``, inside ``(P, T)`` and region area ``(P,)``; zero where a pair is not used."""
        shape = (len(self), len(self.protocol.thresholds))
        selected, inside = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        scored = self.frame.filter(pl.col("state").is_in(["ok", "flat"]))
        if len(scored):
            selected[self.used] = _lists(scored["selected"], shape[1])
            inside[self.used] = _lists(scored["inside"], shape[1])
        return selected, inside, self.frame["area"].fill_null(0).to_numpy()

    @cached_property
    def curves(self) -> dict[str, Floats]:
        """Dice, IoU, precision and recall, each ``(P, T)``; NaN where undefined."""
        selected, inside, area = self.counts
        values = overlap(selected, inside, area)
        strict = overlap(selected, inside, area, empty_prediction=self.protocol.empty_prediction)
        curves = {
            "dice": values.dice,
            "iou": strict.iou,
            "precision": values.precision,
            "recall": values.recall,
        }
        return {name: np.where(self.used[:, None], curve, np.nan) for name, curve in curves.items()}

    @cached_property
    def searched(self) -> NDArray[np.intp]:
        """``(P,)``: where each pair's searched threshold stands among the thresholds; -1 where there is none."""
        return search_thresholds(
            self.curves[self.protocol.search_by], self.finding, self.patient, self.protocol, self.seed
        )

    def further(self) -> dict[str, Floats]:
        """Return the values ``(P,)`` of the further metrics: name -> values."""
        if not self.metrics:
            return {}
        ties, inside = (self.frame[name].cast(pl.Float64).to_numpy() for name in ("ties", "ties_inside"))
        known = (self.protocol.thresholds, *self.counts, self.frame["total"].fill_null(0).to_numpy())
        counts = Counts(*known, self.searched, self.crossfitted, ties, inside, self.used)
        return {metric.spec.name: measured(metric, counts) for metric in self.metrics}

    def at_searched(self, name: str) -> Floats:
        """Return a curve's value at each pair's searched threshold, ``(P,)``."""
        return self._at(name, self.searched)

    @cached_property
    def crossfitted(self) -> NDArray[np.intp] | None:
        """``(P,)``: the same from the other half of the patients; None where the protocol allows no such search."""
        protocol = self.protocol.crossfitted
        if protocol is None:
            return None
        curve = self.curves[self.protocol.search_by]
        return search_thresholds(curve, self.finding, self.patient, protocol, self.seed)

    def at_crossfitted(self, name: str) -> Floats | None:
        """Return a curve's value at each pair's cross-fitted threshold, ``(P,)``; free of the search's optimism."""
        return None if self.crossfitted is None else self._at(name, self.crossfitted)

    def _at(self, name: str, index: NDArray[np.intp]) -> Floats:
        values = np.take_along_axis(self.curves[name], np.maximum(index, 0)[:, None], axis=1)[:, 0]
        return np.where(index >= 0, values, np.nan)

    @cached_property
    def floor(self) -> tuple[Floats, Floats]:
        """Dice and IoU ``(P,)`` of a map that marks everything."""
        area = self.counts[2].astype(float)
        total = self.frame["total"].fill_null(0).to_numpy().astype(float)
        with np.errstate(invalid="ignore"):
            dice, iou = 2 * area / (area + total), area / total
        return np.where(self.used, dice, np.nan), np.where(self.used, iou, np.nan)

    @cached_property
    def ceiling(self) -> tuple[Floats, Floats]:
        """Dice and IoU ``(P,)`` of the truth used as a map, at its own best threshold; NaN where it was not kept."""
        return self._kept("ceiling")

    @cached_property
    def prior(self) -> tuple[Floats, Floats]:
        """Dice and IoU ``(P,)`` of the class prior, cut where it fits the other half of the patients; NaN without."""
        return self._kept("prior")

    def _kept(self, what: str) -> tuple[Floats, Floats]:
        if f"{what}_selected" not in self.frame.columns:
            return np.full(len(self), np.nan), np.full(len(self), np.nan)
        area = self.counts[2].astype(float)
        selected, inside = (
            self.frame[f"{what}_{name}"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
            for name in ("selected", "inside")
        )
        with np.errstate(invalid="ignore"):
            dice, iou = 2 * inside / (area + selected), inside / (area + selected - inside)
        return np.where(self.used, dice, np.nan), np.where(self.used, iou, np.nan)

    def pointing(self, prefix: str = "") -> Floats:
        """Return hits ``(P,)`` under the protocol's tie rule; ``prefix="prior_"`` gives the class prior's."""
        return hits(self.frame, self.protocol.ties, prefix)


def _lists(column: pl.Series, length: int) -> NDArray[np.int64]:
    """Return a column of lists as an array ``(N, length)``."""
    return column.explode().to_numpy().reshape(len(column), length)


def hits(frame: pl.DataFrame, ties: str, prefix: str = "") -> Floats:
    """Return pointing hits ``(P,)`` from the counts of tied maxima; NaN where there are none."""
    n = frame[f"{prefix}ties"].cast(pl.Float64).to_numpy()
    inside = frame[f"{prefix}ties_inside"].cast(pl.Float64).to_numpy()
    if ties == "first":
        return frame[f"{prefix}first_inside"].cast(pl.Float64).to_numpy()
    if ties == "any":
        return np.where(np.isnan(inside), np.nan, (inside > 0).astype(float))
    share: Floats = inside / n
    return share


def cluster_ids(frame: pl.DataFrame) -> list[str]:
    """Return the cluster of every row: its patient, or its case where no patient is known."""
    own = pl.concat_str(pl.lit("case "), pl.col("case_id"))
    return frame.select(pl.coalesce(pl.col("patient_id"), own)).to_series().to_list()


def search_thresholds(
    curve: Floats, finding: NDArray[np.str_], patient: list[str], protocol: Protocol, seed: int
) -> NDArray[np.intp]:
    """Pick a threshold for every pair: the smallest among those with the largest mean.

    Args:
        curve: ``(P, T)`` the value that is maximised; NaN is left out of means.
        finding: ``(P,)`` names, for a search by class.
        patient: ``(P,)`` clusters, for a cross-fitted search.
        protocol: scope, split and the thresholds allowed.
        seed: of the split.

    Returns:
        ``(P,)`` indices among the thresholds; -1 where no pair of the scope has a value to search on.
    """
    allowed = curve[:, protocol.searched]
    scope = {"dataset": np.zeros(len(curve), dtype=np.intp), "image": np.arange(len(curve))}.get(protocol.scope)
    if scope is None:
        scope = np.unique(finding, return_inverse=True)[1]
    fold = np.zeros(len(curve), dtype=np.intp)
    if protocol.split == "crossfit":
        fold = patient_folds(patient, 2, seed)
    chosen = np.full(len(curve), -1, dtype=np.intp)
    for s, f in {*zip(scope.tolist(), fold.tolist(), strict=True)}:
        source = (scope == s) & ((fold != f) | (protocol.split == "test"))
        by = finding[source] if protocol.searched_mean == "macro" else np.zeros(int(source.sum()), dtype=np.intp)
        best = best_threshold(mean_over_groups(allowed[source], by))
        if best is not None:
            chosen[(scope == s) & (fold == f)] = protocol.searched[best]
    return chosen


def mean_over_groups(curves: Floats, group: NDArray[Any]) -> Floats:
    """Average curves ``(P, T)`` within each group, then over groups: ``(T,)``, NaN where nothing is defined."""
    kinds = np.unique(group)
    means = np.full((kinds.size, curves.shape[1]), np.nan)
    for k, kind in enumerate(kinds):
        means[k] = column_means(curves[group == kind])
    return column_means(means)


def column_means(values: Floats) -> Floats:
    """Average each column over its defined values, ``(T,)``; NaN where there are none."""
    defined = ~np.isnan(values)
    total, n = np.where(defined, values, 0).sum(axis=0), defined.sum(axis=0)
    means: Floats = np.divide(total, n, out=np.full(values.shape[1], np.nan), where=n > 0)
    return means
