"""Scores from answers: closed questions, open questions, and the two perturbation tests with their controls.

Answers are ``yes``, ``no``, ``uncertain``, ``refusal``, ``unreadable``; all but the first two are non-answers, and
never count as either. Whatever has no denominator is None, never 0 or 100.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

NonAnswers = Literal["wrong", "left_out"]
NormalItems = Literal["no_finding_label", "ignored", "kept_empty"]

ANSWERS = ("yes", "no", "uncertain", "refusal", "unreadable")


@dataclass(frozen=True)
class ClosedScores:
    """What a model gets on closed questions; shares in ``[0, 1]``, MCC in ``[-1, 1]``, None where undefined.

    Attributes:
        tp: gold yes, said yes.
        fp: gold no and not said no (``wrong``) or said yes (``left_out``).
        fn: the same for gold yes.
        tn: gold no, said no.
        left_out: non-answers that were dropped.
        said_yes: answers that were "yes".
    """

    tp: int
    fp: int
    fn: int
    tn: int
    left_out: int
    said_yes: int

    @property
    def n(self) -> int:
        """Questions counted."""
        return self.tp + self.fp + self.fn + self.tn

    def values(self) -> dict[str, float | None]:
        """Return every score by name; ``f1_yes`` is the figure with "yes" as positive class."""
        tp, fp, fn, tn = self.tp, self.fp, self.fn, self.tn
        f1 = (_ratio(2 * tp, 2 * tp + fp + fn), _ratio(2 * tn, 2 * tn + fp + fn))
        recalls = (_ratio(tp, tp + fn), _ratio(tn, tn + fp))
        spread = math.sqrt(float(tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
        return {
            "accuracy": _ratio(tp + tn, self.n),
            "precision": _ratio(tp, tp + fp),
            "recall": recalls[0],
            "f1_yes": f1[0],
            "precision_no": _ratio(tn, tn + fn),
            "specificity": recalls[1],
            "f1_no": f1[1],
            "macro_f1": _mean(f1),
            "balanced_accuracy": _mean(recalls),
            "mcc": (tp * tn - fp * fn) / spread if spread else None,
            "yes_ratio": _ratio(self.said_yes, self.n),
        }


def closed_scores(gold: Sequence[str], answers: Sequence[str], non_answers: NonAnswers = "wrong") -> ClosedScores:
    """Return the scores of closed answers.

    Args:
        gold: ``yes`` or ``no``.
        answers: one each.
        non_answers: ``wrong``: an error of the gold's class; ``left_out``: dropped.
    """
    counts = Counter(zip(gold, answers, strict=True))
    other: Counter[str] = Counter()
    for (truth, answer), n in counts.items():
        other[truth] += n * (answer not in ("yes", "no"))
    wrong = non_answers == "wrong"
    return ClosedScores(
        tp=counts["yes", "yes"],
        fp=counts["no", "yes"] + other["no"] * wrong,
        fn=counts["yes", "no"] + other["yes"] * wrong,
        tn=counts["no", "no"],
        left_out=0 if wrong else other["yes"] + other["no"],
        said_yes=counts["yes", "yes"] + counts["no", "yes"],
    )


@dataclass(frozen=True)
class Flips:
    """What became of the "yes" of a pool under one variant.

    Attributes:
        pool: questions in the pool.
        counts: answer -> how many, over those that have the variant.
        wanted: the answer that counts.
    """

    pool: int
    counts: Counter[str]
    wanted: str

    @property
    def n(self) -> int:
        """Questions with the variant."""
        return self.counts.total()

    @property
    def not_made(self) -> int:
        """Questions of the pool that have no such variant."""
        return self.pool - self.n

    @property
    def score(self) -> float | None:
        """Percent of the wanted answer; a non-answer is none."""
        return _percent(self.counts[self.wanted], self.n)

    @property
    def score_of_answers(self) -> float | None:
        """The same among answers of yes or no alone."""
        return _percent(self.counts[self.wanted], self.counts["yes"] + self.counts["no"])

    @property
    def non_answers(self) -> float | None:
        """Percent of non-answers."""
        return _percent(self.n - self.counts["yes"] - self.counts["no"], self.n)


def flips(pool: Iterable[str | None], wanted: str) -> Flips:
    """Return the flips of a pool.

    Args:
        pool: one answer to the variant a question; None where it was not made.
        wanted: ``no`` for perturbations, ``yes`` for controls.
    """
    answers = list(pool)
    return Flips(len(answers), Counter(a for a in answers if a is not None), wanted)


@dataclass(frozen=True)
class OpenScores:
    """Micro scores of sets of findings; None where undefined."""

    tp: int
    fp: int
    fn: int
    items: int

    @property
    def precision(self) -> float | None:
        """Of the findings named, the share that is there."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float | None:
        """Of the findings there, the share that is named."""
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def micro_f1(self) -> float | None:
        """Harmonic mean of both over all items together."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)


NO_FINDING = "No finding"


def open_counts(
    gold: Iterable[str], named: Iterable[str], states_normal: bool, normal: NormalItems = "no_finding_label"
) -> tuple[int, int, int] | None:
    """Return tp, fp, fn of one open answer, or None where its convention leaves it out.

    Args:
        gold: findings on the region; none: a normal item.
        named: findings that the answer asserts.
        states_normal: whether it says that there is nothing.
        normal: ``no_finding_label``: an empty gold set becomes a label of its own, which an answer gets if it names
            nothing and says so; ``ignored``: normal items are left out; ``kept_empty``: they can only add fp.
    """
    truth, answer = set(gold), set(named)
    if normal == "ignored" and not truth:
        return None
    if normal == "no_finding_label":
        truth = truth or {NO_FINDING}
        answer = answer or ({NO_FINDING} if states_normal else set())
    return len(truth & answer), len(answer - truth), len(truth - answer)


def open_scores(counts: Iterable[tuple[int, int, int] | None]) -> OpenScores:
    """Return the micro scores over items; those left out by their convention are not counted."""
    used = [one for one in counts if one is not None]
    tp, fp, fn = (sum(one[k] for one in used) for k in range(3))
    return OpenScores(tp, fp, fn, len(used))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _percent(part: float, whole: float) -> float | None:
    return 100.0 * part / whole if whole else None


def _mean(pair: tuple[float | None, float | None]) -> float | None:
    a, b = pair
    return None if a is None or b is None else (a + b) / 2
