"""Two models on the same items, on any metric of any benchmark.

A benchmark says what a model did as samples (`medground.benchmarks.comparable`): one a metric, a line an item.
Everything else is the same for all: items are matched, models are compared within groups (findings, say) and over
them, p values are corrected over all pairs of models, datasets, methods and groups of a metric, and the one decision
rule says what follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.comparable import Pair, Sample
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
from medground.metrics.permutation import AUC

KEY = ["item", "group"]
ALL, MACRO = "all", "macro"
"""Scopes of a difference over everything, and of the mean over groups, as cells call them."""


@dataclass(frozen=True)
class Contrast:
    """One difference: of which pair and sample, in which scope and group.

    Attributes:
        pair: the two models.
        sample: the first one's: its metric, method and groups are those of both.
        scope: ``all``, ``macro`` (the mean over groups), or what the groups are.
        group: empty over all.
        difference: first minus second.
        reliability: the smaller test-retest correlation of the two; None where one was not measured.
        mcnemar_p: where the values are right or wrong and every patient has one item.
        patients: whose contributions the difference holds, in their order; of one dataset.
    """

    pair: Pair
    sample: Sample
    scope: str
    group: str
    difference: Difference
    reliability: float | None = None
    mcnemar_p: float | None = None
    patients: Sequence[str] = ()

    def record(self, rules: Mapping[str, decide.Rule]) -> dict[str, Any]:
        """Return it with what follows from it, JSON-like."""
        spec, d = self.sample.spec, self.difference
        decision = decide.decide_difference(d, spec, decide.rule_of(spec, rules), self.reliability)
        return {
            "first": self.pair.first,
            "second": self.pair.second,
            "dataset": self.pair.dataset,
            "method": self.sample.method,
            "metric": spec.name,
            "title": spec.title,
            "scope": self.scope,
            "group": self.group,
            "difference": d.value,
            "low": d.low,
            "high": d.high,
            "p": d.p,
            "p_family": d.p_claim,
            "family": d.family,
            "decision": decision.word,
            "direction": decision.direction,
            "because": decision.because,
            "margin": decision.margin,
            "gain": d.gain,
            "loss": d.loss,
            "n": d.n,
            "n_undefined": d.n_undefined,
            "patients": min(d.evidence, default=0),
            "mcnemar_p": self.mcnemar_p,
            "reason": d.reason if d.value is None else None,
        }


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
        One JSON-like record a pair, metric, method and group: ``first, second, dataset, method, metric, title, scope,
        group, difference, low, high, p, p_family, family, decision, direction, because, margin, gain, loss, n,
        n_undefined, patients, mcnemar_p, reason``. Differences are first minus second, on the metric's own scale.
    """
    contrasts = [contrast for pair in pairs for contrast in _contrasts(pair, seed, level)]
    return [contrast.record(rules or decide.DEFAULTS) for contrast in _corrected(contrasts, seed)]


def _corrected(contrasts: Sequence[Contrast], seed: int) -> list[Contrast]:
    """Correct within each metric: one family of all groups of a kind, one of all means over them."""
    corrected = list(contrasts)
    families = dict.fromkeys((c.sample.spec.name, c.scope) for c in contrasts)
    for name, scope in families:
        own = [i for i, c in enumerate(contrasts) if (c.sample.spec.name, c.scope) == (name, scope)]
        whole = scope in {ALL, MACRO}
        what = "comparisons of models and datasets" if whole else "comparisons of models, datasets and groups"
        for i, d in zip(own, correct(_aligned([contrasts[i] for i in own]), what, seed), strict=True):
            corrected[i] = replace(contrasts[i], difference=d)
    return corrected


def _aligned(contrasts: Sequence[Contrast]) -> list[Difference]:
    """Return the differences with contributions over all patients of the family, so that whoever is in two flips once.

    A patient is known by dataset and id; those that a contrast has not add nothing to it.
    """
    keys = [[(c.pair.dataset, patient) for patient in c.patients] for c in contrasts]
    place = {key: i for i, key in enumerate(sorted({key for own in keys for key in own}))}
    differences = []
    for contrast, own in zip(contrasts, keys, strict=True):
        held = contrast.difference.contribution
        if held is not None:
            whole = np.zeros(len(place))
            whole[[place[key] for key in own]] = held
            held = whole
        differences.append(replace(contrast.difference, contribution=held))
    return differences


def _contrasts(pair: Pair, seed: int, level: float) -> Iterator[Contrast]:
    for first, second in pair.samples:
        compare = _Comparison.of(first, second, f"{pair.dataset}: {pair.first}, {pair.second}", seed, level)
        retests = [s.reliability for s in (first, second) if s.reliability is not None]
        reliability = min(retests) if len(retests) == 2 else None
        names = [name for name in dict.fromkeys(first.table["group"]) if name]
        masks = [compare.inside(name) for name in names]
        more = (reliability, None, compare.patients)
        for name, mask in zip(names, masks, strict=True):
            one = Contrast(pair, first, first.groups, name, compare.one(mask), *more)
            yield replace(one, mcnemar_p=compare.mcnemar(mask))
        everything = np.ones(len(compare.joined), dtype=bool)
        if masks:
            yield Contrast(pair, first, MACRO, "", compare.over([m & compare.known for m in masks]), *more)
        else:
            one = Contrast(pair, first, ALL, "", compare.one(everything), *more)
            yield replace(one, mcnemar_p=compare.mcnemar(everything))


@dataclass(frozen=True)
class _Comparison:
    """Two samples of one metric on the items that both have; ``known``: those in which both have a value."""

    sample: Sample
    joined: pl.DataFrame
    known: NDArray[np.bool_]
    by: Clusters
    seed: int
    level: float

    @classmethod
    def of(cls, first: Sample, second: Sample, where: str, seed: int, level: float) -> _Comparison:
        joined = _matched(first, second, where)
        known = joined.select(
            pl.all_horizontal(pl.col(name).is_not_null() & pl.col(name).is_not_nan() for name in _values(joined))
        )
        by = clusters(joined["patient"].to_list(), joined["item"].to_list())
        return cls(first, joined, known.to_series().to_numpy().astype(bool), by, seed, level)

    @property
    def patients(self) -> list[str]:
        """Ids of the patients, in the order of their codes; that of the item where the patient is not known."""
        names = {}
        for code, patient, item in zip(self.by.codes, self.joined["patient"], self.joined["item"], strict=True):
            names[int(code)] = f"item {item}" if patient is None else f"patient {patient}"
        return [names[code] for code in range(self.by.count)]

    def inside(self, group: str) -> NDArray[np.bool_]:
        """Return which items are of a group."""
        return np.asarray(self.joined["group"].to_numpy().astype(str) == group)

    def _column(self, name: str, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        return self.joined[name].cast(pl.Float64).to_numpy()[mask]

    def _by(self, mask: NDArray[np.bool_]) -> Clusters:
        return Clusters(self.by.codes[mask], self.by.count)

    def one(self, mask: NDArray[np.bool_]) -> Difference:
        """Compare within one group; items without a value are counted."""
        defined = mask & self.known
        difference = self._defined(defined)
        return replace(difference, n_undefined=difference.n_undefined + int(mask.sum() - defined.sum()))

    def _defined(self, mask: NDArray[np.bool_]) -> Difference:
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
        mask = mask & self.known
        a, b = self._column("value", mask), self._column("value_second", mask)
        alone = np.bincount(self.by.codes[mask], minlength=1).max(initial=0) <= 1
        if not alone or not a.size or not np.isin(np.concatenate([a, b]), (0, 1)).all():
            return None
        return mcnemar(*discordant(a, b)).exact_p


def _matched(first: Sample, second: Sample, where: str) -> pl.DataFrame:
    """Join the items that both have.

    Raises:
        RunError: an item stands twice, or the two differ in what it is or in the truth about it.
    """
    for sample in (first, second):
        if sample.table.select(KEY).is_duplicated().any():
            raise RunError("an item stands twice", where=where, got=sample.spec.name)
    columns = [name for name in ("about", "value", "truth", "answer") if name in first.table.columns]
    other = second.table.select(*KEY, *columns)
    joined = first.table.join(other, on=KEY, how="inner", suffix="_second", maintain_order="left")
    for name, what in (("about", "an item of one name is another one in the two"), ("truth", _ANOTHER_TRUTH)):
        if name in columns and not (joined[name].eq_missing(joined[f"{name}_second"])).all():
            differ = int((~joined[name].eq_missing(joined[f"{name}_second"])).sum())
            raise RunError(
                what,
                where=where,
                expected="one dataset, annotated alike",
                got=f"{differ} of {len(joined)} items differ",
            )
    return joined.sort(KEY)


_ANOTHER_TRUTH = "the models were held against another truth about the same item"


def _values(joined: pl.DataFrame) -> list[str]:
    return [name for name in ("value", "value_second", "truth", "answer", "answer_second") if name in joined.columns]
