"""The patterns that the paper reports, and whether they show here: figures first, then a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from medground.metrics.bootstrap import bootstrap_mean, clusters, percentile_interval
from medground.metrics.values import mean_defined

HOLDS, NOT, OPEN = "holds", "does not hold", "cannot be said"


def findings(
    rows: pl.DataFrame, globals_: Sequence[Mapping[str, Any]], replicates: int, seed: int
) -> list[dict[str, Any]]:
    """Return the published patterns with what was measured.

    Args:
        rows: of all regimes.
        globals_: the verdicts of the global methods.
        replicates: bootstrap replicates.
        seed: of the bootstrap.
    """
    local = rows.filter(pl.col("scope") == "local")
    methods = [str(method) for method in local["method"].unique(maintain_order=True)]
    found = [
        _alike(local.filter(pl.col("method") == method), method, modality, replicates, seed)
        for method in methods
        for modality in ("image", "text")
    ]
    found += [_depth(check) for check in globals_ if check["subset"] == "mixed"]
    found += [
        _leak(local.filter((pl.col("method") == method) & (pl.col("form") == "exists")), method) for method in methods
    ]
    return [line for line in found if line]


def _alike(rows: pl.DataFrame, method: str, modality: str, replicates: int, seed: int) -> dict[str, Any]:
    """Mass on the causal mask in the pure and the spurious regime: equal, or higher for the shortcut model?"""
    parts = [rows.filter(pl.col("regime") == regime) for regime in ("pure", "spurious")]
    values = [part[f"{modality}_mass"].to_numpy() for part in parts]
    means = [mean_defined(v) for v in values]
    drawn = [
        bootstrap_mean(v, clusters(part["scene_id"].to_list()), replicates, seed + k)
        for k, (v, part) in enumerate(zip(values, parts, strict=True))
        if len(part)
    ]
    if len(drawn) < 2 or any(mean.value is None for mean in means):
        return {}
    first, second = (float(mean.number) for mean in means)
    interval = percentile_interval(drawn[1] - drawn[0])
    low, high = interval.low, interval.high
    word = OPEN
    if low is not None and high is not None:
        word = "higher for the shortcut" if low > 0 else "lower for the shortcut" if high < 0 else "alike"
    return {
        "pattern": f"{method}: {modality} mass on the causal mask, shortcut minus reasoning",
        "reasoning": first,
        "shortcut": second,
        "difference": second - first,
        "low": low,
        "high": high,
        "result": word,
    }


def _depth(check: Mapping[str, Any]) -> dict[str, Any]:
    pure = check["pure"]
    if "slope" not in pure:
        return {}
    low, high = pure["slope_interval"]
    return {
        "pattern": f"{check['method']}: synergy of the reasoning model over depth 1, 2, 3 (type M)",
        "means": pure["mean"],
        "difference": pure["slope"],
        "low": low,
        "high": high,
        "result": "falls" if high < 0 else "rises" if low > 0 else "no trend",
    }


def _leak(rows: pl.DataFrame, method: str) -> dict[str, Any]:
    """Image mass on lures (distractors that fit the target) in existence questions of D_pure."""
    means = {}
    for regime, name in (("pure", "reasoning"), ("cross", "shortcut")):
        means[name] = mean_defined(rows.filter(pl.col("regime") == regime)["image_lures"].to_numpy()).value
    if None in means.values():
        return {}
    return {"pattern": f"{method}: image mass on lures in existence questions of D_pure", **means, "result": "measured"}
