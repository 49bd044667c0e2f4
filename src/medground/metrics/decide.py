"""The one rule by which anything is claimed.

A claim needs evidence (a least number of patients), an interval on the right side of the margin, and for a difference
the p value of its family. Everything else *cannot be told*: no difference that was found is no proof of equality.

====================  ==================================================================================
claim                 needs
====================  ==================================================================================
better, worse         p <= .05 in its family, and the 95 % interval beyond the margin
equivalent            the 90 % interval inside the margin (two one-sided tests, Schuirmann 1987)
above, below          the 95 % interval wholly on one side of the floor plus the margin
not better            worse or equivalent; the whole 95 % interval short of the margin; or better than a floor in
                      not one patient. Of several floors the hardest decides
cannot be told        everything else; always below the minimum, or where a method does not repeat itself
====================  ==================================================================================

Margins and minima belong to families of metrics (`spec.MetricSpec.family`) and are changed in the run file alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from medground.errors import ConfigError, did_you_mean
from medground.metrics.differences import Difference
from medground.metrics.inference import Estimate
from medground.metrics.spec import MetricSpec

Word = Literal["better", "worse", "equivalent", "cannot be told"]
Answer = Literal["yes", "in part", "no", "cannot be told", "not asked"]
ALPHA = 0.05
FEWEST_IN_A_CLASS = 2  # patients, in every class of a macro mean


@dataclass(frozen=True, slots=True)
class Rule:
    """Margin and minimum of a family of metrics.

    Attributes:
        margin: smaller differences are none; on the metric's own scale (.02 is two points). None: no margin is stated,
            so that a difference can be told from none, but equality cannot.
        least: patients (pairs, dialogues, scenes) below which nothing is claimed; for an AUC of either kind.
        reliability: least test-retest correlation of a method; None where nothing is repeated.
        unit: what is counted.

    Example:
        >>> Rule(0.02, 10).in_words()
        'margin 2 points, least 10 patients'
    """

    margin: float | None
    least: int
    reliability: float | None = None
    unit: str = "patients"
    points: bool = True

    def __post_init__(self) -> None:
        bad = self.margin is not None and not self.margin >= 0
        if bad or self.least < 2 or (self.reliability is not None and not 0 <= self.reliability <= 1):
            raise ConfigError(
                "a rule of decision is out of range",
                expected="a margin of 0 or more, a minimum of 2 or more, a correlation between 0 and 1",
                got=asdict(self),
            )

    def in_words(self) -> str:
        """Say the rule as a report prints it."""
        if self.margin is None:
            margin = "no margin"
        else:
            margin = f"margin {_counted(100 * self.margin)}" if self.points else f"margin {self.margin:g}"
        retest = f", test-retest correlation {self.reliability:g}" if self.reliability is not None else ""
        return f"{margin}, least {self.least} {self.unit}{retest}"


DEFAULTS: Mapping[str, Rule] = {
    "rate": Rule(0.02, 10),
    "overlap": Rule(0.01, 10),
    "mass": Rule(0.05, 30, reliability=0.7, unit="scenes"),
    "agreement": Rule(0.05, 50, unit="items", points=False),
    "loss": Rule(0.01, 10, points=False),
    "score": Rule(None, 10, points=False),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What can be said, and why.

    Attributes:
        word: better, worse, equivalent or cannot be told. Of a value beside its floor, ``better`` is above it.
        because: one sentence with the figures that decided.
        margin: the margin that was used.
        direction: 1 where the difference is shown to be for the better though not by the margin, -1 for the worse, 0
            where no direction is shown. Always set with better and worse; with ``equivalent`` it says "better, but by
            less than the margin".
        enough: whether there was enough evidence to claim anything.
        short: whether the whole interval falls short of floor and margin: it may be a little better, or much worse, but
            it is shown not to be better by the margin.
    """

    word: Word
    because: str
    margin: float | None = None
    direction: int = 0
    enough: bool = True
    short: bool = False

    @property
    def answer(self) -> Answer:
        """The answer to "is it better by the margin?": *no* also where the whole interval falls short of it."""
        if self.word == "better":
            return "yes"
        return "no" if self.short or self.word in {"worse", "equivalent"} else "cannot be told"


def rules(overrides: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Rule]:
    """Return the rules of all families.

    Args:
        overrides: family -> fields to change, as a run file gives them.

    Raises:
        ConfigError: an unknown family or field, or a value out of range.

    Example:
        >>> rules({"overlap": {"margin": 0.02}})["overlap"].in_words()
        'margin 2 points, least 10 patients'
    """
    rules_by_family = dict(DEFAULTS)
    for family, changes in (overrides or {}).items():
        if family not in rules_by_family:
            raise ConfigError(
                "no such family of metrics",
                expected=", ".join(rules_by_family),
                got=family,
                fix=did_you_mean(family, rules_by_family),
            )
        unknown = set(changes) - {"margin", "least", "reliability"}
        if unknown:
            raise ConfigError(
                "a rule has no such field", where=family, expected="margin, least, reliability", got=sorted(unknown)
            )
        rules_by_family[family] = replace(rules_by_family[family], **changes)
    return rules_by_family


def changes(given: Mapping[str, Rule]) -> list[str]:
    """Return the rules that are not the usual ones, one sentence each, as summaries print them.

    Example:
        >>> changes(rules({"overlap": {"least": 20}}))
        ['decisions about overlap: margin 1 point, least 20 patients, as the run file says']
    """
    return [
        f"decisions about {family}: {rule.in_words()}, as the run file says"
        for family, rule in given.items()
        if rule != DEFAULTS.get(family)
    ]


def rule_of(spec: MetricSpec, given: Mapping[str, Rule] = DEFAULTS) -> Rule:
    """Return the rule of a metric's family; a metric without one has no margin."""
    return given.get(spec.family) or DEFAULTS["score"]


def enough(evidence: Sequence[int], least: int) -> bool:
    """Whether the evidence allows a claim.

    Args:
        evidence: patients, one entry a class. Of a mean over classes every class needs 2, and half of the classes the
            minimum.
        least: the minimum.

    Example:
        >>> enough([9], 10), enough([2, 2, 12, 40], 10), enough([1, 12, 40], 10)
        (False, True, False)
    """
    if len(evidence) <= 1:
        return bool(evidence) and evidence[0] >= least
    return min(evidence) >= FEWEST_IN_A_CLASS and 2 * sum(n >= least for n in evidence) >= len(evidence)


def decide_difference(
    difference: Difference, spec: MetricSpec, rule: Rule, reliability: float | None = None
) -> Decision:
    """Say whether the first of two models is better, worse or equivalent.

    Args:
        difference: first minus second; its family's p decides, where it has one.
        spec: the metric: which way is better, how it is printed.
        rule: margin and minimum.
        reliability: test-retest correlation of the method, where the rule asks for one.
    """
    if difference.value is None or difference.low is None or difference.high is None:
        return _cannot(difference.reason or "no interval", rule, enough=False)
    if refused := _refused(difference, rule, reliability):
        return refused
    if spec.direction == "neither":
        return _cannot("nothing is claimed about this metric", rule)
    p = difference.p_claim
    margin = rule.margin or 0.0
    shown = p is not None and p <= ALPHA
    sign = 1 if difference.low > 0 else -1 if difference.high < 0 else 0
    direction = (sign if spec.direction == "higher" else -sign) if shown else 0
    short = _short(difference, 0.0, spec, margin)
    beyond = difference.low > margin or difference.high < -margin
    figures = f"difference {_figures(difference, spec, signed=True)}, {_p_words(difference)}"
    if direction and beyond:
        word: Word = "better" if direction > 0 else "worse"
        return Decision(word, f"{figures}, beyond the margin of {_margin(spec, rule)}", rule.margin, direction)
    if _inside(difference, 0.0, rule):
        size = (
            f"the {round(100 * (2 * difference.level - 1))} % interval lies inside the margin of {_margin(spec, rule)}"
        )
        return Decision("equivalent", f"{figures}: {size}", rule.margin, direction, short=short)
    why = "the interval reaches from one side of the margin to the other"
    if direction:
        why = f"{'better' if direction > 0 else 'worse'}, but not shown to be so by {_margin(spec, rule)}"
    elif beyond:
        why = "the p value does not allow a claim"
    if short:
        why = f"the whole interval falls short of the margin of {_margin(spec, rule)}"
    return Decision("cannot be told", f"{figures}: {why}", rule.margin, direction, short=short)


def decide_beside(difference: Difference, spec: MetricSpec, rule: Rule, reliability: float | None = None) -> Decision:
    """Say whether a model is better than a floor that was measured on the same items.

    As `decide_difference`, and one thing more: a model that does better than the floor in not one patient does nothing
    that needs a picture. That is a *no* however wide the interval: a scripted replier is told so on forty dialogues.

    Args:
        difference: model minus floor.
        spec: the metric.
        rule: margin and minimum.
        reliability: test-retest correlation of the method, where the rule asks for one.
    """
    decision = decide_difference(difference, spec, rule, reliability)
    if not decision.enough or decision.answer == "no" or spec.direction == "neither" or difference.contribution is None:
        return decision
    gains = difference.contribution if spec.direction == "higher" else -difference.contribution
    if gains.max(initial=0.0) > 0:
        return decision
    figures = f"difference {_figures(difference, spec, signed=True)}"
    never = f"{figures}: better than it in none of {sum(difference.evidence)} {rule.unit}"
    return replace(decision, because=never, short=True)


def decide_level(
    estimate: Estimate, floor: float, spec: MetricSpec, rule: Rule, reliability: float | None = None
) -> Decision:
    """Say whether a value lies above (``better``) or below (``worse``) a fixed floor, or at it (``equivalent``).

    For a floor that was measured on the same cases, use `decide_beside` on the paired difference.

    Args:
        estimate: the value with its interval.
        floor: a constant, such as .5 for an AUC or 0 for a gain.
        spec: the metric.
        rule: margin and minimum.
        reliability: test-retest correlation of the method, where the rule asks for one.
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return _cannot(estimate.reason or "no interval", rule, enough=False)
    if refused := _refused(estimate, rule, reliability):
        return refused
    if spec.direction == "neither":
        return _cannot("nothing is claimed about this metric", rule)
    margin = rule.margin or 0.0
    sign = 1 if estimate.low > floor else -1 if estimate.high < floor else 0
    direction = sign if spec.direction == "higher" else -sign
    beyond = estimate.low > floor + margin or estimate.high < floor - margin
    short = _short(estimate, floor, spec, margin)
    figures = f"{_figures(estimate, spec)} against {spec.shown(floor)}"
    if direction and beyond:
        word: Word = "better" if direction > 0 else "worse"
        return Decision(word, f"{figures}, beyond the margin of {_margin(spec, rule)}", rule.margin, direction)
    if _inside(estimate, floor, rule):
        within = f"{figures}: within the margin of {_margin(spec, rule)}"
        return Decision("equivalent", within, rule.margin, direction, short=short)
    why = "the interval does not lie on one side of floor and margin"
    if short:
        why = f"the whole interval falls short of floor and margin of {_margin(spec, rule)}"
    return Decision("cannot be told", f"{figures}: {why}", rule.margin, direction, short=short)


def side_of(low: float | None, high: float | None, edge: float) -> Answer:
    """Say on which side of an edge an interval lies: ``yes`` wholly above, ``no`` nowhere above, else open.

    Args:
        low: end of the interval; None where there is none, which decides nothing.
        high: its other end.
        edge: in the same unit.

    Example:
        >>> side_of(0.6, 0.8, 0.5), side_of(0.2, 0.5, 0.5), side_of(0.4, 0.6, 0.5), side_of(None, None, 0.5)
        ('yes', 'no', 'cannot be told', 'cannot be told')
    """
    if low is None or high is None:
        return "cannot be told"
    return "yes" if low > edge else "no" if high <= edge else "cannot be told"


def hardest(decisions: Sequence[Decision]) -> Decision:
    """Return the decision beside the floor that is hardest to beat: of one claim that is held against several floors.

    It is better where it is better than every floor, and not better where it is not better than one: to beat two of
    three floors is no half of anything. No correction is due: the chance of a false *better* is that beside the hardest
    floor (an intersection-union test, Berger 1982).

    Args:
        decisions: one a floor, at least one.

    Example:
        >>> parrot, normal = Decision("better", "against the parrot"), Decision("equivalent", "against all normal")
        >>> hardest([parrot, normal]).because
        'against all normal'
    """
    return min(decisions, key=lambda decision: (_ANSWERS.index(decision.answer), _FROM_WORST.index(decision.word)))


_ANSWERS: tuple[Answer, ...] = ("no", "cannot be told", "yes")
_FROM_WORST: tuple[Word, ...] = ("worse", "equivalent", "cannot be told", "better")


def together(decisions: Sequence[Decision]) -> Answer:
    """Join the decisions about the parts of one question; of one claim beside several floors, :func:`hardest`.

    *yes* where all are better; *no* where all are worse or equivalent; *in part* where some are better; *not asked*
    without parts; else *cannot be told*.
    """
    answers = [decision.answer for decision in decisions]
    if not answers:
        return "not asked"
    first = answers[0]
    if all(answer == first for answer in answers):
        return first
    return "in part" if "yes" in answers else "cannot be told"


def _refused(estimate: Estimate, rule: Rule, reliability: float | None) -> Decision | None:
    """Return why nothing is claimed, whatever the figures; None where they may speak."""
    if not enough(estimate.evidence, rule.least):
        few, most = min(estimate.evidence, default=0), max(estimate.evidence, default=0)
        held = f"{few}" if len(estimate.evidence) <= 1 else f"from {few} to {most} {rule.unit} a class,"
        return _cannot(f"{held} of the {rule.least} {rule.unit} that a claim needs", rule, enough=False)
    if rule.reliability is not None:
        if reliability is None:
            return _cannot("it was not measured whether the method repeats itself", rule, enough=False)
        if reliability < rule.reliability:
            why = f"the method does not repeat itself: test-retest correlation {reliability:.2f}"
            return _cannot(f"{why}, {rule.reliability:g} needed", rule, enough=False)
    return None


def _short(estimate: Estimate, centre: float, spec: MetricSpec, margin: float) -> bool:
    """Whether the whole interval lies where nothing better by the margin is."""
    assert estimate.low is not None  # both callers return before
    assert estimate.high is not None
    if spec.direction == "lower":
        return estimate.low >= centre - margin
    return estimate.high <= centre + margin


def _cannot(why: str, rule: Rule, *, enough: bool = True) -> Decision:
    return Decision("cannot be told", why, rule.margin, 0, enough)


def _inside(estimate: Estimate, centre: float, rule: Rule) -> bool:
    """Whether the narrower interval lies inside the margin about a centre."""
    if rule.margin is None or estimate.inner_low is None or estimate.inner_high is None:
        return False
    return centre - rule.margin < estimate.inner_low and estimate.inner_high < centre + rule.margin


def _figures(estimate: Estimate, spec: MetricSpec, *, signed: bool = False) -> str:
    numbers = (estimate.value or 0.0, estimate.low or 0.0, estimate.high or 0.0)
    value, low, high = (spec.shown(x, signed=signed) for x in numbers)
    return f"{value} [{low}, {high}]"


def _margin(spec: MetricSpec, rule: Rule) -> str:
    if rule.margin is None:
        return "0"
    return f"{rule.margin:g}" if spec.scale == 1.0 else _counted(rule.margin * spec.scale)


def _counted(points: float) -> str:
    text = f"{points:g}"
    return f"{text} point" if text == "1" else f"{text} points"


def _p_words(difference: Difference) -> str:
    p = difference.p_claim
    if p is None:
        return "without a p value"
    family = f" ({difference.family})" if difference.family else ""
    return f"p {p:.3g}{family}"
