"""Means by regime, method and group, with what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.gridvqa_x.rows import FIGURES, NO_ANNOTATION
from medground.metrics.bootstrap import bootstrap_mean, clusters, percentile_interval
from medground.metrics.values import mean_defined
from medground.worlds.gridvqa.world import Bucket

REGIMES = ("pure", "spurious", "cross")
GROUPINGS = ("all", "depth", "mixed_depth", "type", "form", "density", "bucket")


@dataclass(frozen=True)
class Cell:
    """One number of a summary.

    Attributes:
        regime: ``pure`` (the reasoning model on D_pure), ``spurious`` (the shortcut model on D_spur) or ``cross`` (the
            shortcut model on D_pure).
        method: an explainer, or ``model`` for accuracy.
        metric: a column of the rows; ``accuracy``, ``score`` or ``pool_score`` (a method's own figure of a bucket).
        by: ``all``, ``depth``, ``mixed_depth`` (type M alone), ``type``, ``form``, ``density`` or ``bucket``.
        group: which of them.
        value: the mean; None where undefined.
        low: lower end of its interval (bootstrap over scenes); none for single buckets.
        high: upper end.
        sd: population standard deviation, as the paper prints.
        n: scenes used.
        undefined: scenes left out because their value is undefined.
        unannotated: of these, scenes of type A with the answer no, which have no causal cell.
        flat: scenes used whose map is flat.
        reason: why the value is undefined.
    """

    regime: str
    method: str
    metric: str
    by: str
    group: str
    value: float | None
    low: float | None
    high: float | None
    sd: float | None
    n: int
    undefined: int
    unannotated: int
    flat: int
    reason: str | None


SCHEMA = pl.Schema(
    dict.fromkeys(("regime", "method", "metric", "by", "group"), pl.String())
    | dict.fromkeys(("value", "low", "high", "sd"), pl.Float64())
    | dict.fromkeys(("n", "undefined", "unannotated", "flat"), pl.Int64())
    | {"reason": pl.String()}
)


def frame(cells: Sequence[Cell]) -> pl.DataFrame:
    """Return cells as a table, in their order."""
    return pl.DataFrame([asdict(cell) for cell in cells], schema=SCHEMA)


def grouped(rows: pl.DataFrame) -> Iterator[tuple[str, str, pl.DataFrame]]:
    """Yield grouping, group and rows; buckets in the order of the paper."""
    yield "all", "all", rows
    for column in ("depth", "type", "form", "density"):
        for (value,), part in rows.group_by([column], maintain_order=True):
            yield column, str(value), part
    for (value,), part in rows.filter(pl.col("type") == "M").group_by(["depth"], maintain_order=True):
        yield "mixed_depth", str(value), part
    for keys, part in rows.group_by(["depth", "type", "form", "density"], maintain_order=True):
        yield "bucket", Bucket(*keys).key, part


def cells_of(rows: pl.DataFrame, replicates: int, seed: int, level: float) -> list[Cell]:
    """Return every mean of one regime.

    Args:
        rows: of one regime, all methods.
        replicates: bootstrap replicates; 0: no intervals.
        seed: of the bootstrap.
        level: coverage of the intervals.
    """
    found: list[Cell] = []
    for (method, scope), part in rows.group_by(["method", "scope"], maintain_order=True):
        columns = {"model": ["right"], "global": ["score", "pool_score"]}.get(str(scope), list(FIGURES))
        for by, group, chosen in grouped(part):
            draws = 0 if by == "bucket" else replicates
            found += _cells(chosen, str(method), columns, by, group, draws, seed, level)
    return found


def _cells(
    rows: pl.DataFrame,
    method: str,
    columns: list[str],
    by: str,
    group: str,
    replicates: int,
    seed: int,
    level: float,
) -> Iterator[Cell]:
    values = rows.select(pl.col(columns).cast(pl.Float64)).to_numpy()
    drawn = np.zeros((0, len(columns)))
    if replicates:
        ids = rows["scene_id"].to_list()
        drawn = bootstrap_mean(values, clusters(ids), replicates, seed)
    unannotated = int((rows["reason"] == NO_ANNOTATION).sum())
    for k, column in enumerate(columns):
        mean = mean_defined(values[:, k])
        interval = percentile_interval(drawn[:, k], level) if replicates else None
        defined = ~np.isnan(values[:, k])
        flat = _flat(rows, column) & defined
        yield Cell(
            regime=rows["regime"][0],
            method=method,
            metric="accuracy" if column == "right" else column,
            by=by,
            group=group,
            value=mean.value,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            sd=float(values[defined, k].std()) if defined.any() else None,
            n=mean.n,
            undefined=mean.n_undefined,
            unannotated=unannotated,
            flat=int(flat.sum()),
            reason=mean.reason,
        )


def _flat(rows: pl.DataFrame, column: str) -> NDArray[np.bool_]:
    """Return which rows have a flat map of the modality that a column speaks of."""
    name = f"{column.split('_', maxsplit=1)[0]}_flat"
    if name not in rows.columns:
        return np.zeros(len(rows), bool)
    return rows[name].fill_null(value=False).to_numpy().astype(bool)
