"""``medground compare``: every model of one run against every model of another, on what both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from medground.benchmarks.xbench import XBench
from medground.benchmarks.xbench.compare import compare_rows, shared_rows
from medground.benchmarks.xbench.grounding import Resampling
from medground.errors import RunError
from medground.running.reading import read_rows
from medground.session import Session, read_session

COLUMNS = ("dataset", "metric", "group", "difference", "interval", "p", "p_holm", "mcnemar_p", "n", "n_undefined")


@dataclass(frozen=True)
class Comparison:
    """Paired differences.

    Attributes:
        data: JSON-like: runs, protocol, notes and records.
        table: the records for people; differences in percentage points.
        notes: what must be known to read them.
    """

    data: Mapping[str, Any]
    table: pl.DataFrame
    notes: tuple[str, ...]


def compare_runs(first: Path, second: Path) -> Comparison:
    """Compare two finished xbench runs.

    A label that both runs have is compared with itself; the other models, each with each.

    Raises:
        RunError: a run is no xbench run, or the two were measured under different protocols, share nothing, or differ
            in their truth.
    """
    one, two = read_session(first), read_session(second)
    bench = _same_protocol(one, two, first, second)
    how = Resampling(bench.replicates or 1000, one.run.seed, bench.level)
    records: list[dict[str, Any]] = []
    for dataset, findings in _shared_datasets(one, two):
        for a, b in _model_pairs(one, two):
            rows = shared_rows(read_rows(first, (a, dataset)), read_rows(second, (b, dataset)))
            who = {"dataset": dataset, "first": a, "second": b, "shared_pairs": len(rows[0])}
            records += [who | record for record in compare_rows(*rows, findings, bench.protocol, how)]
    if not any(record["shared_pairs"] for record in records):
        raise RunError("the runs share no case and finding", where=f"{first}, {second}", expected="one dataset")
    notes = (
        f"first: {first}   second: {second}",
        f"protocol {bench.protocol.in_words()}",
        "Only (case, finding) pairs that both runs have and that neither model saw in training are used.",
        "Intervals and p by paired bootstrap over patients; p_holm is corrected over the classes of a metric.",
    )
    data = {
        "first": str(first),
        "second": str(second),
        "protocol": bench.protocol.model_dump(mode="json"),
        "notes": list(notes),
        "records": records,
    }
    return Comparison(data, pl.DataFrame([_written(r) for r in records], infer_schema_length=None), notes)


def _same_protocol(one: Session, two: Session, first: Path, second: Path) -> XBench:
    if not isinstance(one.benchmark, XBench) or not isinstance(two.benchmark, XBench):
        raise RunError("only xbench runs can be compared", where=f"{first}, {second}")
    if one.benchmark.protocol != two.benchmark.protocol:
        raise RunError(
            "the runs were measured under different protocols",
            where=f"{first}, {second}",
            expected=one.benchmark.protocol.name,
            got=two.benchmark.protocol.name,
            fix="run one of them under the other's protocol",
        )
    return one.benchmark


def _shared_datasets(one: Session, two: Session) -> Iterator[tuple[str, tuple[str, ...]]]:
    ours = {entry.label: entry for entry in one.datasets}
    shared = [entry for entry in two.datasets if entry.label in ours]
    if not shared:
        raise RunError(
            "the runs share no dataset",
            expected=", ".join(ours),
            got=", ".join(entry.label for entry in two.datasets),
        )
    for entry in shared:
        theirs = set(entry.build().findings)
        yield entry.label, tuple(f for f in ours[entry.label].build().findings if f in theirs)


def _model_pairs(one: Session, two: Session) -> list[tuple[str, str]]:
    ours, theirs = [m.label for m in one.models], [m.label for m in two.models]
    same = [(label, label) for label in ours if label in theirs]
    others = product([o for o in ours if o not in theirs], [t for t in theirs if t not in ours])
    return [*same, *others]


def _written(record: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(record) | {"group": record["group"] or "macro"}
    shown["difference"] = _points(record["difference"]) or f"undefined: {record['reason']}"
    low, high = _points(record["low"]), _points(record["high"])
    shown["interval"] = f"[{low}, {high}]" if low and high else ""
    for p in ("p", "p_holm", "mcnemar_p"):
        shown[p] = "" if record[p] is None else f"{record[p]:.4f}"
    return {"first": record["first"], "second": record["second"]} | {c: shown[c] for c in COLUMNS}


def _points(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.2f}"
