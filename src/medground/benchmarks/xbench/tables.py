"""Tables for people: the paper's form, values in percent with intervals, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

NAMES = {
    "pointing": "Pointing",
    "pointing_prior": "Pointing of class prior",
    "pointing_gain": "Pointing gain over class prior",
    "dice@best": "Dice at searched threshold",
    "iou@best": "IoU at searched threshold",
    "dice_gap": "Dice gap",
    "iou_gap": "IoU gap",
    "dice_floor": "Dice of all foreground",
    "iou_floor": "IoU of all foreground",
    "dice_gain": "Dice gain over floor",
    "iou_gain": "IoU gain over floor",
    "auc": "AUC",
    "auprc": "AUPRC",
    "average_precision": "Average precision",
    "brier": "Brier",
    "log_loss": "Log loss",
    "ece": "ECE",
}
NOT_PERCENT = {"brier", "log_loss", "ece"}
GROUNDING = ("pointing", "dice", "iou")
SEARCHED = {"dice@best", "iou@best", "dice_gap", "iou_gap", "dice_gain", "iou_gain"}
ON_TEST = {"f1@best"}
"""Always searched on the evaluated cases, whatever the protocol's split."""


def make_tables(cells: pl.DataFrame, data: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
    """Return file stem -> table; ``cells`` holds every number unrounded, the others are made for reading."""
    seen = {(t["model"], t["dataset"]): seen_text(t) for t in data["tasks"]}
    metrics = cells["metric"].unique(maintain_order=True).to_list()
    grounding = [m for m in metrics if m.startswith(GROUNDING)]
    recognition = [m for m in metrics if not m.startswith(GROUNDING)]

    def table(subset: str, scope: str, wanted: Sequence[str]) -> pl.DataFrame:
        return wide(cells.filter(pl.col("subset") == subset), scope, wanted, seen, bool(data["optimistic"]))

    printed = data["protocol"]["averaging"]
    tables = {
        "cells": cells,
        "overview": table("main", printed, ["pointing", "dice@best", "iou@best", "auc"]),
        "grounding": table("main", printed, grounding),
        "grounding_by_class": table("main", "class", grounding),
        "grounding_by_view": table("main", "view", grounding),
        "grounding_by_size": table("main", "size", grounding),
        "recognition": table("main", "macro", recognition),
        "recognition_by_class": table("main", "class", recognition),
        "shared": table("shared", printed, [*grounding, *recognition]),
    }
    return {name: found for name, found in tables.items() if len(found)}


def wide(
    cells: pl.DataFrame,
    scope: str,
    metrics: Sequence[str],
    seen: Mapping[tuple[str, str], str],
    optimistic: bool,
) -> pl.DataFrame:
    """Return one row a (dataset, model, group), one column a metric, written as ``value [low, high]``.

    ``n``, ``undefined``, ``flat`` and ``failed`` are those of the first metric that the row has.
    """
    # Recognition has no pairs of its own: beside pair means stands its macro mean.
    overall = scope in {"macro", "pairs"}
    of_recognition = ~pl.col("metric").str.contains(f"^({'|'.join(GROUNDING)})")
    in_scope = (pl.col("scope") == scope) | (pl.lit(overall) & of_recognition & (pl.col("scope") == "macro"))
    chosen = cells.filter(in_scope & pl.col("metric").is_in(metrics))
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for cell in chosen.iter_rows(named=True):
        key = (cell["dataset"], cell["model"], cell["group"])
        group = {} if overall else {"group": cell["group"]}
        start = {"dataset": cell["dataset"], "model": cell["model"], **group, "seen in training": seen[key[1], key[0]]}
        row = rows.setdefault(key, start)
        row[heading(cell["metric"], optimistic)] = written(cell)
        for count in ("n", "undefined", "flat", "failed"):
            row.setdefault(count, cell[count])
    columns = ["dataset", "model", *([] if overall else ["group"]), "seen in training"]
    columns += [heading(m, optimistic) for m in metrics] + ["n", "undefined", "flat", "failed"]
    return pl.DataFrame([{c: row.get(c) for c in columns} for row in rows.values()], infer_schema_length=None)


def heading(metric: str, optimistic: bool) -> str:
    """Return a metric's name for people; a threshold searched on the test set is said to be optimistic."""
    name = NAMES.get(metric)
    if name is None:
        what, _, tau = metric.partition("@")
        name = f"{NAMES.get(what, {'dice': 'Dice', 'iou': 'IoU', 'f1': 'F1'}.get(what, what.capitalize()))} at {tau}"
    picked = metric in ON_TEST or (optimistic and metric in SEARCHED)
    return f"{name} (optimistic)" if picked else name


def written(cell: Mapping[str, Any]) -> str:
    """Return ``61.6 [58.1, 65.0]``, in percent where the metric is a share; ``undefined: why`` where it is not."""
    if cell["value"] is None:
        return f"undefined: {cell['reason']}"
    scale, digits = (1, 4) if cell["metric"] in NOT_PERCENT else (100, 2)
    text = f"{scale * cell['value']:.{digits}f}"
    if cell["low"] is None:
        return text
    return f"{text} [{scale * cell['low']:.{digits}f}, {scale * cell['high']:.{digits}f}]"


def seen_text(task: Mapping[str, Any]) -> str:
    """Say what a model has seen of a dataset, and whether it was scored on the rest alone."""
    if not task["seen"] and not task["cases_seen"]:
        return ""
    what = task["seen"] or "patients"
    return f"{what}; scored on the rest" if task["cases_seen"] else f"{what}; scored on all"
