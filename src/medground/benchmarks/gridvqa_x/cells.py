"""Means by regime, method and group, with what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.gridvqa_x.rows import MODEL, NO_ANNOTATION
from medground.benchmarks.gridvqa_x.specs import FIGURES, specs
from medground.benchmarks.results import Cell
from medground.metrics.bootstrap import Clusters, clusters
from medground.metrics.inference import SHARE, Estimate, estimate
from medground.metrics.influence import of_mean
from medground.metrics.values import mean_defined
from medground.worlds.gridvqa.world import Bucket

REGIMES = ("pure", "spurious", "cross")
"""``pure``: the reasoning model on D_pure; ``spurious``: the shortcut model on D_spur; ``cross``: the shortcut model on
D_pure. In cells a regime is its model and its dataset."""

SCOPES = ("all", "depth", "mixed_depth", "type", "form", "density", "bucket")
"""What scenes are grouped by; ``mixed_depth``: the depth of type M alone."""

_FIGURES = {figure.column: figure for figure in FIGURES}
_BOUNDS = {spec.name: spec.bounds for spec in specs()}
LEVEL = 0.95


@dataclass(frozen=True)
class _Place:
    model: str
    dataset: str
    method: str
    scope: str
    group: str


def grouped(rows: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Yield scope, group and rows; buckets in the order of the paper."""
    yield "all", "", rows
    for column in ("depth", "type", "form", "density"):
        for (value,), part in rows.group_by([column], maintain_order=True):
            yield column, str(value), part
    for (value,), part in rows.filter(pl.col("type") == "M").group_by(["depth"], maintain_order=True):
        yield "mixed_depth", str(value), part
    for keys, part in rows.group_by(["depth", "type", "form", "density"], maintain_order=True):
        yield "bucket", Bucket(*keys).key, part


def cells_of(rows: pl.DataFrame, model: str, dataset: str, level: float | None) -> list[Cell]:
    """Return every mean of one regime.

    Args:
        rows: of one regime, all methods.
        model: its model.
        dataset: its scenes: ``pure`` or ``spurious``.
        level: of the intervals, which are over scenes; None: none.
    """
    cells: list[Cell] = []
    for (method, kind), part in rows.group_by(["method", "scope"], maintain_order=True):
        columns = {"model": {"accuracy": "right"}, "global": {"score": "score", "pool_score": "pool_score"}}.get(
            str(kind), {name: name for name in _FIGURES}
        )
        for scope, group, chosen in grouped(part):
            place = _Place(model, dataset, "" if method == MODEL else str(method), scope, group)
            cells += _cells(chosen, columns, place, level)
    return cells


def _cells(rows: pl.DataFrame, columns: Mapping[str, str], place: _Place, level: float | None) -> Iterator[Cell]:
    """Yield a cell a metric; ``columns``: metric -> column of the rows."""
    values = rows.select(pl.col(list(columns.values())).cast(pl.Float64)).to_numpy()
    by = clusters(rows["scene_id"].to_list())
    unannotated = int((rows["reason"] == NO_ANNOTATION).sum())
    for k, metric in enumerate(columns):
        mean = mean_defined(values[:, k])
        # A bucket holds too few scenes for an interval.
        several = level is not None and place.scope != "bucket"
        interval = _interval(values[:, k], by, metric, level or LEVEL) if several else None
        defined = ~np.isnan(values[:, k])
        yield Cell(
            benchmark="gridvqa_x",
            model=place.model,
            dataset=place.dataset,
            method=place.method,
            scope=place.scope,
            group=place.group,
            metric=metric,
            value=mean.value,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            sd=float(values[defined, k].std()) if defined.any() else None,
            n=mean.n,
            undefined=mean.n_undefined,
            flat=int((_flat(rows, metric) & defined).sum()),
            reason=mean.reason,
            counts={"unannotated": unannotated},
        )


def _interval(values: NDArray[np.float64], by: Clusters, metric: str, level: float) -> Estimate:
    """Return the interval of a mean over scenes: of a share one that cannot collapse, else Student's t."""
    return estimate(of_mean(values, by), SHARE, level, _BOUNDS[metric])


def _flat(rows: pl.DataFrame, metric: str) -> NDArray[np.bool_]:
    """Return which rows have a flat map of the modality that a metric speaks of."""
    if metric not in _FIGURES:
        return np.zeros(len(rows), bool)
    return rows[f"{_FIGURES[metric].modality}_flat"].fill_null(value=False).to_numpy().astype(bool)
