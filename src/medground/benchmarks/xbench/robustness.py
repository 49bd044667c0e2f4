"""What a small change of the pictures does to every figure of a model: changed minus plain, case by case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from medground.benchmarks.base import Entry
from medground.benchmarks.comparable import Comparable, Pair, Rows
from medground.benchmarks.comparing import MACRO, compare_pairs
from medground.benchmarks.results import Summary
from medground.benchmarks.xbench.compare import samples
from medground.benchmarks.xbench.protocol import Protocol
from medground.datasets.augmented import Augmented
from medground.errors import RunError
from medground.metrics.counted import CountedMetric

COLUMNS = (
    *("metric", "scope", "group", "difference", "low", "high", "p", "p_family", "family"),
    *("decision", "because", "n", "n_undefined", "patients"),
)
SPOKEN = ("pointing", "auc")
"""Metrics whose change is told in a sentence; the table has them all."""

_SAYS = {
    "better": "is better with",
    "worse": "is worse with",
    "equivalent": "stays what it was with",
    "cannot be told": "may or may not change with",
}


def changed_datasets(entries: Sequence[Entry], datasets: Mapping[str, Any]) -> dict[str, tuple[str, Augmented]]:
    """Return label of a changed dataset -> label of the plain one in the same run, and the change."""
    return {
        entry.label: (entry.twin_of, dataset)
        for entry in entries
        if entry.twin_of and isinstance(dataset := datasets[entry.label], Augmented)
    }


def with_robustness(
    summary: Summary,
    comparable: Comparable,
    rows: Rows,
    changed: Mapping[str, tuple[str, Augmented]],
    findings: Mapping[str, tuple[str, ...]],
    how: tuple[Protocol, int, Sequence[CountedMetric]],
) -> Summary:
    """Return a summary with the table ``robustness``, where the run holds a dataset both changed and unchanged.

    Differences are changed minus plain over the (case, finding) pairs that both have, on the metric's own scale, with
    paired intervals; p values are corrected over models, changes and, by finding, over findings. A threshold is
    searched on each side anew.

    Args:
        summary: of the run.
        comparable: rules, seed and level of comparisons.
        rows: of the run.
        changed: see :func:`changed_datasets`.
        findings: label of a dataset -> its classes.
        how: protocol, seed of the folds, further metrics.
    """
    pairs = [pair for path in rows if path[1] in changed for pair in _pair(path, rows, changed, findings, how)]
    if not pairs:
        return summary
    records = []
    for record in compare_pairs(pairs, comparable.rules, seed=comparable.seed, level=comparable.level):
        change = changed[record["first"]][1].augmentation
        about = {"model": record["second"], "dataset": record["dataset"], "shown as": record["first"]}
        about |= {"change": change.kind, "amount": change.amount}
        records.append(about | {name: record[name] for name in COLUMNS})
    table = pl.DataFrame(records, infer_schema_length=None)
    notes = [_words(record, summary) for record in records if _spoken(record)]
    return replace(summary, tables={**summary.tables, "robustness": table}, notes=(*summary.notes, *notes))


def _pair(
    path: tuple[str, ...],
    rows: Rows,
    changed: Mapping[str, tuple[str, Augmented]],
    findings: Mapping[str, tuple[str, ...]],
    how: tuple[Protocol, int, Sequence[CountedMetric]],
) -> Iterator[Pair]:
    model, label = path
    plain, dataset = changed[label]
    if (model, plain) not in rows:
        return
    sides = shared_pairs(rows[path], rows[model, plain], dataset)
    if not len(sides[0]):
        return
    both = [list(samples(side, findings[plain], *how)) for side in sides]
    theirs = {sample.key: sample for sample in both[1]}
    matched = [(sample, theirs[sample.key]) for sample in both[0] if sample.key in theirs]
    # Under the plain dataset's name, so that a patient who is changed in several ways counts as one.
    yield Pair(label, model, plain, matched)


def shared_pairs(changed: pl.DataFrame, plain: pl.DataFrame, dataset: Augmented) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the (case, finding) pairs that both have and that the model did not see in training, in one order.

    The changed rows are returned under the cases and findings of the plain ones: after a flip that of the other side.

    Raises:
        RunError: the two have another label for a pair, so that one is not a change of the other.
    """
    key = ["case_id", "finding"]
    renamed = changed.with_columns(
        case_id=pl.Series([dataset.plain_id(case) for case in changed["case_id"]], dtype=pl.String),
        finding=pl.Series([dataset.augmentation.words(name) for name in changed["finding"]], dtype=pl.String),
    )
    kept = renamed.filter(~pl.col("seen")).select(key).join(plain.filter(~pl.col("seen")).select(key), on=key)
    kept = kept.sort(key)
    one, two = (kept.join(rows, on=key, how="left", maintain_order="left") for rows in (renamed, plain))
    same = one["label"].eq_missing(two["label"])
    if not same.all():
        case, finding = kept.filter(~same).row(0)
        raise RunError(
            "a changed dataset has another truth than the plain one",
            where=f"{case}, {finding}",
            expected="one dataset, with and without the change",
            got=f"{(~same).sum()} of {len(same)} shared pairs differ in their label",
        )
    return one, two


def _spoken(record: Mapping[str, Any]) -> bool:
    return record["metric"] in SPOKEN and record["scope"] == MACRO and record["difference"] is not None


def _words(record: Mapping[str, Any], summary: Summary) -> str:
    spec = summary.spec(record["metric"])
    ends = [f"{spec.scale * end:+.{spec.digits}f}" for end in (record["low"], record["high"]) if end is not None]
    figures = f"{spec.scale * record['difference']:+.{spec.digits}f}" + (f" [{', '.join(ends)}]" if ends else "")
    how = f"{record['change']} {record['amount']:g}" if record["change"] != "flip" else "left and right exchanged"
    return f"{record['model']}: {spec.title} on {record['dataset']} {_SAYS[record['decision']]} {how}: {figures}"
