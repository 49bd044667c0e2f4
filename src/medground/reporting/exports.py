"""A table of the report as CSV with every digit, and as Markdown and LaTeX as it is seen."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

import polars as pl

from medground.escaping import for_csv
from medground.reporting.tables import Mark, Table, TableEntry
from medground.running.tables import to_latex, to_markdown

_OPEN = {"best": "\ue000", "second": "\ue001"}
_CLOSE = "\ue002"
"""Private characters hold the place of marks while the writers escape everything else."""
_MARKDOWN = {"\ue000": "**", "\ue001": "<u>"}
_LATEX = {"\ue000": r"\textbf{", "\ue001": r"\underline{", _CLOSE: "}"}


def exports(table: Table) -> dict[str, str]:
    """Return file suffix -> content: ``csv``, ``md`` and ``tex``."""
    frame = _frame(table)
    return {"csv": to_csv(table), "md": markdown(frame), "tex": latex(frame)}


def to_csv(table: Table) -> str:
    """Return a table as CSV: value, interval and note of a column side by side; undefined is empty.

    Percentages stay percentages, so that a column reads like the table; a note says why a value is absent.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [column.name for column in table.columns]
    heads = [table.corner, *(f"{n}{suffix}" for n in names for suffix in ("", " interval", " note")), "remarks"]
    writer.writerow([for_csv(head) for head in heads])
    for row, entries in zip(table.rows, table.entries, strict=True):
        fields = [field for entry in entries for field in _fields(entry)]
        writer.writerow([for_csv(text) for text in (row.name, *fields, "; ".join(row.notes))])
    return out.getvalue()


def _fields(entry: TableEntry | None) -> tuple[str, str, str]:
    if entry is None:
        return "", "", ""
    return "" if entry.value is None else f"{entry.value!r}", entry.interval, entry.note


def _frame(table: Table) -> pl.DataFrame:
    """Return a table as it is seen; equal column names are told apart by a number."""
    rows = [
        [_plain(", ".join([row.name, *row.notes])), *(_shown(entry) for entry in entries)]
        for row, entries in zip(table.rows, table.entries, strict=True)
    ]
    names = [_plain(n) for n in (table.corner, *(column.name for column in table.columns))]
    unique = [n if names.count(n) == 1 else f"{n} ({names[: i + 1].count(n)})" for i, n in enumerate(names)]
    return pl.DataFrame(rows, schema=dict.fromkeys(unique, pl.String()), orient="row")


def _shown(entry: TableEntry | None) -> str:
    if entry is None:
        return ""
    value = marked(entry.text, entry.mark) if entry.mark else _plain(entry.text)
    note = f"({entry.note})" if entry.note else ""
    return " ".join(filter(None, [value, _plain(entry.interval), _plain(note)]))


def marked(text: str, mark: Mark) -> str:
    """Put a mark around a text that a writer escapes later; see `latex` and `markdown`."""
    return f"{_OPEN[mark]}{_plain(text)}{_CLOSE}"


def latex(frame: pl.DataFrame) -> str:
    """Return a table with marks as LaTeX: the best in bold, the second underlined."""
    return _replaced(to_latex(frame), _LATEX)


def markdown(frame: pl.DataFrame) -> str:
    """Return a table with marks as Markdown."""
    return _markdown(to_markdown(frame))


def _plain(text: str) -> str:
    return "".join(c for c in text if c not in {*_OPEN.values(), _CLOSE})


def _markdown(text: str) -> str:
    parts = []
    opened = "\ue000"
    for character in text:
        opened = character if character in _MARKDOWN else opened
        closing = "**" if opened == "\ue000" else "</u>"
        parts.append(closing if character == _CLOSE else _MARKDOWN.get(character, character))
    return "".join(parts)


def _replaced(text: str, marks: Mapping[str, str]) -> str:
    for mark, markup in marks.items():
        text = text.replace(mark, markup)
    return text
