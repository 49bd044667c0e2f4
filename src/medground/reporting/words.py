"""Numbers and counts as text, one way everywhere."""

from __future__ import annotations

from collections.abc import Sequence

from medground.benchmarks.xbench.cells import Cell
from medground.benchmarks.xbench.tables import NOT_PERCENT


def number(value: float, metric: str, digits: int = 2) -> str:
    """Return a value as it is printed: in percent, or as it is where the metric is no share."""
    return f"{value:.4f}" if metric in NOT_PERCENT else f"{100 * value:.{digits}f}"


def interval(cell: Cell, digits: int = 2) -> str:
    """Return ``[low, high]``, or nothing where there is no interval."""
    if cell.low is None or cell.high is None:
        return ""
    return f"[{number(cell.low, cell.metric, digits)}, {number(cell.high, cell.metric, digits)}]"


def with_interval(cell: Cell, digits: int = 1) -> str:
    """Return ``61.6 [58.1, 65.0]``."""
    assert cell.value is not None
    return f"{number(cell.value, cell.metric, digits)} {interval(cell, digits)}".strip()


def count(n: int, one: str, many: str | None = None) -> str:
    """Return ``1 case``, ``880 cases``."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def listed(names: Sequence[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
