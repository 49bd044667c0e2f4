"""One number of a summary, and many: with its interval, its floor, and how many items it rests on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from medground.errors import MetricError
from medground.metrics.spec import MetricSpec

if TYPE_CHECKING:
    import polars as pl

CHECKED: dict[str, Any] = {"extra": "forbid", "strict": False}
"""How pydantic reads a record: fields that it does not know are errors."""

_NUMBERS = ("value", "low", "high", "sd", "floor", "ceiling")
_COUNTS = ("n", "undefined", "flat", "failed")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number of a summary.

    Attributes:
        benchmark: the benchmark's name.
        reading: the protocol, reader or judge under which it was read; empty where there is one way alone.
        model: label of the model. A blind twin is a model of its own: ``ModelFacts`` in ``results.py``.
        dataset: label of the dataset.
        subset: ``main`` (every item that the model may be scored on), or another choice of items, such as ``shared``
            (those that no model of the run has seen in training).
        method: what stood between model and number: an explainer, say; empty where nothing did.
        scope: of which kind the group is: ``all`` (every item), ``macro`` (mean over classes), ``pairs``, ``class``,
            ``view``, ``size``, ``depth`` and whatever else the benchmark groups by.
        group: which of them: a finding, a view; empty for a scope with one group.
        metric: its name; what it means, in which unit and which way is good, stands in its specification.
        value: the number in the metric's own unit (shares in [0, 1]), or None where it is undefined.
        low: lower end of the interval; None where there is no interval.
        high: upper end.
        sd: population standard deviation over the items, where it is printed.
        n: items that the number rests on.
        undefined: items left out because their value is undefined.
        flat: items used whose map is flat.
        failed: items left out because they could not be read, or were not answered.
        floor: what can be had without looking, on the same items; None where the metric has none.
        ceiling: the best that can be had on the same items, where it is below the metric's own.
        reason: why the value is undefined.
        counts: further counts of the benchmark, by name.

    Raises:
        MetricError: a number is NaN or infinite, or a value and a reason are both there or both missing.

    Example:
        >>> Cell(benchmark="xbench", model="clip", dataset="nih", metric="pointing", value=0.31, n=984).value
        0.31
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = CHECKED

    benchmark: str
    model: str
    metric: str
    reading: str = ""
    dataset: str = ""
    subset: str = "main"
    method: str = ""
    scope: str = "all"
    group: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    sd: float | None = None
    n: int = 0
    undefined: int = 0
    flat: int = 0
    failed: int = 0
    floor: float | None = None
    ceiling: float | None = None
    reason: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise MetricError(
                    "an undefined number is None with a reason", where=f"{self.metric}.{name}", got=number
                )
        if (self.value is None) != (self.reason is not None):
            raise MetricError(
                "a cell has a value, or a reason for having none",
                where=f"{self.metric} of {self.model} on {self.dataset or 'everything'}",
                got=f"value {self.value}, reason {self.reason!r}",
            )
        if (self.low is None) != (self.high is None):
            raise MetricError("an interval has two ends", where=self.metric, got=f"[{self.low}, {self.high}]")

        if taken := set(self.counts) & {f.name for f in fields(self)}:
            raise MetricError("a further count has a name of its own", where=self.metric, got=", ".join(sorted(taken)))

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from every other cell of its run."""
        return tuple(getattr(self, name) for name in KEYS)

    @property
    def items(self) -> int:
        """Items that were asked about: used, undefined and failed."""
        return self.n + self.undefined + self.failed


KEYS = ("benchmark", "reading", "model", "dataset", "subset", "method", "scope", "group", "metric")


class Cells(Sequence[Cell]):
    """Cells with an index, so that one or several are found by any of their fields.

    Example:
        >>> cells = Cells([Cell(benchmark="b", model="m", metric="auc", value=0.8, n=10)])
        >>> cells.one(model="m", metric="auc").value
        0.8
        >>> cells.one(model="m", metric="dice") is None
        True
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._cells = tuple(cells)
        self._by_metric: dict[tuple[str, str], list[Cell]] = {}
        for cell in self._cells:
            self._by_metric.setdefault((cell.model, cell.metric), []).append(cell)

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, index: Any) -> Any:
        return self._cells[index]

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells)

    def where(self, **wanted: str) -> list[Cell]:
        """Return the cells whose fields are as given, in their order.

        Args:
            wanted: any of ``KEYS``.

        Raises:
            MetricError: a cell has no such field.
        """
        if unknown := set(wanted) - set(KEYS):
            raise MetricError("cells are not told apart by that", expected=", ".join(KEYS), got=", ".join(unknown))
        near: Iterable[Cell] = self._cells
        if {"model", "metric"} <= set(wanted):
            near = self._by_metric.get((wanted["model"], wanted["metric"]), [])
        return [cell for cell in near if all(getattr(cell, name) == value for name, value in wanted.items())]

    def one(self, **wanted: str) -> Cell | None:
        """Return the one cell whose fields are as given, or None where there is none.

        Raises:
            MetricError: there are several: more must be given.
        """
        chosen = self.where(**wanted)
        if len(chosen) > 1:
            raise MetricError("several cells are like that", got=f"{len(chosen)} with {wanted}", fix="give more fields")
        return chosen[0] if chosen else None

    def values(self, name: str) -> list[str]:
        """Return what a field takes over all cells, each once, in order of first appearance."""
        return list(dict.fromkeys(getattr(cell, name) for cell in self._cells))


def with_floors(cells: Sequence[Cell], metrics: Iterable[MetricSpec]) -> list[Cell]:
    """Return cells with what can be had without looking at the same items, where the metric names such a floor.

    A floor that a cell already has stays.

    Args:
        cells: in order; the metrics that hold floors are among them.
        metrics: their specifications.
    """
    specs = {spec.name: spec for spec in metrics}
    values = {cell.key: cell.value for cell in cells}

    def beside(cell: Cell, own: float | None, metric: str | None, constant: float | None) -> float | None:
        if own is not None or cell.value is None:
            return own
        return constant if metric is None else values.get((*cell.key[:-1], metric))

    floored = []
    for cell in cells:
        spec = specs.get(cell.metric)
        if spec is None:
            floored.append(cell)
            continue
        floor = beside(cell, cell.floor, spec.floor_metric, spec.floor_value)
        ceiling = beside(cell, cell.ceiling, spec.ceiling_metric, spec.ceiling_value)
        floored.append(replace(cell, floor=floor, ceiling=ceiling))
    return floored


def frame(cells: Sequence[Cell]) -> pl.DataFrame:
    """Return cells as a table in their order, every digit kept: a column a field, and one for every further count."""
    import polars as pl

    names = list(dict.fromkeys(name for cell in cells for name in cell.counts))
    schema = pl.Schema(
        dict.fromkeys(KEYS, pl.String())
        | dict.fromkeys(_NUMBERS, pl.Float64())
        | dict.fromkeys(_COUNTS, pl.Int64())
        | dict.fromkeys(names, pl.Int64())
        | {"reason": pl.String()}
    )
    plain = (*KEYS, *_NUMBERS, *_COUNTS, "reason")
    records = [{f: getattr(c, f) for f in plain} | {n: c.counts.get(n, 0) for n in names} for c in cells]
    return pl.DataFrame(records, schema=schema)
