"""Paired tests between models: closed answers on shared questions, flips over the pool that both share."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from medground.benchmarks.heal_medvqa.pools import Answers, shared_pool
from medground.benchmarks.heal_medvqa.specs import SPECS
from medground.benchmarks.heal_medvqa.variants import VARIANTS
from medground.metrics.bootstrap import clusters
from medground.metrics.decide import Rule, decide_difference, rule_of
from medground.metrics.differences import Difference, compare_means, correct
from medground.metrics.spec import spec_of

TESTED = ("accuracy", *VARIANTS)


def compared(natural: Mapping[str, Answers], rules: Mapping[str, Rule]) -> pl.DataFrame:
    """Return one line a pair of models and metric, corrected over the pairs of each metric.

    Args:
        natural: model -> its answers on one dataset.
        rules: of decision, by family.
    """
    lines: list[dict[str, Any]] = []
    pairs = list(combinations(natural, 2))
    for metric in TESTED:
        made = [difference(natural[a], natural[b], metric) for a, b in pairs]
        known = [(pair, one) for pair, one in zip(pairs, made, strict=True) if one.value is not None]
        corrected = correct([one for _, one in known], "pairs of models") if len(known) > 1 else [d for _, d in known]
        spec = spec_of(metric, "heal_medvqa", SPECS)
        for ((a, b), _), one in zip(known, corrected, strict=True):
            said = decide_difference(one, spec, rule_of(spec, rules))
            lines.append(
                {
                    "metric": metric,
                    "first": a,
                    "second": b,
                    "difference": one.value,
                    "low": one.low,
                    "high": one.high,
                    "p": one.p_claim,
                    "n": one.n,
                    "said": said.word,
                    "because": said.because,
                }
            )
    return pl.DataFrame(lines, schema=_SCHEMA)


_SCHEMA: dict[str, Any] = {
    "metric": pl.String,
    "first": pl.String,
    "second": pl.String,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p": pl.Float64,
    "n": pl.Int64,
    "said": pl.String,
    "because": pl.String,
}


def difference(first: Answers, second: Answers, metric: str) -> Difference:
    """Return first minus second on what both have: all closed questions, or the pool where both rightly said yes."""
    if metric != "accuracy":
        pool = shared_pool([first, second])
        (a, by), (b, _) = first.hits(pool, metric), second.hits(pool, metric)
        return compare_means(a, b, by)
    other = {row["question_id"]: row for row in second.base}
    pairs = [(row, other[row["question_id"]]) for row in first.base if row["question_id"] in other]
    right = [[float(row["answer"] == row["wanted"]) for row in side] for side in zip(*pairs, strict=True)] or [[], []]
    by = clusters([row["cluster"] for row, _ in pairs])
    return compare_means(np.array(right[0]), np.array(right[1]), by)
