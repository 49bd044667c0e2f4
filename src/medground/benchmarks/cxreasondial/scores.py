"""Scores from verdicts: turn metrics, hallucination, dialogue success, and the identities that they must obey.

A verdict is 1, 0 or None: not known, because a judge failed or abstained. None is never 0. A metric that does not apply
to a turn (pictures for a model that cannot draw, planning for a model that does not plan) is no verdict at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

AGENT_METRICS = ("dti", "eti", "coverage", "faithfulness")
MODEL_METRICS = ("coverage", "faithfulness")

#: How a turn with a missing verdict counts: ``complete`` leaves it undefined; ``three_valued`` lets a known 0 fail it;
#: ``all_turns`` is the commonly quoted recipe: every turn counts, a missing or inapplicable verdict as a failure.
Rule = Literal["complete", "three_valued", "all_turns"]


@dataclass(frozen=True)
class Judged:
    """The verdicts on one turn.

    Attributes:
        dialogue: id of the dialogue.
        turn: index of the turn.
        applicable: metrics that apply; empty where the turn was not asked.
        verdicts: metric -> 1, 0 or None.
    """

    dialogue: str
    turn: int
    applicable: tuple[str, ...]
    verdicts: Mapping[str, int | None]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Judged:
        """Read a row of a verdict table."""
        return cls(str(row["dialogue"]), int(row["turn"]), tuple(row["applicable"]), dict(row["verdicts"]))

    def verdict(self, metric: str) -> int | None:
        """The verdict on an applicable metric."""
        return self.verdicts.get(metric) if metric in self.applicable else None

    @property
    def hallucinated(self) -> int | None:
        """Covered and unfaithful; None unless both verdicts are known."""
        covered, faithful = self.verdict("coverage"), self.verdict("faithfulness")
        return None if covered is None or faithful is None else int(covered == 1 and faithful == 0)

    def success(self, rule: Rule = "complete") -> int | None:
        """Whether every applicable metric is 1; None where the turn is not applicable or not known."""
        if rule == "all_turns":
            return int(bool(self.applicable) and all(self.verdict(metric) == 1 for metric in self.applicable))
        if not self.applicable:
            return None
        known = [self.verdict(metric) for metric in self.applicable]
        if rule == "three_valued" and 0 in known:
            return 0
        return None if None in known else int(all(value == 1 for value in known))


@dataclass(frozen=True)
class Share:
    """Ones among verdicts, and what was left out."""

    ones: int
    used: int
    failed: int = 0
    not_applicable: int = 0

    @property
    def value(self) -> float | None:
        """As a share in [0, 1]; None where nothing was used."""
        return self.ones / self.used if self.used else None


def metric_share(turns: Iterable[Judged], metric: str) -> Share:
    """Count one turn metric."""
    values = [(metric in turn.applicable, turn.verdict(metric)) for turn in turns]
    used = [value for applies, value in values if applies and value is not None]
    failed = sum(applies and value is None for applies, value in values)
    return Share(sum(used), len(used), failed, sum(not applies for applies, _ in values))


def hallucination(turns: Iterable[Judged]) -> Share:
    """Covered and unfaithful, over the turns that have both verdicts."""
    values = [value for turn in turns if (value := turn.hallucinated) is not None]
    return Share(sum(values), len(values))


@dataclass(frozen=True)
class Identity:
    """Faithful, hallucinated, and neither covered nor faithful: over turns with both verdicts they make 1."""

    turns: int
    faithful: float | None
    hallucinated: float | None
    uncovered_unfaithful: float | None

    @property
    def total(self) -> float | None:
        """Their sum, which must be 1."""
        parts = (self.faithful, self.hallucinated, self.uncovered_unfaithful)
        return None if None in parts else sum(part for part in parts if part is not None)


def identity(turns: Iterable[Judged]) -> Identity:
    """Count the three parts over the turns that have both verdicts."""
    both = [t for t in turns if t.hallucinated is not None]
    count = len(both)
    if not count:
        return Identity(0, None, None, None)
    faithful = sum(t.verdict("faithfulness") == 1 for t in both)
    hallucinated = sum(t.hallucinated == 1 for t in both)
    neither = sum(t.verdict("faithfulness") == 0 and t.verdict("coverage") == 0 for t in both)
    return Identity(count, faithful / count, hallucinated / count, neither / count)


@dataclass(frozen=True)
class DialogueScores:
    """Scores of whole dialogues.

    Attributes:
        average: mean over dialogues of the share of successful turns among those defined; None without a dialogue.
        per_dialogue: dialogue -> that share.
        without_turn: dialogues without an applicable turn: dropped and listed.
        undecided: dialogues whose applicable turns are all undefined.
        strict: shares of dialogues with every turn successful, over those without an undefined turn.
        strict_undecided: dialogues that an undefined turn leaves open.
        bounds: strict success if every open dialogue failed, and if every one succeeded.
    """

    average: float | None
    per_dialogue: Mapping[str, float]
    without_turn: tuple[str, ...]
    undecided: tuple[str, ...]
    strict: Share
    strict_undecided: tuple[str, ...]
    bounds: tuple[float, float] | None


def strict_success(successes: Sequence[int | None], rule: Rule) -> int | None:
    """Whether every turn of a dialogue succeeded; None where an undefined turn leaves it open."""
    if rule == "three_valued" and 0 in successes:
        return 0
    return None if None in successes else int(all(successes))


def dialogue_scores(turns: Iterable[Judged], rule: Rule = "complete") -> DialogueScores:
    """Score whole dialogues; the order of the turns does not matter."""
    grouped: dict[str, list[Judged]] = {}
    for turn in sorted(turns, key=lambda t: (t.dialogue, t.turn)):
        grouped.setdefault(turn.dialogue, []).append(turn)
    per: dict[str, float] = {}
    without, undecided, open_ = [], [], []
    strict: list[int] = []
    lost = 0
    for name, own in grouped.items():
        counted = own if rule == "all_turns" else [t for t in own if t.applicable]
        if not counted:
            without.append(name)
            continue
        successes = [t.success(rule) for t in counted]
        defined = [s for s in successes if s is not None]
        if defined:
            per[name] = sum(defined) / len(defined)
        else:
            undecided.append(name)
        whole = strict_success(successes, rule)
        if whole is None:
            open_.append(name)
            lost += 0 in successes
        else:
            strict.append(whole)
    total = len(strict) + len(open_)
    bounds = (sum(strict) / total, (sum(strict) + len(open_) - lost) / total) if total else None
    average = sum(per.values()) / len(per) if per else None
    return DialogueScores(
        average, per, tuple(without), tuple(undecided), Share(sum(strict), len(strict)), tuple(open_), bounds
    )
