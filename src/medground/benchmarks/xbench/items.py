"""Every localised pair as the case viewer shows it: the summary's measures before any mean, made with the summary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from medground.benchmarks.xbench.grounding import grounding_values
from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.specs import fixed

ITEMS = "pairs"
"""Name of the table among a summary's items."""

SCHEMA = pl.Schema(
    {
        "model": pl.String(),
        "dataset": pl.String(),
        "case_id": pl.String(),
        "finding": pl.String(),
        "view": pl.String(),
        "traits": pl.String(),
        "share": pl.Float64(),
        "outcome": pl.String(),
        "reason": pl.String(),
        "score": pl.Float64(),
        "probability": pl.Float64(),
        "pointing": pl.Float64(),
        "dice": pl.Float64(),
        "dice_fixed": pl.Float64(),
        "iou": pl.Float64(),
        "dice_floor": pl.Float64(),
        "tau": pl.Float64(),
        "peak_x": pl.Float64(),
        "peak_y": pl.Float64(),
        "geometry": pl.String(),
        "map_file": pl.String(),
        "map_sha256": pl.String(),
    }
)
"""``outcome``: hit, miss, flat, undefined or failed. ``dice`` and ``iou`` stand at the searched threshold ``tau``,
``dice_fixed`` at the first fixed one; ``peak_x`` and ``peak_y`` are where the first maximum lies, as shares of the
picture's sides. Null where undefined."""


def pair_items(pairs: Pairs, who: Mapping[str, str]) -> pl.DataFrame:
    """Return one row a pair of one model on one dataset.

    Args:
        pairs: of the cases that the model has not seen in training.
        who: ``model`` and ``dataset``.
    """
    if not len(pairs):
        return SCHEMA.to_frame()
    protocol = pairs.protocol
    # Rows of an earlier format say less: what they do not say is unknown.
    absent = [name for name in (*_PLACED, "traits", "map_file", "map_sha256") if name not in pairs.frame.columns]
    frame = pairs.frame.with_columns(pl.lit(None, pl.String()).alias(name) for name in absent)
    values = grounding_values(pairs)
    columns = {
        "pointing": values["pointing"],
        "dice": values["dice@best"],
        "dice_fixed": values[fixed("dice", protocol.fixed[0])],
        "iou": values["iou@best"],
        "dice_floor": values["dice_floor"],
        "tau": np.where(pairs.searched >= 0, protocol.thresholds[pairs.searched], np.nan),
    }
    measured = pl.DataFrame(columns).with_columns(pl.all().fill_nan(None))
    states = zip(frame["state"], measured["pointing"], strict=True)
    peaks = [_peak(row, protocol) for row in frame.select(_PLACED).iter_rows(named=True)]
    known = frame.select(name for name in SCHEMA.names() if name in frame.columns and not name.startswith("peak_"))
    whole = known.with_columns(
        *measured,
        pl.Series("outcome", [_outcome(state, pointing) for state, pointing in states], pl.String()),
        *(pl.Series(f"peak_{axis}", [p and p[k] for p in peaks], pl.Float64()) for k, axis in enumerate("xy")),
        **{name: pl.lit(who[name]) for name in ("model", "dataset")},
    )
    return whole.select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())


_PLACED = ("state", "peak_x", "peak_y", "geometry")


def _outcome(state: str, pointing: float | None) -> str:
    """Return what became of a pair; a peak that ties in and out of the region hits where most of it lies inside."""
    if state in {"failed", "flat"}:
        return state
    if state != "ok":
        return "undefined"
    return "hit" if (pointing or 0) >= 0.5 else "miss"


def _peak(row: Mapping[str, Any], protocol: Protocol) -> tuple[float, float] | None:
    """Return where the first maximum lies, as shares of the picture's sides; None where a map has no peak."""
    if row["peak_x"] is None or row["state"] == "flat":
        return None
    grid = protocol.grid
    width, height = json.loads(row["geometry"])["source"] if grid == "original" else grid
    return (row["peak_x"] + 0.5) / width, (row["peak_y"] + 0.5) / height
