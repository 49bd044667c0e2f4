"""The few numbers that fit on a terminal: one row a model and dataset, or a finding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from medground.benchmarks.xbench.tables import seen_text

WITH_INTERVAL = ("pointing", "dice@best", "auc")
PLAIN = ("pointing_prior", "dice_floor", "dice_gap")


def glance(cells: pl.DataFrame, data: Mapping[str, Any], scope: str) -> pl.DataFrame:
    """Return pointing beside the class prior, Dice beside its floor and gap, AUC, and what they rest on.

    Args:
        cells: of a summary.
        data: the summary's other content.
        scope: ``macro``, ``pairs`` or ``class``.
    """
    wanted = [*WITH_INTERVAL, *PLAIN]
    main = cells.filter((pl.col("subset") == "main") & pl.col("metric").is_in(wanted))
    # Recognition has no pairs of its own: beside pair means stands its macro mean.
    of_auc = "macro" if scope == "pairs" else scope
    scoped = pl.col("scope") == pl.when(pl.col("metric") == "auc").then(pl.lit(of_auc)).otherwise(pl.lit(scope))
    star = "*" if data["optimistic"] else ""
    marks = {(t["model"], t["dataset"]): "†" if seen_text(t) else "" for t in data["tasks"]}
    pairs = main.filter((pl.col("scope") == "pairs") & (pl.col("metric") == "pointing"))
    counted = {(cell["model"], cell["dataset"]): _counts(cell) for cell in pairs.iter_rows(named=True)}
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for cell in main.filter(scoped).iter_rows(named=True):
        who = cell["model"], cell["dataset"]
        row = rows.setdefault((*who, cell["group"]), _start(cell, marks[who], scope))
        row[cell["metric"]] = _short(cell)
        if cell["metric"] == "pointing":
            row["counts"] = _counts(cell) if scope == "class" else counted.get(who, "")
    names = {"dataset": "dataset", "model": "model"} | ({"group": "finding"} if scope == "class" else {})
    names |= {
        "pointing": "pointing",
        "pointing_prior": "prior",
        "dice@best": f"Dice best{star}",
        "dice_floor": "floor",
        "dice_gap": f"gap{star}",
        "auc": "AUC",
        "counts": "n/undef/flat/failed",
    }
    return pl.DataFrame([{shown: row.get(key, "") for key, shown in names.items()} for row in rows.values()])


def legend(data: Mapping[str, Any]) -> str:
    """Return what the columns and marks of a glance mean."""
    parts = ["percent; prior: pointing of the class prior; floor: Dice of all foreground; gap: Dice best minus fixed"]
    if data["optimistic"]:
        parts.append("* threshold searched on the evaluated cases: optimistic")
    if any(seen_text(t) for t in data["tasks"]):
        parts.append("† has seen this dataset in training")
    return "; ".join(parts)


def _start(cell: Mapping[str, Any], mark: str, scope: str) -> dict[str, str]:
    start = {"dataset": cell["dataset"], "model": cell["model"] + mark}
    return start | ({"group": cell["group"]} if scope == "class" else {})


def _short(cell: Mapping[str, Any]) -> str:
    if cell["value"] is None:
        return "undefined"
    text = f"{100 * cell['value']:.1f}"
    if cell["metric"] not in WITH_INTERVAL or cell["low"] is None:
        return text
    return f"{text} ({100 * cell['low']:.0f}-{100 * cell['high']:.0f})"


def _counts(cell: Mapping[str, Any]) -> str:
    return f"{cell['n']}/{cell['undefined']}/{cell['flat']}/{cell['failed']}"
