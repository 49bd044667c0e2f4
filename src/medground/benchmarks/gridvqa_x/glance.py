"""One table that fits a terminal: accuracy, mass and synergy by regime, and the verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from medground.benchmarks.gridvqa_x.cells import REGIMES
from medground.benchmarks.gridvqa_x.specs import EVIDENCE, figure

LEGEND = (
    "percent; local: mass on the causal mask (mean over scenes); global: score at depth 1, 2, 3 of type M; "
    "* after Holm's correction p > 0.05"
)
_SCHEMA = pl.Schema(dict.fromkeys(("dataset", "method", "of", *REGIMES, "verdict"), pl.String()))


def glance(cells: pl.DataFrame, data: Mapping[str, Any]) -> pl.DataFrame:
    """Return the table; ``dataset`` holds the heading that a line stands under."""
    lines = [*_accuracy(cells), *_local(cells, data), *_global(data)]
    return pl.DataFrame(lines, schema=_SCHEMA)


def _line(heading: str, method: str, of: str, values: Mapping[str, str | None], verdict: str | None) -> dict[str, Any]:
    return {"dataset": heading, "method": method, "of": of, "verdict": verdict} | {r: values.get(r) for r in REGIMES}


def _accuracy(cells: pl.DataFrame) -> Iterator[dict[str, Any]]:
    kept = cells.filter(pl.col("metric") == "accuracy", pl.col("scope").is_in(["all", "mixed_depth"]))
    for scope, group in kept.select("scope", "group").unique(maintain_order=True).iter_rows():
        chosen = kept.filter(pl.col("scope") == scope, pl.col("group") == group)
        of = "all scenes" if scope == "all" else f"type M, depth {group}"
        yield _line("Accuracy", "model", of, _by_regime(chosen), None)


def _local(cells: pl.DataFrame, data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    checks = {(check["method"], check["modality"]): check for check in data["local"]}
    modalities = {figure(modality, "mass"): modality for modality in EVIDENCE}
    kept = cells.filter(pl.col("scope") == "all", pl.col("metric").is_in(list(modalities)))
    for method, metric in kept.select("method", "metric").unique(maintain_order=True).iter_rows():
        chosen = kept.filter(pl.col("method") == method, pl.col("metric") == metric)
        check = checks.get((method, modalities[metric]))
        word = None
        if check:
            word = check["verdict"]
        yield _line("Local explainers", method, modalities[metric], _by_regime(chosen), word)


def _global(data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for check in data["additive_fallacy"]:
        if check["subset"] == "mixed":
            means = {r: check[r].get("mean") for r in REGIMES}
            shown = {r: " ".join(f"{m:.3g}" for m in values) if values else None for r, values in means.items()}
            yield _line("Global explainers", check["method"], "depth 1 2 3", shown, check["verdict"])


def _by_regime(cells: pl.DataFrame) -> dict[str, str | None]:
    return {
        regime: None if value is None else f"{100 * value:.1f}"
        for regime, value in cells.select("regime", "value").iter_rows()
    }
