"""Values as people read them: in the unit and with the decimals of their specification, one way everywhere."""

from __future__ import annotations

from medground.benchmarks.results import Cell
from medground.metrics.spec import MetricSpec


def text(spec: MetricSpec, value: float, digits: int | None = None) -> str:
    """Return a value without its unit.

    Args:
        spec: of the metric.
        value: in the metric's own unit.
        digits: decimals of what is printed times 100; the metric's own by default. Others keep theirs.
    """
    places = spec.digits if digits is None or spec.scale == 1.0 else digits
    return f"{spec.scale * value:.{places}f}"


def interval(spec: MetricSpec, low: float | None, high: float | None, digits: int | None = None) -> str:
    """Return ``[58.1, 65.0]``, or nothing where there is no interval."""
    if low is None or high is None:
        return ""
    return f"[{text(spec, low, digits)}, {text(spec, high, digits)}]"


def with_interval(spec: MetricSpec, cell: Cell, digits: int | None = None) -> str:
    """Return ``61.6 [58.1, 65.0]``, or ``undefined: why``."""
    if cell.value is None:
        return f"undefined: {cell.reason}"
    return f"{text(spec, cell.value, digits)} {interval(spec, cell.low, cell.high, digits)}".strip()


def heading(spec: MetricSpec) -> str:
    """Return a metric's title; one with a threshold searched on the scored cases says that it is optimistic."""
    return f"{spec.title} (optimistic)" if spec.searched else spec.title
