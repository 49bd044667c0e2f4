"""Who may be called best: zero-shot models that have not seen the dataset, and nobody else."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from medground.benchmarks.xbench.tables import seen_text
from medground.reporting.tables import Mark


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
