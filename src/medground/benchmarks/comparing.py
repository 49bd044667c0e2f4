"""Two models on the same items, on any metric of any benchmark.

A benchmark says what a model did as `Sample`s: one a metric, one row an item. Everything else is the same for all:
items are matched, models are compared within groups (findings, say) and over them, p values are corrected over all
pairs of models, datasets and groups of a metric, and the one decision rule says what follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.errors import RunError
from medground.metrics import decide
from medground.metrics.bootstrap import Clusters, clusters
from medground.metrics.comparison import discordant, mcnemar
from medground.metrics.differences import (
    Difference,
    compare_aucs,
    compare_average_precisions,
    compare_f1s,
    compare_macro_rankings,
    compare_macros,
    compare_means,
    correct,
)
from medground.metrics.influence import of_f1, of_mean
from medground.metrics.permutation import AUC, AVERAGE_PRECISION, Ranking
from medground.metrics.spec import MetricSpec

KEY = ["item", "group"]


@dataclass(frozen=True)
class Sample:
    """What one model did, as far as one metric is concerned.

    Attributes:
        spec: the metric; its statistic says which columns the table has.
        table: ``item`` (text, unique within its group), ``patient`` (text or null), ``group`` (a finding, say; empty
            for one group of all), and ``value`` (of a mean), or ``truth`` and ``answer`` (the score of a ranking, the
            call of an F1). Null where undefined.
        ranking: of a ranking, which metric.
    """

    spec: MetricSpec
    table: pl.DataFrame
    ranking: Ranking = AUC


@runtime_checkable
class Comparable(Protocol):
    """A benchmark whose runs can be compared."""

    @property
    def seed(self) -> int:
        """Of folds and flips: that of the run."""

    @property
    def level(self) -> float:
        """Of the intervals."""

    def settings(self) -> Mapping[str, Any]:
        """Return what must be equal in two runs: protocol, reader, judge."""

    def comparison_notes(self) -> Sequence[str]:
        """Return what must be known to read a comparison, such as the protocol in words."""

    def matched(
        self, first: pl.DataFrame, second: pl.DataFrame, place: tuple[str, ...], other: Any
    ) -> Iterable[tuple[Sample, Sample]]:
        """Return what two models did on the items that both have, metric by metric.

        Args:
            first: rows of the first model.
            second: rows of the second.
            place: path of the task without its model: a dataset, say.
            other: the benchmark of the second model's run.
        """


@dataclass(frozen=True)
class Pair:
    """Two models on one dataset, with what each did on the items that both have, metric by metric."""

    first: str
    second: str
    dataset: str
    samples: Sequence[tuple[Sample, Sample]]


@dataclass(frozen=True)
class Contrast:
    """One difference: of which pair, metric and group (empty: over all groups)."""

    pair: Pair
    spec: MetricSpec
    group: str
    difference: Difference
    mcnemar_p: float | None = None


def compare_pairs(
    pairs: Sequence[Pair],
    rules: Mapping[str, decide.Rule] | None = None,
    *,
    seed: int = 0,
    level: float = 0.95,
) -> list[dict[str, Any]]:
    """Compare every pair of models on every metric.

    Args:
        pairs: the models; all that are given form one family a metric.
        rules: margins and minima by family of metrics; None: the usual ones.
        seed: of flips and swaps.
        level: of the intervals.

    Returns:
        One JSON-like record a pair, metric and group: ``first, second, dataset, metric, title, group, difference, low,
        high, p, p_family, family, decision, direction, because, margin, gain, loss, n, n_undefined, patients,
        mcnemar_p, reason``. Differences are first minus second, on the metric's own scale.
    """
    contrasts = [contrast for pair in pairs for contrast in _contrasts(pair, seed, level)]
    records = []
    for contrast in _corrected(contrasts, seed):
        spec, d = contrast.spec, contrast.difference
        rule = decide.rule_of(spec, rules or decide.DEFAULTS)
        said = decide.decide_difference(d, spec, rule)
        records.append(
            {
                "first": contrast.pair.first,
                "second": contrast.pair.second,
                "dataset": contrast.pair.dataset,
                "metric": spec.name,
                "title": spec.title,
                "group": contrast.group,
                "difference": d.value,
                "low": d.low,
                "high": d.high,
                "p": d.p,
                "p_family": d.p_claim,
                "family": d.family,
                "decision": said.word,
                "direction": said.direction,
                "because": said.because,
                "margin": said.margin,
                "gain": d.gain,
                "loss": d.loss,
                "n": d.n,
                "n_undefined": d.n_undefined,
                "patients": min(d.evidence, default=0),
                "mcnemar_p": contrast.mcnemar_p,
                "reason": d.reason if d.value is None else None,
            }
        )
    return records


def _corrected(contrasts: Sequence[Contrast], seed: int) -> list[Contrast]:
    """Correct within each metric: one family of all groups, one of all means over groups."""
    made = list(contrasts)
    for name in dict.fromkeys(contrast.spec.name for contrast in contrasts):
        for whole in (False, True):
            own = [i for i, c in enumerate(contrasts) if c.spec.name == name and (not c.group) == whole]
            what = "comparisons of models and datasets" if whole else "comparisons of models, datasets and groups"
            for i, d in zip(own, correct([contrasts[i].difference for i in own], what, seed), strict=True):
                c = contrasts[i]
                made[i] = Contrast(c.pair, c.spec, c.group, d, c.mcnemar_p)
    return made


def _contrasts(pair: Pair, seed: int, level: float) -> Iterator[Contrast]:
    for first, second in pair.samples:
        joined = _matched(first, second, f"{pair.dataset}: {pair.first}, {pair.second}")
        by = clusters(joined["patient"].to_list(), joined["item"].to_list())
        groups = joined["group"].to_numpy().astype(str)
        names = [name for name in dict.fromkeys(first.table["group"]) if name]
        compare = _Comparison(first, joined, by, seed, level)
        for name in names:
            mask = groups == name
            yield Contrast(pair, first.spec, name, compare.one(mask), compare.mcnemar(mask))
        masks = [groups == name for name in names]
        whole = compare.over(masks) if masks else compare.one(np.ones(len(joined), dtype=bool))
        alone = None if masks else compare.mcnemar(np.ones(len(joined), dtype=bool))
        yield Contrast(pair, first.spec, "", whole, alone)


@dataclass(frozen=True)
class _Comparison:
    sample: Sample
    joined: pl.DataFrame
    by: Clusters
    seed: int
    level: float

    def _column(self, name: str, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        return self.joined[name].cast(pl.Float64).to_numpy()[mask]

    def _by(self, mask: NDArray[np.bool_]) -> Clusters:
        return Clusters(self.by.codes[mask], self.by.count)

    def one(self, mask: NDArray[np.bool_]) -> Difference:
        """Compare within one group."""
        how = {"level": self.level, "seed": self.seed}
        by = self._by(mask)
        if self.sample.spec.statistic in {"ranking", "f1"}:
            truth, a, b = (self._column(name, mask) for name in ("truth", "answer", "answer_second"))
            compare = compare_f1s
            if self.sample.spec.statistic == "ranking":
                compare = compare_aucs if self.sample.ranking == AUC else compare_average_precisions
            return compare(truth, a, b, by, **how)  # type: ignore[arg-type]  # level and seed
        return compare_means(self._column("value", mask), self._column("value_second", mask), by, **how)  # type: ignore[arg-type]  # level and seed

    def over(self, masks: Sequence[NDArray[np.bool_]]) -> Difference:
        """Compare the means over groups."""
        if self.sample.spec.statistic == "ranking":
            everything = np.ones(len(self.joined), dtype=bool)
            truth, a, b = (self._column(name, everything) for name in ("truth", "answer", "answer_second"))
            classes = [(np.where(mask, truth, np.nan), a, b) for mask in masks]
            return compare_macro_rankings(classes, self.by, self.sample.ranking, self.level, self.seed)
        pairs = []
        for mask in masks:
            by = self._by(mask)
            if self.sample.spec.statistic == "f1":
                truth = self._column("truth", mask)
                one, two = (of_f1(truth, self._column(n, mask), by) for n in ("answer", "answer_second"))
            else:
                one, two = (of_mean(self._column(n, mask), by) for n in ("value", "value_second"))
            pairs.append((one, two))
        return compare_macros(pairs, level=self.level, seed=self.seed)

    def mcnemar(self, mask: NDArray[np.bool_]) -> float | None:
        """Return McNemar's exact p where the values are right or wrong and every patient has one item."""
        if "value" not in self.joined.columns:
            return None
        a, b = self._column("value", mask), self._column("value_second", mask)
        alone = np.bincount(self.by.codes[mask], minlength=1).max(initial=0) <= 1
        if not alone or not a.size or not np.isin(np.concatenate([a, b]), (0, 1)).all():
            return None
        return mcnemar(*discordant(a, b)).exact_p


def _matched(first: Sample, second: Sample, where: str) -> pl.DataFrame:
    """Join the items that both have and in which both have a value.

    Raises:
        RunError: an item stands twice, or the two have another truth about one.
    """
    for sample in (first, second):
        if sample.table.select(KEY).is_duplicated().any():
            raise RunError("an item stands twice", where=where, got=sample.spec.name)
    columns = [name for name in ("value", "truth", "answer") if name in first.table.columns]
    other = second.table.select(*KEY, *columns)
    joined = first.table.join(other, on=KEY, how="inner", suffix="_second", maintain_order="left")
    if "truth" in columns and not (joined["truth"].eq_missing(joined["truth_second"])).all():
        differ = int((~joined["truth"].eq_missing(joined["truth_second"])).sum())
        raise RunError(
            "the models were held against another truth about the same item",
            where=where,
            expected="one dataset, annotated alike",
            got=f"{differ} of {len(joined)} items differ",
        )
    known = pl.all_horizontal(pl.col(name).is_not_null() & pl.col(name).is_not_nan() for name in _values(joined))
    return joined.filter(known).sort(KEY)


def _values(joined: pl.DataFrame) -> list[str]:
    return [name for name in ("value", "value_second", "truth", "answer", "answer_second") if name in joined.columns]


__all__ = ["AUC", "AVERAGE_PRECISION", "Comparable", "Contrast", "Pair", "Sample", "compare_pairs"]
