"""What a judge is given and what it answers.

Evidence is what was *measured* for a request: values with tolerances, the criterion, landmarks and the conclusion. It
never travels without the unit and the tolerance that a reply is held to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

#: The parts of an answer that a query can ask for.
PARTS = ("measurement", "criterion", "conclusion", "visual")
EVIDENCE_TYPES = ("diagnostic", "visual")

Status = Literal["ok", "abstained", "parse_error", "api_error", "skipped"]
Value = float | int | str | None


@dataclass(frozen=True)
class Quantity:
    """A measured value.

    Attributes:
        value: a number, a word (a side, a part), or None where there is none.
        tolerance: half-width inside which a stated number agrees, ends included; None: only up to its rounding.
        side: ``right`` or ``left`` of the patient, where the value belongs to one.
    """

    name: str
    value: Value
    unit: str = ""
    tolerance: float | None = None
    side: str | None = None


@dataclass(frozen=True)
class Criterion:
    """The rule that was applied.

    Attributes:
        thresholds: a number, an interval, or a mapping of named parts; None where no rule could be chosen.
        view: the view that the threshold belongs to, where it hangs on one.
    """

    text: str | None
    op: str
    thresholds: Any
    view: str | None = None


@dataclass(frozen=True)
class Landmark:
    """A named point in original pixels."""

    name: str
    x: float
    y: float


@dataclass(frozen=True)
class Conclusion:
    """The label: ``polarity`` is 1 or 0 in the sense of the task, None where the evidence has no label."""

    label: str | None
    polarity: int | None
    acceptable: tuple[str, ...] = ()

    @property
    def polarities(self) -> frozenset[int]:
        """Every polarity that counts as right: both near a threshold."""
        if self.polarity is None:
            return frozenset()
        return frozenset((0, 1)) if len(self.acceptable) > 1 else frozenset((self.polarity,))


@dataclass(frozen=True)
class Evidence:
    """What was measured for one request."""

    measurements: tuple[Quantity, ...]
    criterion: Criterion
    landmarks: tuple[Landmark, ...]
    conclusion: Conclusion
    visual_ref: str | None = None


@dataclass(frozen=True)
class Request:
    """One thing that a query asks for.

    Attributes:
        task: one of the twelve diagnostic tasks.
        evidence_type: ``diagnostic`` or ``visual``.
        asked: which parts of the evidence the query wants; coverage hangs on it.
    """

    task: str
    evidence_type: str
    evidence: Evidence
    asked: tuple[str, ...] = ("measurement", "criterion", "conclusion")


@dataclass(frozen=True)
class Query:
    """A turn as a judge sees it.

    Attributes:
        text: the user's words.
        requests: what they ask for; empty for chatter.
        size: width and height of the picture that landmarks refer to.
        draws: whether the candidate can answer with a picture.
    """

    text: str
    requests: tuple[Request, ...]
    size: tuple[int, int] = (1024, 1024)
    draws: bool = False


@dataclass(frozen=True)
class Overlay:
    """A picture that an agent drew: for which task, with which named points."""

    task: str
    landmarks: tuple[Landmark, ...] = ()


@dataclass(frozen=True)
class Ruling:
    """What a judge says about one turn.

    Attributes:
        coverage: 1 or 0; None where the judge does not say.
        faithfulness: 1 or 0; None where the judge does not say.
        status: ``ok``; ``abstained`` (a rule judge cannot read it); ``parse_error`` and ``api_error`` (a model judge
            failed); ``skipped`` (the turn is not applicable).
        reason: in one line.
        mismatches: what disagreed with the evidence, each naming its item.
        source: which judge decided, where several could.
    """

    coverage: int | None
    faithfulness: int | None
    status: Status = "ok"
    reason: str = ""
    mismatches: tuple[str, ...] = ()
    source: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """The ruling as JSON-like data."""
        return {
            "coverage": self.coverage,
            "faithfulness": self.faithfulness,
            "judge_status": self.status,
            "reason": self.reason,
            "mismatches": list(self.mismatches),
            "judge_source": self.source,
        }


class Judge(Protocol):
    """Holds a reply against evidence, without a model."""

    name: ClassVar[str]

    def judge(self, query: Query, reply: str, overlays: tuple[Overlay, ...] = ()) -> Ruling:
        """Judge one turn; text in the reply that addresses the judge changes nothing."""

    def fingerprint(self) -> str:
        """Name everything that a ruling depends on."""
