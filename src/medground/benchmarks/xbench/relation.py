"""Do models that recognise better also point better? Over models, and over the findings of one model.

Both axes and all models stand on one support: the (dataset, finding) pairs in which every model has both figures. It
is named beside the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from medground.metrics.correlation import fit_line, rank_correlation
from medground.metrics.values import none_if_nan

X, Y = "auc", "pointing"


def relation(cells: pl.DataFrame, tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the line over models: means over the findings of a dataset, then over datasets, on shared support.

    Args:
        cells: of a summary, as a table.
        tasks: what was asked; baselines are left out.
    """
    models, table = _shared(cells, tasks)
    support = table.select("dataset", "group").unique(maintain_order=True)
    if table.is_empty():
        return {"models": [], "r2": None, "reason": "no finding has both figures for every model", "support": []}
    by_dataset = table.group_by("model", "dataset", maintain_order=True).agg(pl.col(X).mean(), pl.col(Y).mean())
    means = by_dataset.group_by("model", maintain_order=True).agg(pl.col(X).mean(), pl.col(Y).mean())
    means = means.sort(pl.col("model").replace_strict({m: i for i, m in enumerate(models)}))
    return {
        "models": means["model"].to_list(),
        X: means[X].to_list(),
        Y: means[Y].to_list(),
        "support": [list(pair) for pair in support.iter_rows()],
        **_fit(means),
    }


def relation_by_class(cells: pl.DataFrame, tasks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the line over findings, one entry a model, and one over the findings of all models (``model`` empty)."""
    models, table = _shared(cells, tasks)
    entries = []
    for model in [*models, ""] if len(models) > 1 else models:
        own = table.filter(pl.col("model") == model) if model else table
        if own.is_empty():
            continue
        points = own.select("model", "dataset", pl.col("group").alias("finding"), X, Y)
        entries.append({"model": model, "points": points.to_dicts(), **_fit(own)})
    return entries


def residuals(over_models: Mapping[str, Any], by_class: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return R², rank correlation and every point's distance from its line as one table.

    Args:
        over_models: from :func:`relation`; its lines have no finding.
        by_class: from :func:`relation_by_class`; the line over all models is called ``all models``.
    """
    lines = []
    points = zip(*(over_models.get(name, []) for name in ("models", X, Y, "residuals")), strict=True)
    for model, x, y, residual in points:
        lines.append(_line("models", {"model": model, X: x, Y: y}, residual, over_models))
    for entry in by_class:
        for point, residual in zip(entry["points"], entry["residuals"], strict=True):
            lines.append(_line(f"findings of {entry['model'] or 'all models'}", point, residual, entry))
    return pl.DataFrame(lines, schema=_SCHEMA)


_SCHEMA = {"line over": pl.String, "model": pl.String, "dataset": pl.String, "finding": pl.String} | dict.fromkeys(
    (X, Y, "residual", "R²", "rank correlation"), pl.Float64
)


def _line(over: str, point: Mapping[str, Any], residual: float | None, fit: Mapping[str, Any]) -> dict[str, Any]:
    place = {name: point.get(name, "") for name in ("model", "dataset", "finding")}
    figures = {X: point[X], Y: point[Y], "residual": residual}
    return {"line over": over} | place | figures | {"R²": fit["r2"], "rank correlation": fit["rank_correlation"]}


def _shared(cells: pl.DataFrame, tasks: Sequence[Mapping[str, Any]]) -> tuple[list[str], pl.DataFrame]:
    """Return the models, and (model, dataset, group, auc, pointing) where every model has both figures."""
    models = sorted({task["model"] for task in tasks if task["kind"] != "baseline"})
    wanted = (pl.col("scope") == "class") & (pl.col("subset") == "main") & pl.col("metric").is_in([X, Y])
    kept = cells.filter(wanted & pl.col("model").is_in(models) & pl.col("value").is_not_null())
    if kept["metric"].n_unique() < 2:
        return models, pl.DataFrame(schema={name: pl.String() for name in ("model", "dataset", "group", X, Y)})
    index = ["model", "dataset", "group"]
    both = kept.pivot("metric", index=index, values="value", maintain_order=True).drop_nulls()
    every = both.group_by("dataset", "group").agg(pl.col("model").n_unique().alias("models"))
    everywhere = every.filter(pl.col("models") == len(models)).drop("models")
    return models, both.join(everywhere, on=["dataset", "group"], how="semi", maintain_order="left")


def _fit(points: pl.DataFrame) -> dict[str, Any]:
    x, y = points[X].to_numpy(), points[Y].to_numpy()
    line = fit_line(x, y)
    return {
        "r2": line.r2,
        "rank_correlation": rank_correlation(x, y),
        "slope": line.slope,
        "intercept": line.intercept,
        "residuals": [none_if_nan(r) for r in np.asarray(line.residuals)],
        "n": line.n,
        "reason": line.reason,
    }
