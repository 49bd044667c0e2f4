"""What looking adds: a model beside its blind twin, the same model without the case's own picture, item by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from medground.benchmarks.base import Entry
from medground.benchmarks.comparing import Comparable, Pair, compare_pairs
from medground.benchmarks.results import Cell, Summary
from medground.metrics import decide
from medground.metrics.spec import MetricSpec

_COLUMNS = ("metric", "group", "difference", "low", "high", "p", "decision", "because", "n", "n_undefined", "patients")
_SAYS = {
    "better": "looking adds to {title} on {dataset}: {figures}",
    "worse": "on {dataset} {title} is worse than without the picture: {figures}",
    "equivalent": "looking adds nothing to {title} on {dataset}: {figures}",
}


def with_looking(
    summary: Summary,
    benchmark: Comparable,
    rows: Mapping[tuple[str, ...], pl.DataFrame],
    models: Sequence[Entry],
    rules: Mapping[str, decide.Rule] | None = None,
) -> Summary:
    """Return a summary that says of every model with a blind twin what looking adds.

    Args:
        summary: of the run.
        benchmark: says what two models did on shared items.
        rows: (model, place...) -> rows.
        models: entries of the run; a twin's names the model whose it is.
        rules: margins and minima; None: the usual ones.

    Returns:
        The summary with the table ``looking`` (differences are model minus twin, on the metric's own scale, with paired
        intervals), one sentence a model, place and metric among its notes, and twins marked as such.
    """
    twins = {entry.label: entry.twin_of for entry in models if entry.twin_of}
    if not twins:
        return summary
    pairs = []
    for path, table in rows.items():
        twin, place = path[0], path[1:]
        seeing = rows.get((twins.get(twin, ""), *place))
        if seeing is not None:
            matched = list(benchmark.matched(seeing, table, place, benchmark))
            pairs.append(Pair(twins[twin], twin, ", ".join(place), matched))
    records = compare_pairs(pairs, rules, seed=benchmark.seed, level=benchmark.level)
    marked = [replace(facts, twin_of=twins.get(facts.label, facts.twin_of)) for facts in summary.models]
    specs = {first.spec.name: first.spec for pair in pairs for first, _ in pair.samples}
    return replace(
        summary,
        models=marked,
        tables={**summary.tables, "looking": table_of(records)},
        notes=(*summary.notes, *sentences(records, specs)),
    )


def beside_twins(summary: Summary, models: Sequence[Entry]) -> Summary:
    """Return a summary in which every figure of a model stands beside its blind twin's.

    For benchmarks whose runs have no paired comparison yet: the differences are between two figures, without an
    interval, so nothing is claimed from them.

    Args:
        summary: of the run.
        models: entries of the run; a twin's names the model whose it is.

    Returns:
        The summary with the table ``looking`` and twins marked as such.
    """
    twins = {entry.label: entry.twin_of for entry in models if entry.twin_of}
    if not twins:
        return summary
    seeing = {(cell.model, *_place(cell)): cell for cell in summary.cells}
    lines = []
    for cell in summary.cells:
        own = seeing.get((twins.get(cell.model, ""), *_place(cell)))
        if own is not None:
            known = own.value is not None and cell.value is not None
            lines.append(
                {
                    "model": own.model,
                    "twin": cell.model,
                    **dict(zip(_PLACE, _place(cell), strict=True)),
                    "value": own.value,
                    "twin_value": cell.value,
                    "difference": own.value - cell.value if known else None,  # type: ignore[operator]
                    "n": own.n,
                    "twin_n": cell.n,
                }
            )
    marked = [replace(facts, twin_of=twins.get(facts.label, facts.twin_of)) for facts in summary.models]
    tables = {**summary.tables, "looking": pl.DataFrame(lines, infer_schema_length=None)} if lines else summary.tables
    note = "looking: differences between a model's figures and its blind twin's, without intervals"
    return replace(summary, models=marked, tables=tables, notes=(*summary.notes, *([note] if lines else [])))


_PLACE = ("dataset", "subset", "method", "scope", "group", "metric")


def _place(cell: Cell) -> tuple[str, ...]:
    return tuple(getattr(cell, name) for name in _PLACE)


def table_of(records: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return what looking adds, one line a model, place, metric and group (empty: over all groups)."""
    lines = [
        {"model": r["first"], "twin": r["second"], "dataset": r["dataset"]} | {name: r[name] for name in _COLUMNS}
        for r in records
    ]
    return pl.DataFrame(lines, infer_schema_length=None)


def sentences(records: Sequence[Mapping[str, Any]], specs: Mapping[str, MetricSpec]) -> list[str]:
    """Return what looking adds over all groups, in words."""
    told = []
    for record in records:
        if record["group"]:
            continue
        figures = _figures(record, specs[record["metric"]])
        said = _SAYS.get(record["decision"], "whether looking adds to {title} on {dataset} cannot be told: {figures}")
        words = said.format(title=record["title"], dataset=record["dataset"], figures=figures)
        told.append(f"{record['first']}: {words}")
    return told


def _figures(record: Mapping[str, Any], spec: MetricSpec) -> str:
    if record["difference"] is None:
        return str(record["reason"] or "undefined")
    ends = [f"{spec.scale * end:+.1f}" for end in (record["low"], record["high"]) if end is not None]
    interval = f" [{', '.join(ends)}]" if ends else ""
    return f"{spec.scale * record['difference']:+.1f}{interval} against its blind twin {record['second']}"
