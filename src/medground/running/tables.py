"""Tables as files: CSV with every digit, Markdown and LaTeX for people."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from medground.errors import RunError
from medground.escaping import for_csv, for_latex, for_markdown
from medground.running.names import folder_name


def table_files(tables: Mapping[str, pl.DataFrame]) -> dict[str, bytes]:
    """Return file name -> content: every table as ``.csv``, ``.md`` and ``.tex``.

    Raises:
        RunError: a number is not finite (undefined is null), or a column is nested.
    """
    files: dict[str, bytes] = {}
    for name, table in tables.items():
        _check(name, table)
        writers = {"csv": to_csv, "md": to_markdown, "tex": to_latex}
        for suffix, write in writers.items():
            files[f"{folder_name(name)}.{suffix}"] = write(table).encode()
    return files


def _check(name: str, table: pl.DataFrame) -> None:
    for column in table:
        if column.dtype.is_nested():
            raise RunError("a table has a nested column", where=f"table {name}, column {column.name}")
        if column.dtype.is_float() and not column.is_finite().fill_null(value=True).all():
            raise RunError(
                "undefined must be null, with a reason beside it", where=f"table {name}, column {column.name}"
            )


def to_csv(table: pl.DataFrame) -> str:
    """Return a table as CSV: floats in the shortest form that reads back the same, null as an empty field.

    Text that a spreadsheet would take for a formula stands behind an apostrophe.
    """
    texts = [name for name, dtype in table.schema.items() if dtype == pl.String]
    guarded = table.with_columns(pl.col(texts).map_elements(for_csv, return_dtype=pl.String)) if texts else table
    return guarded.rename({name: for_csv(name) for name in table.columns}).write_csv()


def from_csv(content: bytes) -> pl.DataFrame:
    """Return a table that ``to_csv`` wrote, as far as people read it: types are those that its fields suggest."""
    return pl.read_csv(io.BytesIO(content), infer_schema_length=None)


def to_markdown(table: pl.DataFrame) -> str:
    """Return a table as Markdown: numbers to the right, with four significant digits; null as a dash."""
    rules = ["---:" if dtype.is_numeric() else "---" for dtype in table.dtypes]
    body = [[_shown(cell, "-") for cell in row] for row in table.rows()]
    lines = [[for_markdown(cell) for cell in row] for row in (table.columns, *body)]
    lines.insert(1, rules)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def to_latex(table: pl.DataFrame) -> str:
    """Return a table as a LaTeX ``tabular`` in the style of booktabs; null as a dash."""
    columns = "".join("r" if dtype.is_numeric() else "l" for dtype in table.dtypes)
    body = [_latex_row([_shown(cell, "") for cell in row]) for row in table.rows()]
    lines = [
        "% \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        _latex_row(table.columns),
        "\\midrule",
        *body,
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(for_latex(cell) or "--" for cell in cells) + " \\\\"


def _shown(cell: Any, null: str) -> str:
    if cell is None:
        return null
    if isinstance(cell, float):
        # '#' keeps trailing zeros, so that a column shows one precision; large numbers stay plain.
        return f"{cell:.0f}" if math.fabs(cell) >= 1000 else f"{cell:#.4g}".rstrip(".")
    return str(cell)
