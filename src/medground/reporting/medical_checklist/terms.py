"""Terms of twenty items or more: how often a model is right on them, and how often it falls for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from medground.benchmarks.results import Cell
from medground.reporting.tables import Head, Table, TableEntry

MOST = 15
"""Terms at either end of a table; all of them are in the run's cells."""
_COLUMNS = (
    ("accuracy", "right, as the true term"),
    ("wins_as_replacement", "preferred, as the false term"),
    ("preference", "preferred, as either"),
)


def terms(cells: Sequence[Cell], models: Sequence[str]) -> Iterator[Table]:
    """Yield one table a model: the terms that it is most and least often right on."""
    for model in models:
        held = {(c.metric, c.group): c for c in cells if c.model == model and c.scope == "term"}
        known = [
            (c.value, term) for (metric, term), c in held.items() if metric == "preference" and c.value is not None
        ]
        ranked = [term for _, term in sorted(known, key=lambda pair: (-pair[0], pair[1]))]
        shown = ranked if len(ranked) <= 2 * MOST else [*ranked[:MOST], *ranked[-MOST:]]
        if not shown:
            continue
        entries = [[_entry(held.get((metric, term))) for metric, _ in _COLUMNS] for term in shown]
        left = len(ranked) - len(shown)
        notes = ["A term that a model prefers wherever it stands is a habit of words, not a sight."]
        notes += [f"{left} terms between the two ends are left out here."] if left else []
        yield Table(
            f"Terms of 20 items or more, {model}", "term", [Head(term, "group") for term in shown],
            [Head(words, "group") for _, words in _COLUMNS], entries, notes, family="Terms", choice=model,
        )  # fmt: skip


def _entry(cell: Cell | None) -> TableEntry | None:
    if cell is None or cell.value is None:
        return None
    ends = "" if cell.low is None or cell.high is None else f"[{100 * cell.low:.1f}, {100 * cell.high:.1f}]"
    return TableEntry(f"{100 * cell.value:.1f}", ends, f"n {cell.n}", 100 * cell.value)
