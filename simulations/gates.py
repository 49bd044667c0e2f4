"""What must hold, and what was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulations.alarms import Alarms
from simulations.coverage import Coverage

WIDTHS = (("10 to 30 items", 10, 30, 1.3), ("79 items and more", 79, 10**9, 1.1))
LEAST, LEAST_SMALL = 0.92, 0.90


@dataclass(frozen=True)
class Gate:
    """One limit.

    Attributes:
        name: what must hold.
        limit: in words.
        found: in words.
        held: whether it holds.
    """

    name: str
    limit: str
    found: str
    held: bool


def missed(cell: Coverage | Alarms) -> bool:
    """Whether a cell lies beyond the limit that every cell must keep."""
    if isinstance(cell, Alarms):
        return cell.alarms > cell.limit
    return cell.covered < (LEAST_SMALL if cell.small else LEAST)


def judge(coverage: Sequence[Coverage], alarms: Sequence[Alarms]) -> list[Gate]:
    """Hold every gate against the cells."""
    gates = []
    for statistic in dict.fromkeys(c.statistic for c in coverage):
        cells = [c for c in coverage if c.statistic == statistic]
        gates += _coverage(statistic, [c.covered for c in cells if not c.small], [c.covered for c in cells if c.small])
    gates += _widths([c for c in coverage if c.relative is not None])
    for question in dict.fromkeys(a.question for a in alarms):
        for limit in sorted({a.limit for a in alarms if a.question == question}):
            cells_of = [a for a in alarms if a.question == question and a.limit == limit]
            worst = max(cells_of, key=lambda a: a.alarms)
            found = f"{worst.alarms:.3f} of {len(cells_of)} cells ({worst.cell})"
            gates.append(Gate(question, f"at most {limit:g}", found, worst.alarms <= limit))
    return gates


def _coverage(statistic: str, enough: list[float], few: list[float]) -> list[Gate]:
    gates = []
    if enough:
        least, share = min(enough), float(np.mean(np.array(enough) < 0.93))
        gates += [
            Gate(f"{statistic}, lowest cell", "at least .92", f"{least:.4f} of {len(enough)}", least >= LEAST),
            Gate(f"{statistic}, cells below .93", "at most 1 %", f"{share:.1%}", share <= 0.01),
            Gate(f"{statistic}, mean", "at least .95", f"{np.mean(enough):.4f}", float(np.mean(enough)) >= 0.95),
        ]
    if few:
        found, held = f"{min(few):.4f} of {len(few)}", min(few) >= LEAST_SMALL
        gates.append(Gate(f"{statistic}, lowest cell below 10 patients", "at least .90", found, held))
    return gates


def _widths(cells: Sequence[Coverage]) -> list[Gate]:
    gates = []
    for name, low, high, limit in WIDTHS:
        kept = [c.relative for c in cells if low <= c.items <= high and not c.small and c.relative is not None]
        if kept:
            mean = float(np.mean(kept))
            gates.append(
                Gate(f"width of rates over Wilson's, {name}", f"at most {limit:g}", f"{mean:.3f}", mean <= limit)
            )
    return gates
