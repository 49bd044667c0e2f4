"""Who may be called best: zero-shot models that have not seen the dataset, and nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medground.benchmarks.xbench.tables import seen_text


@dataclass(frozen=True)
class Standing:
    """A model's place on one dataset.

    Attributes:
        baseline: whether it is a yardstick rather than a model.
        ranked: whether it takes part in the ranking.
        marks: what must be said beside its name.
    """

    baseline: bool
    ranked: bool
    marks: tuple[str, ...]


def standing(task: Mapping[str, Any]) -> Standing:
    """Return a model's place from its task."""
    seen = seen_text(task)
    kind = task.get("kind") or "unknown"
    marks = [] if kind == "zero-shot" else ["training unknown" if kind == "unknown" else kind]
    if seen:
        marks.append(f"seen in training: {seen}")
    if task.get("unverified"):
        marks.append(f"not the published model: {task['unverified']}")
    return Standing(kind == "baseline", kind == "zero-shot" and not seen, tuple(marks))
