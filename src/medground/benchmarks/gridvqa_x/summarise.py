"""From the rows of every pool to tables, verdicts and the data of the pictures. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from medground.benchmarks.gridvqa_x.cells import REGIMES, cells_of
from medground.benchmarks.gridvqa_x.findings import findings
from medground.benchmarks.gridvqa_x.glance import LEGEND, glance
from medground.benchmarks.gridvqa_x.published import SOURCE, beside
from medground.benchmarks.gridvqa_x.rows import SCHEMA
from medground.benchmarks.gridvqa_x.specs import FIGURES, specs
from medground.benchmarks.gridvqa_x.verdicts import ADDITIVE, global_checks, local_checks, verdicts
from medground.benchmarks.results import ModelFacts, Summary, frame, with_floors
from medground.metrics import decide


@dataclass(frozen=True)
class IntervalOptions:
    """What a summary depends on beside the rows."""

    replicates: int = 1000
    seed: int = 0
    level: float = 0.95
    only_right: bool = False
    rules: Mapping[str, decide.Rule] = field(default_factory=decide.rules)


def summarise(
    rows: Mapping[tuple[str, ...], pl.DataFrame], regimes: Mapping[tuple[str, str], str], options: IntervalOptions
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
    where = {regime: place for place, regime in regimes.items()}
    level = options.level if options.replicates else None
    metrics = specs()
    cells = with_floors(
        [
            cell
            for regime in REGIMES
            if len(part := kept.filter(pl.col("regime") == regime))
            for cell in cells_of(part, *where[regime], level)
        ],
        metrics,
    )
    table = frame(cells).with_columns(regime=_regime(regimes))
    draws = max(options.replicates, 200)
    rule = options.rules["mass"]
    checks = global_checks(kept, draws, options.seed, rule)
    local = local_checks(kept, options.seed, options.level, rule)
    data = {
        "regimes": {regime: {"model": model, "data": name} for (model, name), regime in regimes.items()},
        "filter": "right answers only, cross excepted" if options.only_right else "all answers",
        "scenes": _counts(joined),
        "failed": failed.select("regime", "scene_id", "reason").to_dicts(),
        "local": local,
        "additive_fallacy": checks,
        "findings": findings(kept, checks, rule),
        "rules": {family: rule.in_words() for family, rule in options.rules.items()},
        "published_source": SOURCE,
        "intervals": {"level": options.level, "replicates": options.replicates, "seed": options.seed},
        "calls": _calls(joined),
        "pictures": _pictures(joined),
    }
    tables = {
        "glance": glance(table, data),
        "cells": table,
        "accuracy": _accuracy(table),
        "local": _wide(table, "all"),
        **{f"local_by_{scope}": _wide(table, scope) for scope in ("depth", "type", "form", "density", "bucket")},
        "global_by_depth": table.filter(
            pl.col("metric").is_in(["score", "pool_score"]), pl.col("scope").is_in(["mixed_depth", "depth"])
        ),
        "published": beside(table),
        "local_checks": pl.DataFrame(local) if local else pl.DataFrame(),
    }
    answers = verdicts(cells, where, local, checks, rule)
    measured = {cell.metric for cell in cells} | {c.metric for verdict in answers for c in verdict.roles.values()}
    return Summary(
        cells=cells,
        verdicts=answers,
        tables={name: table for name, table in tables.items() if len(table)},
        data=data,
        benchmark="gridvqa_x",
        models=[ModelFacts(label=label) for label in dict.fromkeys(model for model, _ in regimes)],
        metrics=[spec for spec in metrics if spec.name in measured],
        questions=[ADDITIVE],
        level=options.level,
        legend=LEGEND,
        shown=("glance",),
    )


def _regime(regimes: Mapping[tuple[str, str], str]) -> pl.Expr:
    """Return the column of a cell's regime, which is its model and its dataset."""
    named = {f"{model}\n{dataset}": regime for (model, dataset), regime in regimes.items()}
    return pl.concat_str("model", "dataset", separator="\n").replace_strict(named, return_dtype=pl.String)


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
    kept = cells.filter(pl.col("metric") == "accuracy")
    return kept.select("regime", "scope", "group", "value", "low", "high", "n", "undefined", "reason")


def _wide(cells: pl.DataFrame, scope: str) -> pl.DataFrame:
    """Return local methods in percent, one line a regime, method and group."""
    local = [figure.column for figure in FIGURES]
    chosen = cells.filter(pl.col("scope") == scope, pl.col("metric").is_in(local))
    if not len(chosen):
        return chosen
    return (
        chosen.with_columns((pl.col("value") * 100).round(2))
        .pivot("metric", index=["regime", "method", "group"], values="value", aggregate_function="first")
        .sort(pl.col("regime").replace_strict({r: i for i, r in enumerate(REGIMES)}), maintain_order=True)
    )


def _pictures(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the scenes that a report draws: objects and masks, and the maps of every regime side by side."""
    by_scene: dict[str, dict[str, Any]] = {}
    for row in rows.filter(pl.col("scene").is_not_null()).iter_rows(named=True):
        held = by_scene.setdefault(row["scene_id"], {"scene": json.loads(row["scene"]), "answers": {}, "maps": []})
        held["answers"][row["regime"]] = row["said"]
    local = rows.filter(pl.col("scope") == "local", pl.col("scene_id").is_in(list(by_scene)))
    for row in local.iter_rows(named=True):
        by_scene[row["scene_id"]]["maps"].append(
            {
                key: row[key]
                for key in ("regime", "method", "target", "image_map", "text_map", "image_mass", "text_mass", "reason")
            }
        )
    return list(by_scene.values())
