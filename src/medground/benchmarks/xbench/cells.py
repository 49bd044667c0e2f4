"""A summary is a list of cells: one number, its interval, and how many items it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import polars as pl


@dataclass(frozen=True)
class Cell:
    """One number of a summary.

    Attributes:
        model: label of the model.
        dataset: label of the dataset.
        subset: ``main`` (every case that the model has not seen in training) or ``shared`` (cases that no model of the
            run has seen).
        scope: ``class``, ``macro`` (mean over classes; Hamming accuracy, which has no class, over all annotated pairs),
            ``pairs`` (mean over pairs), ``view`` or ``size``.
        group: the finding, view or size band; empty for ``macro`` and ``pairs``.
        metric: such as ``pointing``, ``dice@best`` or ``auc``.
        value: the number, or None where it is undefined.
        low: lower end of the interval.
        high: upper end.
        n: items used: pairs or annotated cases; classes for ``macro``.
        undefined: items left out because their value is undefined.
        flat: items used whose map is flat.
        failed: items left out because their case could not be read.
        skipped: bootstrap replicates in which the value was undefined.
        reason: why the value is undefined.
    """

    model: str
    dataset: str
    subset: str
    scope: str
    group: str
    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    undefined: int = 0
    flat: int = 0
    failed: int = 0
    skipped: int = 0
    reason: str | None = None


SCHEMA = pl.Schema(
    dict.fromkeys(("model", "dataset", "subset", "scope", "group", "metric"), pl.String())
    | dict.fromkeys(("value", "low", "high"), pl.Float64())
    | dict.fromkeys(("n", "undefined", "flat", "failed", "skipped"), pl.Int64())
    | {"reason": pl.String()}
)


def frame(cells: Iterable[Cell]) -> pl.DataFrame:
    """Return cells as a table, in their order."""
    return pl.DataFrame([asdict(cell) for cell in cells], schema=SCHEMA)
