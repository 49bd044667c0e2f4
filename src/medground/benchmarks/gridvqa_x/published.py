"""What the paper prints, beside what was measured here; other weights, scenes and settings, so only to orient."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import polars as pl

from medground.benchmarks.gridvqa_x.specs import Modality, figure

SOURCE = "GridVQA-X, arXiv 2606.14740, ECCV 2026, through a public summary"
_LOCAL = {"rma": "mass", "iou": "iou"}
_MODALITY: dict[str, Modality] = {"visual": "image", "textual": "text"}
_REGIME = {("M_pure", "D_pure"): "pure", ("M_spur", "D_pure"): "cross"}


@cache
def table(name: str) -> pl.DataFrame:
    """Return a published table, figures as printed."""
    path = files(__package__) / "published" / f"{name}.csv"
    return pl.read_csv(path.read_bytes(), infer_schema=False)


def beside(cells: pl.DataFrame) -> pl.DataFrame:
    """Return printed means and deviations in percent with ours, one line each."""
    lines = [*_locals(cells), *_emap(cells), *_accuracy(cells)]
    return pl.DataFrame(lines, schema=_SCHEMA)


_SCHEMA = pl.Schema(
    dict.fromkeys(("table", "regime", "method", "metric", "group"), pl.String())
    | dict.fromkeys(("published", "published_sd", "ours", "ours_sd", "low", "high"), pl.Float64())
    | {"n": pl.Int64()}
)


def _locals(cells: pl.DataFrame) -> Iterator[dict[str, Any]]:
    printed = table("table1_local_explainers")
    for model, regime, modality in printed.select("model", "dataset", "group").unique(maintain_order=True).iter_rows():
        for short, metric in _LOCAL.items():
            named = (
                (pl.col("model") == model)
                & (pl.col("dataset") == regime)
                & (pl.col("group") == modality)
                & pl.col("metric").str.starts_with(short)
            )
            column = figure(_MODALITY[modality], metric)
            by_metric = dict(printed.filter(named).select("metric", "value").iter_rows())
            yield _line(
                "local", regime, model.lower(), column, "all", by_metric, _ours(cells, regime, model, column, "all", "")
            )


def _emap(cells: pl.DataFrame) -> Iterator[dict[str, Any]]:
    printed = table("table2_emap_synergy_by_depth")
    for regime, group in printed.select("dataset", "group").unique(maintain_order=True).iter_rows():
        by_depth = dict(
            printed.filter((pl.col("dataset") == regime) & (pl.col("group") == group))
            .select("metric", "value")
            .iter_rows()
        )
        depth = group.split()[-1]
        yield _line(
            "emap",
            regime,
            "emap",
            "score",
            group,
            by_depth,
            _ours(cells, regime, "emap", "score", "mixed_depth", depth),
            1,
        )


def _accuracy(cells: pl.DataFrame) -> Iterator[dict[str, Any]]:
    for model, data, group, value in (
        table("table3_accuracy_by_depth").select("model", "dataset", "group", "value").iter_rows()
    ):
        regime = _REGIME.get((model, data))
        bucket = f"D{group.split()[-1]}-M-count-d07"
        ours = _ours(cells, regime, "", "accuracy", "bucket", bucket) if regime else None
        yield _line("accuracy", regime, model, "accuracy", bucket, {"accuracy_mean": value}, ours)


def _ours(cells: pl.DataFrame, regime: str, method: str, metric: str, scope: str, group: str) -> dict[str, Any] | None:
    named = {"regime": regime, "method": method.lower(), "metric": metric, "scope": scope, "group": group}
    ours = cells.filter(pl.all_horizontal(*(pl.col(key) == value for key, value in named.items())))
    return ours.row(0, named=True) if len(ours) else None


def _line(
    name: str,
    regime: str | None,
    method: str,
    metric: str,
    group: str,
    printed: dict[str, str],
    ours: dict[str, Any] | None,
    scale: float = 100,
) -> dict[str, Any]:
    """Return one line in percent; ``scale`` brings ours there."""
    held = ours or {}
    values = {
        end: next((float(v) for key, v in printed.items() if key.endswith(end) and v), None) for end in ("mean", "sd")
    }
    mine = {key: held[key] * scale if held.get(key) is not None else None for key in ("value", "sd", "low", "high")}
    return {
        "table": name,
        "regime": regime,
        "method": method,
        "metric": metric,
        "group": group,
        "published": values["mean"],
        "published_sd": values["sd"],
        "ours": mine["value"],
        "ours_sd": mine["sd"],
        "low": mine["low"],
        "high": mine["high"],
        "n": held.get("n"),
    }
