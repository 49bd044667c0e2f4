"""How firmly the models of a run are ranked on a dataset, over the regions that all of them were scored on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from medground.benchmarks.xbench.grounding import How, grounding_values
from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.protocol import Protocol
from medground.metrics.stability import rank_means

RANKED = ("pointing", "dice@crossfit", "dice@best")
"""Metrics that models are ranked by; the second stands for the third where there is one."""


def ranks(
    tables: Mapping[str, pl.DataFrame], findings: Sequence[str], protocol: Protocol, how: How
) -> Iterator[dict[str, Any]]:
    """Yield one record a model and metric: its rank, the limits of that rank, and how often it is the best.

    Args:
        tables: model -> rows of one dataset; cases that any of them has seen in training are left out.
        findings: classes in order.
        protocol: says which mean is printed.
        how: replicates, seed and level; no replicates, no ranks.
    """
    if len(tables) < 2 or not how.replicates:
        return
    pairs = _aligned(tables, protocol, how)
    if pairs is None:
        return
    values = {model: grounding_values(own) for model, own in pairs.items()}
    known = next(iter(values.values()))
    for metric in [name for name in RANKED if name in known][:2]:
        columns = np.stack([values[model][metric] for model in pairs], axis=1)
        defined = ~np.isnan(columns).any(axis=1)
        if not defined.any():
            continue
        first = next(iter(pairs.values()))
        masks = [(first.finding == f)[defined] for f in findings] if protocol.averaging == "macro" else None
        by = type(first.by)(first.by.codes[defined], first.by.count)
        ranked = rank_means(columns[defined], by, masks, replicates=how.replicates, seed=how.seed, level=how.level)
        for m, model in enumerate(pairs):
            yield {
                "metric": metric,
                "model": model,
                "rank": float(ranked.rank[m]),
                "low": float(ranked.low[m]),
                "high": float(ranked.high[m]),
                "first": float(ranked.first[m]),
                "share": ranked.share[m].tolist(),
                "regions": int(defined.sum()),
                "replicates": ranked.replicates,
            }


def _aligned(tables: Mapping[str, pl.DataFrame], protocol: Protocol, how: How) -> dict[str, Pairs] | None:
    """Return the localised pairs that every model was asked about and none has seen, in one order."""
    key = ["case_id", "finding"]
    kept: pl.DataFrame | None = None
    for rows in tables.values():
        own = rows.filter(pl.col("localised") & ~pl.col("seen")).select(key)
        kept = own if kept is None else kept.join(own, on=key, how="semi", maintain_order="left")
    if kept is None or kept.is_empty():
        return None
    shared = kept.sort(key)
    return {
        model: Pairs.of(shared.join(rows, on=key, how="left", maintain_order="left"), protocol, how.seed)
        for model, rows in tables.items()
    }
