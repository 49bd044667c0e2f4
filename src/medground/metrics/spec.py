"""What a metric is: its title, unit, direction, floor and family. Nothing of this is read out of its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Unit = Literal["percent", "plain"]
Direction = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """A metric as tables, figures and verdicts must know it.

    Attributes:
        name: as cells carry it, unique in a benchmark: ``dice@best``.
        title: as the head of a column: ``Dice at searched threshold``.
        unit: ``percent``: a share, printed times 100; ``plain``: printed as it is.
        better: which way is good; ``neither`` for what only describes.
        family: whose margin and minimum decide over claims (see :mod:`medground.metrics.decide`); empty: none is made.
        floor: what can be had without looking, in words: ``chance``, ``class prior``; empty where it has none.
        searched: whether something of it was picked on the very items that it is computed on, which is optimistic.
        topic: which table it stands in: ``recognition``, ``grounding``, ``explanation``.
        low: left end of the range to draw, in the metric's own unit.
        high: right end.
        digits: decimals when printed in full.

    Example:
        >>> spec = MetricSpec(name="auc", title="AUC", floor="chance")
        >>> spec.text(0.81234), spec.text(0.81234, 1)
        ('81.23', '81.2')
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    name: str
    title: str
    unit: Unit = "percent"
    better: Direction = "higher"
    family: str = ""
    floor: str = ""
    searched: bool = False
    topic: str = ""
    low: float = 0.0
    high: float = 1.0
    digits: int = 2

    @property
    def scale(self) -> float:
        """What a value is multiplied by before it is printed."""
        return 100.0 if self.unit == "percent" else 1.0

    @property
    def heading(self) -> str:
        """The title; one that was searched on its own items says so."""
        return f"{self.title} (optimistic)" if self.searched else self.title

    def text(self, value: float, digits: int | None = None) -> str:
        """Return a value as it is printed, without its unit.

        Args:
            value: in the metric's own unit.
            digits: decimals; the metric's own by default. What is no percentage keeps its own in any case.
        """
        places = self.digits if digits is None or self.unit == "plain" else digits
        return f"{self.scale * value:.{places}f}"

    def interval(self, low: float | None, high: float | None, digits: int | None = None) -> str:
        """Return ``[58.1, 65.0]``, or nothing where there is no interval."""
        if low is None or high is None:
            return ""
        return f"[{self.text(low, digits)}, {self.text(high, digits)}]"

    def with_interval(self, value: float, low: float | None, high: float | None, digits: int | None = None) -> str:
        """Return ``61.6 [58.1, 65.0]``."""
        return f"{self.text(value, digits)} {self.interval(low, high, digits)}".strip()
