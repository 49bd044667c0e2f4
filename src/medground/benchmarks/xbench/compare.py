"""Two models on the same items: paired differences, McNemar's test, Holm over classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.xbench.grounding import Resampling, grounding_values
from medground.benchmarks.xbench.pairs import Floats, Pairs
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.recognition import answers
from medground.errors import RunError
from medground.metrics.bootstrap import bootstrap_mean, bootstrap_ranking, clusters, macro_replicates
from medground.metrics.classification import auc, macro, per_class
from medground.metrics.comparison import (
    Difference,
    discordant,
    holm,
    mcnemar,
    paired_aucs,
    paired_difference,
    paired_means,
)
from medground.metrics.values import mean_defined

GROUNDING = ("pointing", "dice@best", "iou@best")


def shared_rows(first: pl.DataFrame, second: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the (case, finding) pairs that both have and that neither model saw in training, in one order.

    Raises:
        RunError: the two have another truth about a pair: their cases only share their names.
    """
    key = ["case_id", "finding"]
    kept = first.filter(~pl.col("seen")).select(key).join(second.filter(~pl.col("seen")).select(key), on=key)
    kept = kept.sort(key)
    one, two = (kept.join(rows, on=key, how="left", maintain_order="left") for rows in (first, second))
    # The area is unknown where a case could not be read.
    same = one["label"].eq_missing(two["label"]) & (one["area"] == two["area"]).fill_null(value=True)
    if not same.all():
        case, finding = kept.filter(~same).row(0)
        raise RunError(
            "the runs have another truth about the same case",
            where=f"{case}, {finding}",
            expected="runs over one dataset, annotated alike",
            got=f"{(~same).sum()} of {len(same)} shared pairs differ in label or region",
        )
    return one, two


def compare_rows(
    first: pl.DataFrame, second: pl.DataFrame, findings: Sequence[str], protocol: Protocol, how: Resampling
) -> list[dict[str, Any]]:
    """Compare two tables of rows that hold the same pairs in the same order.

    Args:
        first: rows of the first model, see :func:`shared_rows`.
        second: rows of the second.
        findings: classes, in order.
        protocol: the one under which both were counted.
        how: the intervals; the same patients are drawn for both models.

    Returns:
        One record a metric and class, or macro: difference (first minus second), interval, p, p after Holm over the
        classes of the metric, and for pointing McNemar's exact p.
    """
    records: list[dict[str, Any]] = []
    for metric, entries in _differences(first, second, findings, protocol, how):
        classes = [entry for entry in entries if entry["group"]]
        for entry, p in zip(classes, holm([entry["p"] for entry in classes]), strict=True):
            entry["p_holm"] = p
        records += [{"metric": metric, **entry} for entry in entries]
    return records


def _differences(
    first: pl.DataFrame, second: pl.DataFrame, findings: Sequence[str], protocol: Protocol, how: Resampling
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    one, two = (Pairs.of(rows, protocol, how.seed) for rows in (first, second))
    if len(one):
        values = [grounding_values(pairs) for pairs in (one, two)]
        fixed = [f"dice@{tau:g}" for tau in protocol.fixed]
        for metric in (*GROUNDING, *fixed):
            yield metric, list(_means(metric, one, values[0][metric], values[1][metric], findings, how))
    yield "auc", _aucs(first, second, findings, protocol, how)


def _means(
    metric: str, pairs: Pairs, a: Floats, b: Floats, findings: Sequence[str], how: Resampling
) -> Iterator[dict[str, Any]]:
    by = clusters(pairs.frame["patient_id"].to_list(), pairs.frame["case_id"].to_list())
    both = ~np.isnan(a - b)
    masks = [pairs.finding == finding for finding in findings]
    for finding, mask in zip(findings, masks, strict=True):
        x, y = (np.where(mask, v, np.nan) for v in (a, b))
        found = _record(finding, paired_means(x, y, by, how.replicates, how.seed, how.level))
        found["n_undefined"] = int((mask & ~both).sum())
        if metric == "pointing" and np.isin(np.concatenate([x[mask & both], y[mask & both]]), (0, 1)).all():
            found["mcnemar_p"] = mcnemar(*discordant(x, y)).exact_p
        yield found
    by_class = [[np.where(mask & both, v, np.nan) for mask in masks] for v in (a, b)]
    yield _record("", _macro_means(by_class[0], by_class[1], by, how))


def _macro_means(first: list[Floats], second: list[Floats], by: Any, how: Resampling) -> Difference:
    def of(columns: list[Floats]) -> tuple[Any, NDArray[np.float64]]:
        means = [mean_defined(column).value for column in columns]
        drawn = bootstrap_mean(np.stack(columns, axis=1), by, how.replicates, how.seed)
        return mean_defined(means, "no class is defined"), macro_replicates(drawn)

    (a, drawn_a), (b, drawn_b) = of(first), of(second)
    return paired_difference(a, b, drawn_a, drawn_b, how.level)


def _aucs(
    first: pl.DataFrame, second: pl.DataFrame, findings: Sequence[str], protocol: Protocol, how: Resampling
) -> list[dict[str, Any]]:
    a, b = (answers(rows, findings, protocol.link) for rows in (first, second))
    labels = np.where(np.isnan(a.labels) | np.isnan(b.labels), np.nan, a.labels)
    draws = how.replicates, how.seed
    differences = paired_aucs(labels, a.scores, b.scores, a.by, *draws, how.level)
    records = [_record(finding, d) for finding, d in zip(findings, differences, strict=True)]
    overall = [macro(per_class(auc, labels, said.scores)) for said in (a, b)]
    drawn = [macro_replicates(bootstrap_ranking(labels, said.scores, a.by, *draws).auc) for said in (a, b)]
    return [*records, _record("", paired_difference(overall[0], overall[1], drawn[0], drawn[1], how.level))]


def _record(group: str, d: Difference) -> dict[str, Any]:
    return {
        "group": group,
        "difference": d.value,
        "low": d.low,
        "high": d.high,
        "p": d.p,
        "p_holm": None,
        "mcnemar_p": None,
        "n": d.n,
        "n_undefined": d.n_undefined,
        "reason": d.reason,
    }
