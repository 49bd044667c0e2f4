"""A benchmark without a component of its own: its tables as they are."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from medground.reporting.composition import Composition, Section
from medground.reporting.controls import TABLES
from medground.reporting.runs import Run, unique_names
from medground.reporting.sources import Images
from medground.reporting.tables import Head, Table, TableEntry

LONGEST = 500
"""Rows of a table that a page can be read with; the rest is in the CSV."""


def compose(runs: Sequence[Run], images: Images) -> Composition:  # noqa: ARG001  (the contract's: it shows no picture)
    """Return one section a run with every table of it."""
    sections = []
    for number, (run, name) in enumerate(zip(runs, unique_names(runs), strict=True)):
        tables = [
            _table(stem, frame) for stem, frame in run.tables.items() if len(frame.columns) and stem not in TABLES
        ]
        anchor = f"{run.benchmark}-{number}" if run.benchmark.isidentifier() else f"run-{number}"
        sections.append(Section(anchor, f"Tables of {name}", "tables.html", tables=tables))
    benchmark = runs[0].benchmark
    return Composition(benchmark, (), [("Benchmark", benchmark)], sections)


def _table(stem: str, frame: pl.DataFrame) -> Table:
    shown = frame.head(LONGEST)
    rows = [Head(str(row[0]), "group") for row in shown.iter_rows()]
    entries = [[_entry(value) for value in row[1:]] for row in shown.iter_rows()]
    left = len(frame) - len(shown)
    notes = [f"{left:,} more rows are in tables/{stem}.csv of the run."] if left else []
    columns = [Head(name, "group") for name in frame.columns[1:]]
    return Table(stem.replace("_", " ").capitalize(), frame.columns[0], rows, columns, entries, notes)


def _entry(value: str | None) -> TableEntry:
    text = value or ""
    try:
        return TableEntry(text, value=float(text))
    except ValueError:
        return TableEntry(text)
