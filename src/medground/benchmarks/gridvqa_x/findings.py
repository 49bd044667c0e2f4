"""The patterns that the paper reports, and whether they show here: figures first, then a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from medground.metrics import decide
from medground.metrics.bootstrap import clusters
from medground.metrics.differences import difference_of_groups
from medground.metrics.spec import MetricSpec
from medground.metrics.values import mean_defined

_MASS = MetricSpec("mass", "Mass on the cause", family="mass")
HOLDS, NOT, OPEN = "holds", "does not hold", "cannot be said"


def findings(
    rows: pl.DataFrame, globals_: Sequence[Mapping[str, Any]], rule: decide.Rule = decide.DEFAULTS["mass"]
) -> list[dict[str, Any]]:
    """Return the published patterns with what was measured.

    Args:
        rows: of all regimes.
        globals_: the checks of the global methods.
        rule: margin and minimum of masses.
    """
    printed = replace(rule, reliability=None)  # of figures that are printed, not of a method
    local = rows.filter(pl.col("scope") == "local")
    methods = [str(method) for method in local["method"].unique(maintain_order=True)]
    sentences = [
        _alike(local.filter(pl.col("method") == method), method, modality, printed)
        for method in methods
        for modality in ("image", "text")
    ]
    sentences += [_depth(check) for check in globals_ if check["subset"] == "mixed"]
    sentences += [
        _leak(local.filter((pl.col("method") == method) & (pl.col("form") == "exists")), method) for method in methods
    ]
    return [line for line in sentences if line]


def _alike(rows: pl.DataFrame, method: str, modality: str, rule: decide.Rule) -> dict[str, Any]:
    """Mass on the causal mask in the pure and the spurious regime: equal, or higher for the shortcut model?"""
    parts = [rows.filter(pl.col("regime") == regime) for regime in ("pure", "spurious")]
    if not all(len(part) for part in parts):
        return {}
    values = [part[f"{modality}_mass"].cast(pl.Float64).fill_null(float("nan")).to_numpy() for part in parts]
    by = [clusters(part["scene_id"].to_list()) for part in parts]
    difference = difference_of_groups(values[1], values[0], by[1], by[0])
    if difference.value is None:
        return {}
    first, second = (float(mean_defined(v).number) for v in values)
    low, high = difference.low, difference.high
    words: dict[decide.Word, str] = {
        "better": "higher for the shortcut",
        "worse": "lower for the shortcut",
        "equivalent": "alike",
        "cannot be told": OPEN,
    }
    word = words[decide.decide_level(difference, 0.0, _MASS, rule).word]
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
