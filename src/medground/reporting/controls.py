"""What stands beside a benchmark's own results: blind twins, repeated models, two readers of the same replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from medground.metrics.spec import MetricSpec
from medground.reporting.composition import Section
from medground.reporting.runs import Run, unique_names
from medground.reporting.tables import Head, Table, TableEntry

TABLES = ("looking", "repeats", "repeats_each", "readers")
"""Tables of a run that are shown here, and nowhere else."""

_LOOKING = ("model", "twin", "dataset", "method")


def controls(runs: Sequence[Run]) -> list[Section]:
    """Return one section a run that has such tables."""
    sections = []
    for number, (run, name) in enumerate(zip(runs, unique_names(runs), strict=True)):
        tables = [
            table
            for stem, make in (("looking", _looking), ("repeats", _repeats), ("readers", _readers))
            if stem in run.tables and len(run.tables[stem])
            for table in [make(run)]
        ]
        if tables:
            anchor = f"controls-{run.benchmark}-{number}" if run.benchmark.isidentifier() else f"controls-{number}"
            title = "Without looking, and once more" if len(runs) == 1 else f"Without looking, and once more: {name}"
            content = {"sentences": list(_sentences(run))}
            sections.append(Section(anchor, title, "controls.html", content, tables))
    return sections


def _sentences(run: Run) -> list[str]:
    told = []
    for stem in TABLES:
        table = run.tables.get(stem)
        if table is not None and "words" in table.columns:
            told += [words for words in table["words"].to_list() if words]
    return told


def _looking(run: Run) -> Table:
    """Return model minus twin, a line a model and place, a column a metric."""
    frame = run.tables["looking"].filter(pl.col("scope").is_in(["all", "macro"]))
    lines = frame.select(_LOOKING).unique(maintain_order=True).to_dicts()
    metrics = frame["metric"].unique(maintain_order=True).to_list()
    specs = _specs(run)
    held = {(*(row[name] for name in _LOOKING), row["metric"]): row for row in frame.iter_rows(named=True)}
    entries = [
        [_difference(held.get((*(line[name] for name in _LOOKING), metric)), specs.get(metric)) for metric in metrics]
        for line in lines
    ]
    heads = [
        Head(
            f"{line['model']} less {line['twin']}, {line['dataset']}", notes=(line["method"],) if line["method"] else ()
        )
        for line in lines
    ]
    columns = [Head(specs[metric].title if metric in specs else metric, "group") for metric in metrics]
    notes = ["A model minus the same model without the case's own picture, on the same items, with paired intervals."]
    return Table("What looking adds", "Model", heads, columns, entries, notes)


def _difference(row: Mapping[str, Any] | None, spec: MetricSpec | None) -> TableEntry | None:
    if row is None:
        return None
    value, low, high = (_number(row[name]) for name in ("difference", "low", "high"))
    if value is None:
        return TableEntry("undefined", note=str(row["because"] or ""))
    scale, digits = (spec.scale, spec.digits) if spec is not None else (1.0, 3)
    interval = ""
    if low is not None and high is not None:
        interval = f"[{scale * low:+.{digits}f}, {scale * high:+.{digits}f}]"
    return TableEntry(f"{scale * value:+.{digits}f}", interval, str(row["decision"]), scale * value)


def _repeats(run: Run) -> Table:
    """Return agreement and range, a line a model, kind, place and metric."""
    frame, specs = run.tables["repeats"], _specs(run)
    heads, entries = [], []
    for row in frame.iter_rows(named=True):
        spec = specs.get(row["metric"])
        scale = spec.scale if spec is not None else 1.0
        method = (row["method"],) if row["method"] else ()
        heads.append(Head(f"{row['model']}, {row['dataset']}: {row['title']}", notes=method))
        entries.append(
            [
                TableEntry(f"{row['members']} {row['kind']}s"),
                _figure(row, "agreement", 100.0),
                _figure(row, "mean", scale),
                _figure(row, "lowest", scale),
                _figure(row, "highest", scale),
                _figure(row, "range", scale),
                TableEntry(row["n"] or ""),
            ]
        )
    names = ("Asked", "Agreement with itself", "Mean", "Lowest", "Highest", "Range", "Items")
    notes = [
        "Agreement: share of pairs of members that come to the same on an item. The range's interval is that of the "
        "paired difference between the highest and the lowest, which were chosen by their figures.",
        "Each member's own figures are in tables/repeats_each.csv of the run.",
    ]
    return Table("The same model once more", "Model", heads, [Head(n, "group") for n in names], entries, notes)


def _readers(run: Run) -> Table:
    """Return the agreement of two readers, a line a model and place."""
    frame = run.tables["readers"]
    heads = [Head(f"{row['model']}, {row['dataset']}: {row['task']}") for row in frame.iter_rows(named=True)]
    entries = [
        [
            TableEntry(f"{row['first']}, {row['second']}"),
            _figure(row, "raw", 100.0),
            _figure(row, "kappa", 1.0, 2, row["reason"] or ""),
            _figure(row, "pabak", 1.0, 2),
            TableEntry(row["n"]),
            TableEntry(row["n_undefined"]),
        ]
        for row in frame.iter_rows(named=True)
    ]
    names = ("Readers", "Alike, percent", "Kappa", "PABAK", "Replies", "Not read by one")
    return Table("Two readers of the same replies", "Model", heads, [Head(n, "group") for n in names], entries)


def _figure(row: Mapping[str, Any], name: str, scale: float, digits: int = 1, note: str = "") -> TableEntry:
    value, low, high = (_number(row.get(key)) for key in (name, f"{name}_low", f"{name}_high"))
    if value is None:
        return TableEntry("undefined", note=note)
    interval = f"[{scale * low:.{digits}f}, {scale * high:.{digits}f}]" if low is not None and high is not None else ""
    return TableEntry(f"{scale * value:.{digits}f}", interval, note, scale * value)


def _number(text: Any) -> float | None:
    return None if text in (None, "") else float(text)


def _specs(run: Run) -> dict[str, MetricSpec]:
    return {spec.name: spec for spec in run.summary.metrics}
