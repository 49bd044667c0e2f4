"""What a metric is: its title, unit, direction, floor and family. Nothing of this is read out of its name.

A benchmark registers its metrics once; summaries carry the specifications of what they hold, so that a report made
elsewhere needs no benchmark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from medground.errors import MetricError

Unit = Literal["percent", "plain"]
Direction = Literal["higher", "lower", "neither"]
Statistic = Literal["mean", "ratio", "ranking", "f1", "agreement", "other"]


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """A metric as tables, figures and verdicts must know it.

    Attributes:
        name: as cells carry it, unique in a benchmark: ``dice@best``.
        title: as the head of a column: ``Dice at searched threshold``.
        unit: ``percent``: a share, printed times 100; ``plain``: printed as it is.
        better: which way is good; ``neither`` for what only describes.
        family: whose margin and minimum decide over claims (see :mod:`medground.metrics.decide`); empty: none is made.
            ``rate`` (AUC, average precision, F1, accuracy, faithfulness, pointing), ``overlap`` (Dice, IoU), ``mass``
            (of an explanation), ``agreement`` (kappa), ``loss`` (Brier, log loss), ``score`` (a scale of its own).
        statistic: how it comes from items, which decides how two models are compared.
        bounds: smallest and largest possible value; None: unbounded.
        floor: what can be had without looking, in words: ``chance``, ``class prior``; empty where it has none.
        floor_metric: the metric that holds the floor of the same cases, where it must be computed.
        floor_value: the floor itself, where it is a constant (.5 for an AUC).
        ceiling: the best that can be had, in words, where it is below the metric's own; empty otherwise.
        ceiling_metric: the metric that holds the ceiling of the same cases.
        searched: whether something of it was picked on the very items that it is computed on, which is optimistic.
        partner: the metric without that optimism (cross-fitted by patient), printed beside a searched one.
        topic: which table it stands in: ``recognition``, ``grounding``, ``explanation``.
        low: left end of the range to draw, in the metric's own unit.
        high: right end.
        digits: decimals when printed in full.
        note: one sentence on what must be known to read it.

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
    statistic: Statistic = "mean"
    bounds: tuple[float, float] | None = (0.0, 1.0)
    floor: str = ""
    floor_metric: str = ""
    floor_value: float | None = None
    ceiling: str = ""
    ceiling_metric: str = ""
    searched: bool = False
    partner: str = ""
    topic: str = ""
    low: float = 0.0
    high: float = 1.0
    digits: int = 2
    note: str = ""

    @property
    def scale(self) -> float:
        """What a value is multiplied by before it is printed."""
        return 100.0 if self.unit == "percent" else 1.0

    @property
    def heading(self) -> str:
        """The title; one that was searched on its own items says so."""
        return f"{self.title} (optimistic)" if self.searched else self.title

    def prefers(self, first: float, second: float) -> bool | None:
        """Whether the first value is better than the second; None where they are equal or neither way is good."""
        if self.better == "neither" or first == second:
            return None
        return (first > second) == (self.better == "higher")

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


_REGISTERED: dict[tuple[str, str], MetricSpec] = {}


def register(*specs: MetricSpec, benchmark: str = "") -> None:
    """Add metrics, for one benchmark or (``""``) for all.

    Raises:
        MetricError: the name is already taken by another specification.
    """
    for spec in specs:
        known = _REGISTERED.setdefault((benchmark, spec.name), spec)
        if known != spec:
            raise MetricError("two metrics have one name", where=f"{benchmark or 'any benchmark'}: {spec.name}")


def registered(benchmark: str) -> tuple[MetricSpec, ...]:
    """Return the metrics of a benchmark and those of all, in the order in which they were added."""
    return tuple(spec for (owner, _), spec in _REGISTERED.items() if owner in {"", benchmark})


def spec_of(name: str, benchmark: str = "") -> MetricSpec:
    """Return what a registered metric is; a plain number of which nothing may be claimed where nobody says."""
    found = _REGISTERED.get((benchmark, name)) or _REGISTERED.get(("", name))
    return found or MetricSpec(name=name, title=name, unit="plain", better="neither", digits=4)
