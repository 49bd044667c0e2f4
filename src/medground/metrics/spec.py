"""What a metric is: title, unit, direction, family, floor and ceiling, and whether its threshold was searched.

Nothing is read off a metric's name. A benchmark registers its metrics once; summaries carry the specifications of what
they hold, so that a report made elsewhere needs no benchmark::

    register(MetricSpec("pointing", "Pointing game", family="rate", floor="class prior", floor_metric="pointing_prior"),
             benchmark="xbench")
    spec_of("pointing", benchmark="xbench").title
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from medground.errors import MetricError, did_you_mean

Unit = Literal["percent", "points", "count", "none"]
Direction = Literal["higher", "lower", "neither"]
Family = Literal["rate", "overlap", "mass", "agreement", "loss", "score"]
Statistic = Literal["mean", "ratio", "ranking", "f1", "agreement", "other"]
Floor = Literal[
    "prevalence",
    "all positive",
    "all negative",
    "all foreground",
    "class prior",
    "chance",
    "constant answer",
    "blind twin",
    "base rate",
    "zero",
]
Ceiling = Literal["one", "truth as map", "true cause", "agreement of people"]


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric of one benchmark.

    Attributes:
        name: as cells hold it.
        title: as people read it.
        unit: ``percent``: a share, printed times 100; ``points``: a difference of shares, printed times 100; ``count``;
            ``none``: as it is.
        direction: which way is better; ``neither`` for what only describes.
        family: decides margin and minimum, see `decide`: ``rate`` (AUC, average precision, F1, accuracy, faithfulness,
            pointing), ``overlap`` (Dice, IoU), ``mass`` (of an explanation), ``agreement`` (kappa), ``loss`` (Brier,
            log loss, calibration error), ``score`` (a scale of its own, without a margin).
        statistic: how it comes from items, which decides how two models are compared.
        bounds: smallest and largest possible value; None: unbounded.
        floor: what knows nothing; None where nothing of the kind exists.
        floor_metric: the metric that holds the floor of the same cases, where it must be computed.
        floor_value: the floor itself, where it is a constant (.5 for an AUC).
        ceiling: the best that can be reached.
        ceiling_metric: the metric that holds it.
        ceiling_value: or the constant.
        searched: whether its threshold was chosen on the cases that it is scored on, which flatters.
        partner: the metric without that optimism (cross-fitted by patient), printed beside a searched one.
        digits: after the point, as printed.
        note: one sentence on what must be known to read it.

    Example:
        >>> MetricSpec("auc", "AUC", floor="chance", floor_value=0.5, statistic="ranking").shown(0.8754)
        '87.5'
    """

    name: str
    title: str
    unit: Unit = "percent"
    direction: Direction = "higher"
    family: Family = "rate"
    statistic: Statistic = "mean"
    bounds: tuple[float, float] | None = (0.0, 1.0)
    floor: Floor | None = None
    floor_metric: str | None = None
    floor_value: float | None = None
    ceiling: Ceiling | None = None
    ceiling_metric: str | None = None
    ceiling_value: float | None = None
    searched: bool = False
    partner: str | None = None
    digits: int = 1
    note: str = ""

    def __post_init__(self) -> None:
        for name, given, allowed in (
            ("unit", self.unit, Unit),
            ("direction", self.direction, Direction),
            ("family", self.family, Family),
            ("statistic", self.statistic, Statistic),
            ("floor", self.floor, Floor),
            ("ceiling", self.ceiling, Ceiling),
        ):
            options = get_args(allowed)
            if given not in options and not (given is None and name in {"floor", "ceiling"}):
                raise MetricError(
                    f"unknown {name} of a metric",
                    where=self.name,
                    expected=", ".join(options),
                    got=given,
                    fix=did_you_mean(str(given), options),
                )

    @property
    def scale(self) -> float:
        """What a value is multiplied by when it is printed."""
        return 100.0 if self.unit in {"percent", "points"} else 1.0

    def shown(self, value: float | None, *, signed: bool = False) -> str:
        """Return a value as people read it, without its unit; an empty text for None."""
        if value is None:
            return ""
        text = f"{value * self.scale:{'+' if signed else ''}.{self.digits}f}"
        return text.removeprefix("-") if not float(text) and not signed else text

    def better(self, first: float, second: float) -> bool | None:
        """Whether the first value is better than the second; None where neither direction is, or both are equal."""
        if self.direction == "neither" or first == second:
            return None
        return (first > second) == (self.direction == "higher")

    def to_json(self) -> dict[str, Any]:
        """Return the specification as JSON takes it."""
        return asdict(self)


def from_json(data: Mapping[str, Any]) -> MetricSpec:
    """Read a specification back; keys of a later version are ignored."""
    known = {f.name for f in fields(MetricSpec)}
    kept = {key: value for key, value in data.items() if key in known}
    if isinstance(kept.get("bounds"), list):
        kept["bounds"] = tuple(kept["bounds"])
    return MetricSpec(**kept)


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


def spec_of(name: str, benchmark: str = "", given: Iterable[MetricSpec] = ()) -> MetricSpec:
    """Return the specification of a metric.

    Args:
        name: as cells hold it.
        benchmark: whose metric it is.
        given: specifications that go first, such as those that a summary carries.

    Returns:
        What was given, else registered for the benchmark, else for all. An unknown metric has its name as title, no
        unit, no direction and no margin, so that nothing is claimed about it.
    """
    for spec in given:
        if spec.name == name:
            return spec
    known = _REGISTERED.get((benchmark, name)) or _REGISTERED.get(("", name))
    return known or MetricSpec(
        name, name, "none", "neither", "score", statistic="other", bounds=None, digits=3, note="not registered"
    )


def registered(benchmark: str) -> tuple[MetricSpec, ...]:
    """Return the metrics of a benchmark and those of all, in the order in which they were added."""
    return tuple(spec for (owner, _), spec in _REGISTERED.items() if owner in {"", benchmark})
