"""What a measuring tool takes and gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from medground.tools.anatomy import Anatomy
from medground.tools.rules import NONE, Decision


@dataclass(frozen=True)
class Mark:
    """Something to draw: a mask, a point, or a line between two points, in pixels of the picture.

    Attributes:
        kind: ``mask`` (no points: the mask of that name), ``point``, ``line`` or ``text``.
        role: ``value`` for what was measured, ``reference`` for what it was held against.
    """

    kind: Literal["mask", "point", "line"]
    name: str
    points: tuple[tuple[float, float], ...] = ()
    role: Literal["value", "reference"] = "value"


@dataclass(frozen=True)
class Measurement:
    """What a tool says about one case.

    Attributes:
        status: ``ok``; ``unlabelled`` (a value without a label); ``dropped`` (quality control refused the case).
        reason: why there is no label, or why the case was dropped; None where the status is ``ok``.
        value: as measured; one number, two (right, left), a mapping of parts, a side, or None where dropped.
        rounded: as the task rounds it, which is what the threshold was applied to.
        decision: label and acceptable conclusions; without a label where the view is needed and not known.
        parts: intermediate quantities, by name.
        marks: what an overlay draws.
    """

    task: str
    status: Literal["ok", "unlabelled", "dropped"]
    reason: str | None = None
    value: Any = None
    rounded: Any = None
    decision: Decision = NONE
    parts: Mapping[str, Any] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()

    @property
    def landmarks(self) -> Mapping[str, tuple[float, float]]:
        """The named points among the marks."""
        return {mark.name: mark.points[0] for mark in self.marks if mark.kind == "point"}


class Tool(Protocol):
    """A diagnostic task's measurement."""

    name: ClassVar[str]

    def measure(self, anatomy: Anatomy) -> Measurement:
        """Measure one case; quality control drops it with a reason rather than guess."""


def dropped(task: str, reason: str, **parts: Any) -> Measurement:
    """Return the measurement of a case that quality control refused."""
    return Measurement(task, "dropped", reason, parts=parts)
