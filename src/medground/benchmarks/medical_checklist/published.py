"""What the paper prints, and which of it does not hold together: to orient, never as truth."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import polars as pl

SOURCE = "Limanond, Suganuma, Okatani: Medical-Checklist, IEEE 2026, as printed"
TABLES = (
    "table1_categories", "table2_overall", "table3_per_category", "table4_llavamed_variants", "table5_top_terms",
    "prose_figures",
)  # fmt: skip


@cache
def table(name: str) -> pl.DataFrame:
    """Return a printed table, figures as text."""
    return pl.read_csv((files(__package__) / "published" / f"{name}.csv").read_bytes(), infer_schema=False)


@cache
def all_tables() -> pl.DataFrame:
    """Return all printed figures, one a row."""
    return pl.concat([table(name) for name in TABLES], how="vertical")


def weighted(model: str, name: str = "table3_per_category") -> float:
    """Return the mean of a model's printed types weighted by the printed counts of Table I, in percent.

    Args:
        model: as printed.
        name: a table with one accuracy a type.
    """
    counts = dict(table("table1_categories").filter(pl.col("metric") == "n_tests").select("group", "value").iter_rows())
    rows = table(name).filter((pl.col("model") == model) & pl.col("group").is_in(list(counts)))
    pairs = [(float(v), int(counts[g])) for g, v in rows.select("group", "value").iter_rows()]
    return sum(v * n for v, n in pairs) / sum(n for _, n in pairs)


def beside(accuracies: dict[tuple[str, str], float], name: str = "table3_per_category") -> pl.DataFrame:
    """Return the printed accuracies of every type with ours.

    Args:
        accuracies: (our model's label, type label) -> share.
        name: the printed table; ``table4_llavamed_variants`` for models tuned on one type.
    """
    printed = table(name).filter(pl.col("metric") == "accuracy_pct")
    rows = [
        {"type": g, "model": m, "printed": float(v), "ours": None, "by": "paper"}
        for m, g, v in printed.select("model", "group", "value").iter_rows()
    ]
    rows += [
        {"type": g, "model": m, "printed": None, "ours": 100 * v, "by": "this run"}
        for (m, g), v in sorted(accuracies.items())
    ]
    schema = {
        "type": pl.String(),
        "model": pl.String(),
        "printed": pl.Float64(),
        "ours": pl.Float64(),
        "by": pl.String(),
    }
    return pl.DataFrame(rows, schema=schema)
