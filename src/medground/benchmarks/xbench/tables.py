"""Tables for people: the paper's form, values in percent with intervals, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from medground.benchmarks.printing import heading, interval, text
from medground.benchmarks.xbench.specs import recognition_specs
from medground.metrics.spec import MetricSpec

Specs = Mapping[str, MetricSpec]


def make_tables(cells: pl.DataFrame, data: Mapping[str, Any], specs: Specs) -> dict[str, pl.DataFrame]:
    """Return file stem -> table; ``cells`` holds every number unrounded, the others are made for reading."""
    seen = {(t["model"], t["dataset"]): seen_text(t) for t in data["tasks"]}
    recognition = [spec.name for spec in recognition_specs()]
    grounding = [name for name in specs if name not in recognition]

    def table(subset: str, scope: str, wanted: Sequence[str]) -> pl.DataFrame:
        return wide(cells.filter(pl.col("subset") == subset), scope, [specs[name] for name in wanted], seen)

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
    return {name: table for name, table in tables.items() if len(table)}


def wide(
    cells: pl.DataFrame, scope: str, metrics: Sequence[MetricSpec], seen: Mapping[tuple[str, str], str]
) -> pl.DataFrame:
    """Return one row a (dataset, model, group), one column a metric, written as ``value [low, high]``.

    ``n``, ``undefined``, ``flat`` and ``failed`` are those of the first metric that the row has; a value that rests on
    another number of items says so.
    """
    # Recognition has no pairs of its own: beside pair means stands its macro mean.
    overall = scope in {"macro", "pairs"}
    specs = {spec.name: spec for spec in metrics}
    of_recognition = pl.col("metric").is_in([spec.name for spec in recognition_specs()])
    in_scope = (pl.col("scope") == scope) | (pl.lit(overall) & of_recognition & (pl.col("scope") == "macro"))
    chosen = cells.filter(in_scope & pl.col("metric").is_in(list(specs)))
    rows: dict[tuple[str, str, str], dict[str, Any]] = {}
    for cell in chosen.iter_rows(named=True):
        key = (cell["dataset"], cell["model"], cell["group"])
        group = {} if overall else {"group": cell["group"]}
        start = {"dataset": cell["dataset"], "model": cell["model"], **group, "seen in training": seen[key[1], key[0]]}
        row = rows.setdefault(key, start)
        spec = specs[cell["metric"]]
        for count in ("n", "undefined", "flat", "failed"):
            row.setdefault(count, cell[count])
        other = f" (n {cell['n']:,})" if cell["value"] is not None and cell["n"] != row["n"] else ""
        row[heading(spec)] = f"{written(cell, spec)}{other}"
    columns = ["dataset", "model", *([] if overall else ["group"]), "seen in training"]
    columns += [heading(spec) for spec in metrics] + ["n", "undefined", "flat", "failed"]
    return pl.DataFrame([{c: row.get(c) for c in columns} for row in rows.values()], infer_schema_length=None)


def totals(tasks: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return how much each dataset holds and what was left out, one line a dataset and one of all.

    Patients are not added up: two datasets may show the same.
    """
    columns = ("cases", "patients", "findings", "regions", "present but not localised", "cases not read")
    lines: list[dict[str, Any]] = []
    for dataset in dict.fromkeys(task["dataset"] for task in tasks):
        own = [task for task in tasks if task["dataset"] == dataset]
        most = max(own, key=lambda task: task["pairs"])
        failed = max(task["cases_failed"] for task in own)
        held = (most["cases"], most["patients"], len(most["findings"]), most["pairs"])
        lines.append({"dataset": dataset} | dict(zip(columns, (*held, most[_UNLOCALISED], failed), strict=True)))
    if len(lines) > 1:
        added = {name: sum(line[name] for line in lines) for name in columns if name not in {"patients", "findings"}}
        named = {finding for task in tasks for finding in task["findings"]}
        lines.append({"dataset": "all"} | added | {"findings": len(named)})
    return pl.DataFrame([{c: line.get(c) for c in ("dataset", *columns)} for line in lines], infer_schema_length=None)


_UNLOCALISED = "present_but_not_localised"


def written(cell: Mapping[str, Any], spec: MetricSpec) -> str:
    """Return ``61.6 [58.1, 65.0]``, in percent where the metric is a share; ``undefined: why`` where it is not."""
    if cell["value"] is None:
        return f"undefined: {cell['reason']}"
    return f"{text(spec, cell['value'])} {interval(spec, cell['low'], cell['high'])}".strip()


def seen_text(task: Mapping[str, Any]) -> str:
    """Say what a model has seen of a dataset, and whether it was scored on the rest alone."""
    if not task["seen"] and not task["cases_seen"]:
        return ""
    what = task["seen"] or "patients"
    return f"{what}; scored on the rest" if task["cases_seen"] else f"{what}; scored on all"
