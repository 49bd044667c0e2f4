"""A table of the report: rows and columns with heads, and entries that carry value, interval, n and rank."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Mark = Literal["best", "second"]
Kind = Literal["model", "baseline", "published", "count", "group", "mean"]

SCREENFUL = 10
"""More columns than this are turned into rows, where there are fewer rows."""


@dataclass(frozen=True)
class TableEntry:
    """One cell.

    Attributes:
        text: the value as printed.
        interval: ``[low, high]``, or nothing.
        note: what is special about it: fewer items, flat maps, the reason why it is undefined, a fault in print.
        value: what the column is sorted by and what goes into the CSV; None where undefined.
        mark: its rank.
    """

    text: str
    interval: str = ""
    note: str = ""
    value: float | None = None
    mark: Mark | None = None


@dataclass(frozen=True)
class Head:
    """The head of a row or a column: its name, what it is, and what must be said beside it."""

    name: str
    kind: Kind = "model"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: its caption.
        corner: what the rows are.
        rows: their heads.
        columns: their heads.
        entries: one sequence a row.
        notes: below the table.
        family: tables of one family take turns in one place of the page.
        choice: how a table is called among them.
    """

    title: str
    corner: str
    rows: Sequence[Head]
    columns: Sequence[Head]
    entries: Sequence[Sequence[TableEntry | None]]
    notes: Sequence[str] = ()
    family: str = ""
    choice: str = ""

    def readable(self, corner: str) -> Table:
        """Return the table with rows and columns exchanged where it would be much wider than high.

        Args:
            corner: what the columns are.
        """
        if len(self.columns) <= SCREENFUL or len(self.columns) <= len(self.rows):
            return self
        turned = list(zip(*self.entries, strict=True))
        return replace(self, corner=corner, rows=self.columns, columns=self.rows, entries=turned)


def best_two(values: Mapping[str, float], ranked: Collection[str], *, low_is_good: bool = False) -> dict[str, Mark]:
    """Mark the best and the second best among the ranked.

    Values are compared as given: round them as they are printed, so that what looks equal is marked alike. One model
    alone is not marked.

    Args:
        values: name -> value, where defined.
        ranked: names that take part.
        low_is_good: whether the smallest value is the best.
    """
    known = {name: value for name, value in values.items() if name in ranked}
    if len(known) < 2:
        return {}
    order = sorted(set(known.values()), reverse=not low_is_good)
    places: dict[float, Mark] = dict(zip(order, ("best", "second"), strict=False))
    return {name: places[value] for name, value in known.items() if value in places}
