"""From an interval and an edge to an answer: yes beyond it, no short of it, and nothing claimed in between."""

from __future__ import annotations

from collections.abc import Mapping

from medground.benchmarks.results import Answer

MARGINS: Mapping[str, float] = {"auc": 0.02, "pointing": 0.02, "share": 0.02, "overlap": 0.01, "mass": 0.05}
"""Family of a metric -> what must be gained over what can be had without looking, in the metric's own unit."""

LEAST: Mapping[str, int] = {"auc": 10, "pointing": 10, "share": 10, "overlap": 10, "mass": 30}
"""Family of a metric -> independent units (patients, scenes) below which nothing is claimed."""


def beyond(low: float | None, high: float | None, edge: float) -> Answer:
    """Return on which side of an edge an interval lies: ``yes`` above, ``no`` below, else ``cannot be told``."""
    if low is None or high is None:
        return "cannot be told"
    return "yes" if low > edge else "no" if high <= edge else "cannot be told"
