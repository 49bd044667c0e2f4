"""What looking adds: a model beside its blind twin, the same model without the case's own picture, item by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from medground.benchmarks.base import Entry
from medground.benchmarks.comparable import Comparable, Contender, Rows, pair_of
from medground.benchmarks.comparing import ALL, MACRO, compare_pairs
from medground.benchmarks.results import Summary
from medground.metrics.spec import MetricSpec

_COLUMNS = (
    "method",
    "metric",
    "scope",
    "group",
    "difference",
    "low",
    "high",
    "p",
    "decision",
    "because",
    "n",
    "n_undefined",
    "patients",
)
_SAYS = {
    "better": "looking adds to {title} on {dataset}: {figures}",
    "worse": "on {dataset} {title} is worse than without the picture: {figures}",
    "equivalent": "looking adds nothing to {title} on {dataset}: {figures}",
}


def with_looking(summary: Summary, comparable: Comparable, rows: Rows, models: Sequence[Entry]) -> Summary:
    """Return a summary that says of every model with a blind twin what looking adds.

    Args:
        summary: of the run.
        comparable: says what two models did on shared items.
        rows: of the run.
        models: entries of the run; a twin's names the model whose it is.

    Returns:
        The summary with the table ``looking`` (differences are model minus twin, on the metric's own scale, with paired
        intervals), one sentence a model, place and metric among its notes, and twins marked as such.
    """
    twins = {entry.label: entry.twin_of for entry in models if entry.twin_of}
    if not twins:
        return summary
    sides: dict[str, list[Contender]] = {}
    for label in dict.fromkeys(path[0] for path in rows):
        own = {path: table for path, table in rows.items() if path[0] == label and len(table)}
        sides[label] = list(comparable.sides(label, own))
    pairs = [
        pair_of(comparable, seeing, blind)
        for twin, model in twins.items()
        for blind in sides.get(twin, ())
        for seeing in sides.get(model, ())
        if (seeing.place, seeing.part) == (blind.place, blind.part)
    ]
    records = compare_pairs(pairs, comparable.rules, seed=comparable.seed, level=comparable.level)
    marked = [replace(facts, twin_of=twins.get(facts.label, facts.twin_of)) for facts in summary.models]
    specs = {first.spec.name: first.spec for pair in pairs for first, _ in pair.samples}
    tables = {"looking": table_of(records, specs)} if records else {}
    return replace(
        summary,
        models=marked,
        tables={**summary.tables, **tables},
        notes=(*summary.notes, *filter(None, (words(record, specs) for record in records))),
    )


def table_of(records: Sequence[Mapping[str, Any]], specs: Mapping[str, MetricSpec]) -> pl.DataFrame:
    """Return what looking adds, one line a model, place, metric and group (empty: over all groups), and in words."""
    lines = [
        {"model": r["first"], "twin": r["second"], "dataset": r["dataset"]}
        | {name: r[name] for name in _COLUMNS}
        | {"words": words(r, specs)}
        for r in records
    ]
    return pl.DataFrame(lines, infer_schema_length=None)


def words(record: Mapping[str, Any], specs: Mapping[str, MetricSpec]) -> str | None:
    """Return what looking adds over all groups, as a sentence; None for a single group."""
    if record["scope"] not in {ALL, MACRO}:
        return None
    figures = _figures(record, specs[record["metric"]])
    sentence = _SAYS.get(record["decision"], "whether looking adds to {title} on {dataset} cannot be told: {figures}")
    return f"{record['first']}: {sentence.format(title=record['title'], dataset=record['dataset'], figures=figures)}"


def _figures(record: Mapping[str, Any], spec: MetricSpec) -> str:
    if record["difference"] is None:
        return str(record["reason"] or "undefined")
    ends = [f"{spec.scale * end:+.{spec.digits}f}" for end in (record["low"], record["high"]) if end is not None]
    interval = f" [{', '.join(ends)}]" if ends else ""
    return f"{spec.scale * record['difference']:+.{spec.digits}f}{interval} against its blind twin {record['second']}"
