"""Tables of models: one row a model, the paper's below ours, the best marked, and n beside everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from medground.benchmarks.printing import interval, text
from medground.benchmarks.results import Cell
from medground.benchmarks.xbench.specs import recognition_specs
from medground.metrics.spec import MetricSpec
from medground.reporting.tables import Head, Kind, Mark, Table, TableEntry, best_two
from medground.reporting.words import count
from medground.reporting.xbench.pool import Pooled
from medground.reporting.xbench.published import PublishedRow
from medground.reporting.xbench.standing import standing

Counts = Literal["row", "column", "none"]

_RECOGNITION = {spec.name for spec in recognition_specs()}


@dataclass(frozen=True)
class Column:
    """Which number a column shows; ``kind`` tells a group from the mean over groups."""

    title: str
    metric: str
    scope: str = "macro"
    group: str = ""
    subset: str = "main"
    kind: Kind = "group"


def model_table(
    pool: Pooled,
    dataset: str,
    title: str,
    columns: Sequence[Column],
    printed: Sequence[PublishedRow] = (),
    *,
    counts: Counts = "none",
) -> Table:
    """Return a table of the models on a dataset.

    Args:
        pool: the numbers.
        dataset: which.
        title: caption.
        columns: which numbers.
        printed: rows of the paper; they are never ranked with ours.
        counts: n of every column in a row on top, or what every row rests on in a column at the end.
    """
    return _Rows(pool, dataset, columns).table(title, [p for p in printed if _prints_any(p, columns)], counts)


@dataclass(frozen=True)
class _Rows:
    pool: Pooled
    dataset: str
    columns: Sequence[Column]

    @cached_property
    def heads(self) -> list[Head]:
        """Models, then baselines."""
        places = {m: standing(self.pool.tasks[m, self.dataset]) for m in self.pool.models_on(self.dataset)}
        heads = [Head(m, "baseline" if place.baseline else "model", place.marks) for m, place in places.items()]
        return sorted(heads, key=lambda head: head.kind == "baseline")

    @cached_property
    def ranked(self) -> set[str]:
        """Models that may be called best: none where the runs hold different cases."""
        tasks = self.pool.tasks_on(self.dataset) if self.pool.same_cases(self.dataset) else []
        return {task["model"] for task in tasks if standing(task).ranked}

    def table(self, title: str, printed: Sequence[PublishedRow], counts: Counts) -> Table:
        by_column = [self.entries_of(column) for column in self.columns]
        entries = [list(row) for row in zip(*by_column, strict=True)]
        rows, columns = list(self.heads), [Head(c.title, c.kind) for c in self.columns]
        for row in printed:
            rows.append(Head(row.model, "published", ("as printed",)))
            entries.append([_printed(row, column) for column in self.columns])
        if counts == "column":
            columns.append(Head("regions used", "count"))
            for head, of_row in zip(rows, entries, strict=True):
                of_row.append(self.rests_on(head))
        if counts == "row":
            rows.insert(0, Head("cases" if self.columns[0].metric in _RECOGNITION else "regions", "count"))
            entries.insert(0, self.sizes)
        return Table(title, "model", rows, columns, entries)

    def cells(self, column: Column) -> dict[str, Cell | None]:
        where = column.metric, column.scope, column.group, column.subset
        return {head.name: self.pool.cell(head.name, self.dataset, *where) for head in self.heads}

    def entries_of(self, column: Column) -> list[TableEntry | None]:
        cells, base = self.cells(column), self.base(column)
        spec = self.pool.spec(column.metric)
        marks = _marks(cells, spec, self.ranked)
        return [_entry(cell, spec, base, marks.get(model)) for model, cell in cells.items()]

    def base(self, column: Column) -> int:
        """Return how many items a column is about: classes for a mean over them, else the most that any model has."""
        if _over_classes(column.scope, self.pool.spec(column.metric)):
            return len(self.pool.findings(self.dataset))
        return max((c.n + c.undefined + c.failed for c in self.cells(column).values() if c), default=0)

    @property
    def sizes(self) -> list[TableEntry | None]:
        """N of every group, and of the whole; a failed case has no size and is in none of the bands."""
        total = sum(self.base(column) for column in self.columns if column.kind != "mean")
        sizes: list[TableEntry | None] = []
        for column in self.columns:
            n, note = self.base(column), ""
            if column.kind == "mean":
                n = n if column.scope == "pairs" else total
                note = f"{n - total:,} of failed cases in no group" if n > total else ""
            sizes.append(TableEntry(f"{n:,}", note=note, value=n))
        return sizes

    def rests_on(self, head: Head) -> TableEntry | None:
        """Return how many regions a row is about, and what became of the others."""
        cell = self.pool.cell(head.name, self.dataset, "pointing", "pairs", subset=self.columns[0].subset)
        if cell is None or head.kind == "published":
            return None
        note = f"{cell.undefined:,} undefined, {cell.flat:,} flat, {cell.failed:,} failed"
        return TableEntry(f"{cell.n:,}", note=note, value=cell.n)


def _over_classes(scope: str, spec: MetricSpec) -> bool:
    """Whether a number is a mean over classes; a ratio of all pairs (Hamming accuracy) stands among them."""
    return scope == "macro" and spec.statistic != "ratio"


def _marks(cells: Mapping[str, Cell | None], spec: MetricSpec, ranked: set[str]) -> dict[str, Mark]:
    """Mark the best two; yardsticks and gaps have none: a model with flat, useless maps has a small gap."""
    if spec.direction == "neither":
        return {}
    # Compared as printed, so that equal figures are marked alike.
    values = {m: float(text(spec, c.value)) for m, c in cells.items() if c is not None and c.value is not None}
    return best_two(values, ranked, low_is_good=spec.direction == "lower")


def _entry(cell: Cell | None, spec: MetricSpec, base: int, mark: Mark | None) -> TableEntry | None:
    if cell is None:
        return None
    if cell.value is None:
        return TableEntry("undefined", note=cell.reason or "")
    spread = interval(spec, cell.low, cell.high)
    return TableEntry(text(spec, cell.value), spread, _note(cell, spec, base), spec.scale * cell.value, mark)


def _note(cell: Cell, spec: MetricSpec, base: int) -> str:
    """Say what a number rests on where that is not what its head says."""
    if _over_classes(cell.scope, spec):
        return "" if cell.n == base else f"{cell.n} of {count(base, 'class', 'classes')}"
    lost = (("undefined", cell.undefined), ("flat", cell.flat), ("failed", cell.failed))
    parts = [f"n {cell.n:,}"] if cell.n != base else []
    return ", ".join(parts + [f"{n:,} {what}" for what, n in lost if n])


def _prints_any(row: PublishedRow, columns: Sequence[Column]) -> bool:
    return any(_printed(row, column) for column in columns)


def _printed(row: PublishedRow, column: Column) -> TableEntry | None:
    if column.scope not in {"macro", "class"} or (column.metric, column.group) not in row.values:
        return None
    text, fault = row.values[column.metric, column.group]
    return TableEntry(text, note=fault, value=float(text))
