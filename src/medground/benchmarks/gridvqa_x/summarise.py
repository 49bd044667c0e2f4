"""From the rows of every pool to tables, verdicts and the data of the pictures. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from medground.benchmarks.base import Summary
from medground.benchmarks.gridvqa_x.cells import REGIMES, cells_of, frame
from medground.benchmarks.gridvqa_x.findings import findings
from medground.benchmarks.gridvqa_x.glance import LEGEND, glance
from medground.benchmarks.gridvqa_x.published import SOURCE, beside
from medground.benchmarks.gridvqa_x.rows import SCHEMA
from medground.benchmarks.gridvqa_x.verdicts import global_verdicts, local_verdicts

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Options:
    """What a summary depends on beside the rows."""

    replicates: int = 1000
    seed: int = 0
    level: float = 0.95
    only_right: bool = False


def summarise(
    rows: Mapping[tuple[str, ...], pl.DataFrame], regimes: Mapping[tuple[str, str], str], options: Options
) -> Summary:
    """Summarise a run.

    Args:
        rows: (model, data set, bucket) -> rows.
        regimes: (model, data set) -> regime.
        options: intervals, and whether local tables keep right answers alone.
    """
    joined = _joined(rows, regimes)
    failed = joined.filter(pl.col("scope") == "model", pl.col("reason").is_not_null())
    joined = joined.filter(~((pl.col("scope") == "model") & pl.col("reason").is_not_null()))
    kept = joined
    if options.only_right:
        # The cross regime is never filtered: there the shortcut model is wrong by construction.
        kept = joined.filter((pl.col("scope") == "model") | (pl.col("regime") == "cross") | pl.col("right"))
    cells = frame(
        [
            cell
            for regime in REGIMES
            if len(part := kept.filter(pl.col("regime") == regime))
            for cell in cells_of(part, options.replicates, options.seed, options.level)
        ]
    )
    checks = global_verdicts(kept, max(options.replicates, 200), options.seed)
    verdicts = local_verdicts(kept, max(options.replicates, 200), options.seed, options.level)
    patterns = findings(kept, checks, max(options.replicates, 200), options.seed)
    printed = beside(cells)
    data = {
        "schema_version": SCHEMA_VERSION,
        "regimes": {regime: {"model": model, "data": name} for (model, name), regime in regimes.items()},
        "filter": "right answers only, cross excepted" if options.only_right else "all answers",
        "scenes": _counts(joined),
        "failed": failed.select("regime", "scene_id", "reason").to_dicts(),
        "verdicts": verdicts,
        "additive_fallacy": checks,
        "findings": patterns,
        "published_source": SOURCE,
        "calls": _calls(joined),
        "pictures": _pictures(joined),
        "legend": LEGEND,
    }
    tables = {
        "glance": glance(cells, data),
        "cells": cells,
        "accuracy": _accuracy(cells),
        "local": _wide(cells, "all"),
        **{f"local_by_{by}": _wide(cells, by) for by in ("depth", "type", "form", "density", "bucket")},
        "global_by_depth": cells.filter(
            pl.col("metric").is_in(["score", "pool_score"]), pl.col("by").is_in(["mixed_depth", "depth"])
        ),
        "published": printed,
        "verdicts": pl.DataFrame(verdicts) if verdicts else pl.DataFrame(),
    }
    return Summary(data, {name: table for name, table in tables.items() if len(table)})


def _joined(rows: Mapping[tuple[str, ...], pl.DataFrame], regimes: Mapping[tuple[str, str], str]) -> pl.DataFrame:
    parts = [
        part.with_columns(pl.lit(regimes[path[0], path[1]]).alias("regime")) for path, part in rows.items() if len(part)
    ]
    return pl.concat(parts) if parts else pl.DataFrame(schema={**SCHEMA, "regime": pl.String})


def _counts(rows: pl.DataFrame) -> dict[str, int]:
    answers = rows.filter(pl.col("scope") == "model")
    return dict(answers.group_by("regime", maintain_order=True).len().iter_rows())


def _calls(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the mean and the largest number of model calls an explanation took."""
    local = rows.filter(pl.col("scope") == "local")
    return (
        local.group_by(["regime", "method"], maintain_order=True)
        .agg(pl.col("calls").mean().alias("mean"), pl.col("calls").max().alias("most"))
        .to_dicts()
    )


def _accuracy(cells: pl.DataFrame) -> pl.DataFrame:
    return cells.filter(pl.col("metric") == "accuracy").drop("unannotated", "flat", "sd")


def _wide(cells: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return local methods in percent, one line a regime, method and group."""
    chosen = cells.filter(pl.col("by") == by, ~pl.col("metric").is_in(["accuracy", "score", "pool_score"]))
    if not len(chosen):
        return chosen
    return (
        chosen.with_columns((pl.col("value") * 100).round(2))
        .pivot("metric", index=["regime", "method", "group"], values="value", aggregate_function="first")
        .sort(pl.col("regime").replace_strict({r: i for i, r in enumerate(REGIMES)}), maintain_order=True)
    )


def _pictures(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the scenes that a report draws: objects and masks, and the maps of every regime side by side."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows.filter(pl.col("scene").is_not_null()).iter_rows(named=True):
        held = found.setdefault(row["scene_id"], {"scene": json.loads(row["scene"]), "answers": {}, "maps": []})
        held["answers"][row["regime"]] = row["said"]
    local = rows.filter(pl.col("scope") == "local", pl.col("scene_id").is_in(list(found)))
    for row in local.iter_rows(named=True):
        found[row["scene_id"]]["maps"].append(
            {
                key: row[key]
                for key in ("regime", "method", "target", "image_map", "text_map", "image_mass", "text_mass", "reason")
            }
        )
    return list(found.values())
