"""Does this model look at the evidence? Plain sentences from numbers and their intervals.

Its maps are held against two that have seen no picture: the class prior (where a finding usually lies) by pointing, and
all foreground (everything marked) by Dice at the searched threshold. Pointing decides: a map that knows where lungs and
heart lie overlaps better than one that marks everything without having looked at this picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from medground.benchmarks.xbench.cells import Cell
from medground.reporting.standing import standing
from medground.reporting.words import count, number, with_interval

Answer = Literal["yes", "partly", "no", "undecided"]
Number = Callable[[str], Cell | None]

NEGLIGIBLE = 0.01
"""A gain below one point is no gain, whatever its interval: a threshold that is searched on the scored cases is above
the floor in noise, too (uniform random maps by a few hundredths of a point on a thousand regions)."""

_PRIOR = "knowing where each finding usually lies"
WORDS: Mapping[Answer, str] = {"yes": "Yes", "partly": "In part", "no": "No", "undecided": "Cannot be told"}


@dataclass(frozen=True)
class Verdict:
    """What one model's numbers on one dataset say.

    Attributes:
        model: its label.
        dataset: label of the dataset.
        answer: to the question whether it looks at the evidence.
        headline: the answer in one sentence.
        sentences: what it rests on: recognition, pointing, overlap, calibration.
        warnings: what must be known before it is quoted.
    """

    model: str
    dataset: str
    answer: Answer
    headline: str
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def word(self) -> str:
        """The answer as a word."""
        return WORDS[self.answer]


@dataclass(frozen=True)
class _Finding:
    """One comparison.

    Attributes:
        holds: whether it speaks for the model; None: it cannot be told.
        sentence: what is said of it.
        undefined: whether a number that it needs is undefined.
    """

    holds: bool | None
    sentence: str
    undefined: bool = False


def judge(task: Mapping[str, Any], numbers: Number, *, fixed: float, optimistic: bool) -> Verdict:
    """Return the verdict on one model and one dataset.

    Args:
        task: the record of the task.
        numbers: metric -> its printed cell over the cases that the model has not seen, or None.
        fixed: the first fixed threshold of the protocol.
        optimistic: whether the searched threshold was picked on the scored cases.
    """
    recognition = _recognition(numbers("auc"))
    pointing = _pointing(numbers)
    overlap = _overlap(numbers, optimistic=optimistic)
    answer = _answer(pointing, overlap)
    return Verdict(
        task["model"],
        task["dataset"],
        answer,
        _headline(answer, pointing, overlap, recognition),
        (recognition.sentence, pointing.sentence, overlap.sentence, *_calibration(numbers, fixed)),
        tuple(_warnings(task)),
    )


def _answer(pointing: _Finding, overlap: _Finding) -> Answer:
    if pointing.holds:
        return "yes" if overlap.holds else "partly"
    if pointing.holds is False or (pointing.undefined and overlap.holds is False):
        return "no"
    return "undecided"


def _headline(answer: Answer, pointing: _Finding, overlap: _Finding, recognition: _Finding) -> str:
    if answer == "yes":
        return f"Its maps point better than {_PRIOR}, and overlap better than marking all."
    if answer == "partly":
        much = "no better" if overlap.holds is False else "not clearly better"
        return f"Its maps point better than {_PRIOR}, but overlap {much} than marking all."
    if answer == "no":
        alone = "Its maps show nothing that maps without the picture do not show."
        if not pointing.undefined:
            alone = f"Its maps point no better than {_PRIOR}."
        return f"{alone} What it recognises findings by, they do not show." if recognition.holds else alone
    if pointing.undefined:
        return "Its maps could not be measured."
    return f"Its maps point neither clearly better nor clearly worse than {_PRIOR}."


def _recognition(auc: Cell | None) -> _Finding:
    if auc is None or auc.value is None:
        return _Finding(None, f"Recognition is undefined: {_reason(auc)}.", undefined=True)
    text = f"macro AUC {with_interval(auc)}; chance is 50"
    if auc.low is None or auc.high is None:
        return _Finding(None, f"Recognition: {text}, without an interval.")
    if auc.low > 0.5:
        return _Finding(True, f"It tells present from absent findings: {text}.")
    if auc.high < 0.5:
        return _Finding(False, f"It ranks findings worse than chance: {text}.")
    return _Finding(None, f"It is not shown to tell present from absent findings: {text}.")


def _pointing(numbers: Number) -> _Finding:
    own, prior = numbers("pointing"), numbers("pointing_prior")
    if own is None or own.value is None:
        return _Finding(None, f"Pointing is undefined: {_reason(own)}.", undefined=True)
    text = f"The peak of its map lies in the region in {with_interval(own)} % of {_whole(own)}"
    if prior is None or prior.value is None:
        return _Finding(None, f"{text}; the class prior beside it is undefined: {_reason(prior)}.", undefined=True)
    better = _better(own, prior, numbers("pointing_gain"))
    words = {True: "more often than", False: "no more often than", None: "not clearly more or less often than"}
    return _Finding(better, f"{text}, {words[better]} that of the class prior: {with_interval(prior)} %.")


def _whole(cell: Cell) -> str:
    return "regions" if cell.scope == "pairs" else "regions, as a mean over classes"


def _better(own: Cell, prior: Cell, gain: Cell | None) -> bool | None:
    """Whether a model points better than the prior; None where the intervals do not say.

    The interval of the paired difference decides where the run has one; else the two intervals must not overlap.
    """
    if gain is not None and gain.low is not None and gain.high is not None:
        return True if gain.low > 0 else False if gain.high < NEGLIGIBLE else None
    if own.low is None or own.high is None or prior.low is None or prior.high is None:
        return None
    return True if own.low > prior.high else False if own.high < prior.low else None


def _overlap(numbers: Number, *, optimistic: bool) -> _Finding:
    dice, gain, floor = numbers("dice@best"), numbers("dice_gain"), numbers("dice_floor")
    if dice is None or dice.value is None:
        return _Finding(None, f"Dice is undefined: {_reason(dice)}.", undefined=True)
    note = " (optimistic: searched on the scored cases)" if optimistic else ""
    text = f"At the searched threshold{note} its Dice is {with_interval(dice)}"
    if gain is None or gain.value is None or floor is None or floor.value is None:
        return _Finding(None, f"{text}; the floor beside it is undefined.", undefined=True)
    beside = f"all foreground has {number(floor.value, 'dice_floor', 1)}, the gain is {with_interval(gain, 2)} points"
    if gain.low is None or gain.high is None:
        return _Finding(None, f"{text}: {beside}.")
    better = True if gain.low > NEGLIGIBLE else False if gain.high <= NEGLIGIBLE else None
    meaning = {True: "", False: ", which is no gain", None: ", which may be no gain"}[better]
    return _Finding(better, f"{text}: {beside}{meaning}.")


def _calibration(numbers: Number, fixed: float) -> Iterator[str]:
    gap, at_fixed = numbers("dice_gap"), numbers(f"dice@{fixed:g}")
    if gap is None or gap.value is None or at_fixed is None or at_fixed.value is None:
        return
    lost = gap.low is not None and gap.low > NEGLIGIBLE
    meaning = "its maps need a threshold of their own" if lost else "the fixed threshold fits"
    yield (
        f"At the fixed threshold {fixed:g} its Dice is {number(at_fixed.value, 'dice', 1)}: the calibration gap is "
        f"{with_interval(gap, 2)} points, {meaning}."
    )


def _warnings(task: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{mark[:1].upper()}{mark[1:]}." for mark in standing(task).marks)
    states, pairs = task["states"], task["pairs"]
    if states.get("flat"):
        yield f"{states['flat']:,} of {count(pairs, 'map')} are flat: the same value everywhere."
    undefined = sum(n for state, n in states.items() if state not in {"ok", "flat", "failed"})
    if undefined:
        yield f"{undefined:,} of {count(pairs, 'pair')} are undefined."
    if task["cases_failed"]:
        yield f"{task['cases_failed']:,} of {count(task['cases'], 'case')} could not be read."
    if task["reasons"]:
        reasons = sorted(task["reasons"].items(), key=lambda item: -item[1])
        said = [f"{reason} ({count(n, 'pair')})" for reason, n in reasons[:3]]
        yield f"Reasons: {'; '.join(said)}."
    if task["cases_seen"]:
        yield f"{task['cases_seen']:,} of {count(task['cases'], 'case')} were seen in training and are left out."


def _reason(cell: Cell | None) -> str:
    return "the run has no such number" if cell is None else cell.reason or "no reason is recorded"
