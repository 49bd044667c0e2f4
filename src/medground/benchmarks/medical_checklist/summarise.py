"""From rows to cells: accuracy under every policy, calibration, groups, and what the picture adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.medical_checklist import groups
from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.benchmarks.medical_checklist.scoring.parsing import Policy
from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.benchmarks.results import Cell
from medground.metrics.bootstrap import Clusters, clusters
from medground.metrics.differences import Difference, compare_means
from medground.metrics.inference import Estimate, estimate_macro, estimate_mean, estimate_ratio
from medground.metrics.influence import of_mean

Floats = NDArray[np.float64]
Rows = NDArray[np.intp] | NDArray[np.bool_]
CLIP = 1e-12
"""Least probability inside a logarithm."""
LEAST_PER_TERM = 20
NO_ITEM = "no item"
NO_PROBABILITY = "answers in prose have no probability"


def policy_credit(frame: pl.DataFrame, policy: Policy) -> Floats:
    """Return each item's credit in [0, 1] under a policy; NaN where it failed or is excluded.

    Args:
        frame: with ``credit``, ``parsed``, ``answers`` and ``outcome``.
        policy: what becomes of an answer that cannot be read.
    """
    right, parsed, asked = (frame[c].cast(pl.Float64).to_numpy() for c in ("credit", "parsed", "answers"))
    with np.errstate(invalid="ignore", divide="ignore"):
        if policy == "excluded":
            value = np.where(parsed > 0, right / parsed, np.nan)
        elif policy == "wrong":
            value = right / asked
        else:
            value = (right + (asked - parsed) / 2) / asked
    return np.where((frame["outcome"] == "ok").to_numpy(), value, np.nan)


@dataclass(frozen=True)
class Scored:
    """The rows of one model on one set of items, in the order of the items.

    Attributes:
        model: label.
        dataset: label.
        reading: name of the reading.
        items: all items.
        frame: rows of the main picture, one an item.
        controls: name -> rows of a control.
        blind: each item's credit from the best blind scorer, with its name; None without an audit.
        policy: of the headline.
        exposure: source -> how it stands to the model's training; without it there are no such groups.
    """

    model: str
    dataset: str
    reading: str
    items: Sequence[ChecklistItem]
    frame: pl.DataFrame
    controls: dict[str, pl.DataFrame]
    blind: tuple[str, Floats] | None
    policy: Policy = "half"
    exposure: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def credit(self) -> Floats:
        """Credit under the headline's policy."""
        return policy_credit(self.frame, self.policy)

    @cached_property
    def p(self) -> Floats:
        """Probability of the true caption; NaN for prose."""
        return self.frame["p"].cast(pl.Float64).fill_null(np.nan).to_numpy()

    @cached_property
    def by(self) -> Clusters:
        """Clusters of the items."""
        return self._clusters(np.arange(len(self.items)))

    @cached_property
    def _codes(self) -> NDArray[np.int64]:
        return clusters([i.cluster for i in self.items], [i.item_id for i in self.items]).codes

    def _clusters(self, rows: Rows) -> Clusters:
        names, codes = np.unique(self._codes[rows], return_inverse=True)
        return Clusters(codes.astype(np.int64), len(names))

    @cached_property
    def _not_ok(self) -> NDArray[np.bool_]:
        return (self.frame["outcome"] != "ok").to_numpy()

    @cached_property
    def _flags(self) -> dict[str, NDArray[np.bool_]]:
        names = ("identical", "beyond_limit")
        return {name: self.frame[name].fill_null(value=False).to_numpy() for name in names}

    def cells(self) -> Iterator[Cell]:
        """Yield every cell."""
        everything = np.arange(len(self.items))
        yield self._mean("accuracy", everything, "all", "")
        yield from self._policies()
        yield from self._calibration(everything, "all", "")
        yield from self._macro()
        yield from self._pairs()
        yield from self._visual()
        yield from self._order()
        for scope, names in self._groupings():
            for name, rows in rows_of(names):
                yield self._mean("accuracy", rows, scope, name)
                if scope == "type":
                    yield from self._calibration(rows, scope, name)
        yield from self._terms()

    def _groupings(self) -> Iterator[tuple[str, list[str]]]:
        yield "type", [TYPES[i.tui].label for i in self.items]
        lengths = [i.n_tokens for i in self.items]
        edges = groups.length_edges(lengths)
        marks = ["0", *(f"{e:g}" for e in edges), "up"]
        yield "length", [f"{b + 1}: {marks[b]} to {marks[b + 1]}" for b in groups.length_bins(lengths, edges)]
        bins = groups.similarity_bins([i.similarity for i in self.items])
        yield "similarity", [f"{b + 1}: {b / groups.BINS:.2f} to {(b + 1) / groups.BINS:.2f}" for b in bins]
        yield "source", [i.source for i in self.items]
        if self.exposure:
            yield "exposure", [self.exposure[i.source] for i in self.items]

    def _mean(self, metric: str, rows: Rows, scope: str, group: str, values: Floats | None = None) -> Cell:
        held = (self.credit if values is None else values)[rows]
        estimate = estimate_mean(held, self._clusters(rows)) if len(held) else Estimate(None, reason=NO_ITEM)
        failed = int(self._not_ok[rows].sum()) if values is None else 0
        ties = {"ties": int((held == 0.5).sum())} if metric.startswith("accuracy") else {}
        if metric == "accuracy":
            ties |= {name: int(flag[rows].sum()) for name, flag in self._flags.items()}
        return self._cell(metric, scope, group, estimate, failed=failed, counts=ties)

    def _cell(self, metric: str, scope: str, group: str, e: Estimate, **more: Any) -> Cell:
        failed = more.get("failed", 0)
        return Cell(
            benchmark="medical_checklist",
            reading=self.reading,
            model=self.model,
            dataset=self.dataset,
            scope=scope,
            group=group,
            metric=metric,
            value=e.value,
            low=e.low if e.value is not None else None,
            high=e.high if e.value is not None else None,
            n=e.n,
            undefined=max(0, e.n_undefined - failed),
            reason=None if e.value is not None else e.reason or "undefined",
            **more,
        )

    def _policies(self) -> Iterator[Cell]:
        ok = (self.frame["outcome"] == "ok").to_numpy()
        right, parsed, asked = (
            np.where(ok, self.frame[c].cast(pl.Float64).fill_null(np.nan).to_numpy(), np.nan)
            for c in ("credit", "parsed", "answers")
        )
        if not ok.any():
            return
        kept = ok & (np.nan_to_num(parsed) > 0)
        excluded = (
            estimate_ratio(right[kept], parsed[kept], self._clusters(kept))
            if kept.any()
            else Estimate(None, reason="no answer parsed")
        )
        yield self._cell("accuracy_excluded", "all", "", excluded)
        for name in ("wrong", "half"):
            values = policy_credit(self.frame, name)
            yield self._cell(f"accuracy_{name}", "all", "", estimate_mean(values, self.by))
        yield self._cell("coverage", "all", "", estimate_ratio(parsed[ok], asked[ok], self._clusters(ok)))

    def _calibration(self, rows: Rows, scope: str, group: str) -> Iterator[Cell]:
        rows = rows[~np.isnan(self.p[rows])]
        if not len(rows):
            if scope == "all":
                yield from (
                    self._cell(m, scope, group, Estimate(None, reason=NO_PROBABILITY))
                    for m in ("brier", "log_loss", "ece")
                )
            return
        p = self.p[rows]
        by = self._clusters(rows)
        yield self._cell("brier", scope, group, estimate_mean((1 - p) ** 2, by))
        loss = -np.log(np.clip(p, CLIP, 1.0))
        yield self._cell("log_loss", scope, group, Estimate(float(loss.mean()), n=len(p)))
        if scope == "all":
            yield self._cell("ece", scope, group, Estimate(expected_calibration_error(p), n=len(p)))

    def _macro(self) -> Iterator[Cell]:
        parts = []
        types = np.array([i.tui for i in self.items])
        for tui in sorted(set(types.tolist())):
            values = np.where(types == tui, self.credit, np.nan)
            if not np.isnan(values).all():
                parts.append(of_mean(values, self.by))
        estimate = estimate_macro(parts) if parts else Estimate(None, reason=NO_ITEM)
        yield self._cell("accuracy", "macro", "", estimate, counts={"types": len(parts)})

    def _pairs(self) -> Iterator[Cell]:
        held = self.pairs
        if not held:
            return
        names = sorted(held)
        both = np.array([pair_credit(held[n]) for n in names])
        yield self._cell("pair_accuracy", "pairs", "", estimate_mean(both, clusters(names, names)))

    @cached_property
    def pairs(self) -> dict[str, list[float]]:
        """Id of a scene pair -> the credit of its members."""
        held: dict[str, list[float]] = {}
        for item, value in zip(self.items, self.credit, strict=True):
            if item.pair:
                held.setdefault(item.pair, []).append(float(value))
        return held

    def _visual(self) -> Iterator[Cell]:
        for name, frame in self.controls.items():
            other = policy_credit(frame, self.policy)
            yield self._cell(f"accuracy_{name}", "all", "", estimate_mean(other, self.by))
            yield self._difference(f"gain_{name}", other)
        if self.blind is None:
            return
        _, blind = self.blind
        yield self._cell("blind", "all", "", estimate_mean(blind, self.by))
        yield self._difference("gain_blind", blind)
        wrong = np.flatnonzero(blind < 0.5)
        if len(wrong):
            yield self._mean("accuracy_blind_wrong", wrong, "all", "")

    def _difference(self, metric: str, other: Floats) -> Cell:
        return self._cell(metric, "all", "", self.against(other))

    def against(self, other: Floats) -> Difference:
        """Return the paired difference of this model's credit and another's on the same items."""
        return compare_means(self.credit, other, self.by)

    def _order(self) -> Iterator[Cell]:
        a, b = self.both_sides
        if a is None or b is None:
            return
        both = ~(np.isnan(a) | np.isnan(b))
        if not both.any():
            return
        by = self._clusters(both)
        right_first, right_second = a[both], b[both]
        yield self._cell("flip_rate", "all", "", estimate_mean((right_first != right_second).astype(float), by))
        yield self._cell(
            "consistent", "all", "", estimate_mean(((right_first == 1) & (right_second == 1)).astype(float), by)
        )
        chose_a = (right_first + 1 - right_second) / 2
        yield self._cell("position_bias", "all", "", Estimate(float(chose_a.mean() - 0.5), n=int(both.sum())))

    @cached_property
    def both_sides(self) -> tuple[Floats | None, Floats | None]:
        """Return 1 where the model is right with the true caption as A, and as B; NaN where unparsed."""
        if self.frame["p_first"].is_not_null().any() and self.frame["p_second"].is_not_null().any():
            first, second = (
                self.frame[c].cast(pl.Float64).fill_null(np.nan).to_numpy() for c in ("p_first", "p_second")
            )
            return np.where(np.isnan(first), np.nan, first > 0.5), np.where(np.isnan(second), np.nan, second < 0.5)
        if not (self.frame["choice_first"].is_not_null().any() and self.frame["choice_second"].is_not_null().any()):
            return None, None
        sides = []
        for column, right in (("choice_first", "A"), ("choice_second", "B")):
            chosen = self.frame[column].to_list()
            sides.append(np.array([np.nan if c is None else float(c == right) for c in chosen]))
        return sides[0], sides[1]

    def _terms(self) -> Iterator[Cell]:
        positives = [i.term_positive.casefold() for i in self.items]
        negatives = [i.term_negative.casefold() for i in self.items]
        as_true, as_false = dict(rows_of(positives)), dict(rows_of(negatives))
        for row in groups.by_term(positives, negatives, self.credit):
            if row.n_positive >= LEAST_PER_TERM:
                yield self._mean("accuracy", as_true[row.term], "term", row.term)
            if row.n_replacement >= LEAST_PER_TERM:
                yield self._mean("wins_as_replacement", as_false[row.term], "term", row.term, 1 - self.credit)
            if row.n_positive + row.n_replacement >= LEAST_PER_TERM:
                n = row.n_positive + row.n_replacement
                yield self._cell("preference", "term", row.term, Estimate(row.preference, n=n))


def rows_of(names: Sequence[str]) -> list[tuple[str, NDArray[np.intp]]]:
    """Return every name, sorted, with the rows that have it."""
    unique, codes = np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.searchsorted(codes[order], np.arange(1, len(unique))))
    return [(str(name), part) for name, part in zip(unique, parts, strict=True)] if len(names) else []


def pair_credit(values: Sequence[float]) -> float:
    """Return 1 where both members of a mirrored pair are right, else 0; NaN where one is missing."""
    if len(values) != 2 or any(np.isnan(values)):
        return float("nan")
    return float(min(values) == 1)


def expected_calibration_error(p: Floats, bins: int = 10) -> float:
    """Return the calibration error of choices: confidence max(p, 1 - p) in [.5, 1] in equal bins, closed on the right.

    A tie counts one half as accuracy.
    """
    confidence = np.maximum(p, 1 - p)
    right = np.where(np.abs(p - 0.5) < 1e-9, 0.5, p > 0.5)
    edges = np.linspace(0.5, 1, bins + 1)
    where = np.clip(np.searchsorted(edges[1:-1], confidence, side="left"), 0, bins - 1)
    total = 0.0
    for b in np.unique(where):
        rows = where == b
        total += rows.sum() * abs(confidence[rows].mean() - right[rows].mean())
    return float(total / len(p))


__all__ = ["Scored", "expected_calibration_error", "pair_credit", "policy_credit"]
