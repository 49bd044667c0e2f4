"""Dialogues from measured evidence: several turns over several tasks, seeded, with the shortcuts closed.

What is drawn first is the evidence; words follow. Tasks are chosen so that both labels of a task are asked about alike
often within each view. Premises and corrections are true or false by coin. Whatever an earlier reference reply already
tells is marked ``answer_in_history`` and kept to a quarter. No value lies inside the tolerance of a later one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from medground.benchmarks.cxreasondial import wording
from medground.benchmarks.cxreasondial.contract import Dialogue, Picture, Turn
from medground.benchmarks.cxreasondial.evidence import evidence_of, sentences
from medground.benchmarks.cxreasondial.wording import WORDS, Words
from medground.judges.base import Evidence, Request
from medground.tools import Measurement

#: What a query asks for, and how often.
_SHARES: Mapping[tuple[str, ...], float] = {
    ("measurement", "criterion", "conclusion"): 0.35,
    ("measurement", "conclusion"): 0.30,
    ("measurement",): 0.18,
    ("conclusion",): 0.12,
    ("criterion",): 0.05,
}


#: Ends the case id of a dialogue that withholds the view, so that nobody who measures may use it.
VIEW_UNKNOWN = "-view-unknown"


@dataclass(frozen=True)
class Shares:
    """How often a dialogue's turns are of which kind.

    Attributes:
        turns: fewest and most first requests of a dialogue.
        visual: first requests that ask for a picture instead.
        follow_up: first requests that a second one on the same task follows.
        premise: first requests that begin with a premise.
        double: first requests that ask about two tasks at once.
        unknown_view: dialogues in which the view is withheld.
        chatter: dialogues with a turn that asks for nothing, or for what no tool measures.
        copyable: most diagnostic requests whose answer stands in the reference history.
    """

    turns: tuple[int, int] = (3, 5)
    visual: float = 0.12
    follow_up: float = 0.45
    premise: float = 0.2
    double: float = 0.1
    unknown_view: float = 0.08
    chatter: float = 0.15
    copyable: float = 0.25


@dataclass(frozen=True)
class MeasuredCase:
    """A picture with what the tools measured on it.

    Attributes:
        measurements: task -> measurement; dropped ones are left aside.
    """

    case_id: str
    picture: str
    width: int
    height: int
    view: str | None
    measurements: Mapping[str, Measurement]
    patient_id: str | None = None


@dataclass
class Report:
    """What a build came to, for whoever wants to know what it can and cannot test.

    Attributes:
        labels: (task, view) -> label -> requests.
        dropped: (task, reason) -> cases that quality control refused.
        kinds: kind of turn -> turns.
        premises: whether a premise or correction was true -> turns.
        copyable: diagnostic requests whose answer stands in the reference history, of all.
        unanswerable: turns that ask for what no tool measures, or for a label where the evidence has none.
    """

    labels: dict[tuple[str, str], Counter[int | None]] = field(default_factory=dict)
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    premises: Counter[bool] = field(default_factory=Counter)
    copyable: int = 0
    diagnostic: int = 0
    unanswerable: int = 0

    def record(self) -> dict[str, Any]:
        """The report as JSON-like data."""
        return {
            "labels": {f"{task} {view}": {str(k): v for k, v in c.items()} for (task, view), c in self.labels.items()},
            "dropped": {f"{task}: {reason}": count for (task, reason), count in sorted(self.dropped.items())},
            "kinds": dict(self.kinds),
            "premises": {"true": self.premises[True], "false": self.premises[False]},
            "unanswerable": self.unanswerable,
            "answer_in_history": {"requests": self.copyable, "of": self.diagnostic},
        }


class Builder:
    """Builds dialogues one case at a time; what it has built so far balances what it builds next."""

    def __init__(self, seed: int = 0, shares: Shares | None = None, source: str = "", license_note: str = "") -> None:
        self.seed = seed
        self.shares = shares or Shares()
        self.source, self.license_note = source, license_note
        self.report = Report()

    def build(self, cases: Iterable[MeasuredCase]) -> Iterator[Dialogue]:
        """Build a dialogue of every case that has at least two measured tasks."""
        for number, case in enumerate(cases):
            for task, measurement in case.measurements.items():
                if measurement.status == "dropped":
                    self.report.dropped[task, measurement.reason or ""] += 1
            dialogue = self._dialogue(case, number)
            if dialogue is not None:
                yield dialogue

    def _dialogue(self, case: MeasuredCase, number: int) -> Dialogue | None:
        rng = np.random.default_rng([self.seed, number, 0xD1A1])
        view = None if rng.random() < self.shares.unknown_view else case.view
        evidence = {t: evidence_of(m, view) for t, m in case.measurements.items() if m.status != "dropped"}
        low, high = self.shares.turns
        order = self._order(evidence, view, rng)
        if len(order) < 2:
            return None
        draft = _Draft(self, evidence, rng)
        count = int(rng.integers(low, high + 1))
        for task in order:
            if draft.asked >= count:
                break
            draft.first(task, order)
        if rng.random() < self.shares.chatter and draft.turns:
            draft.chatter()
        known = view is not None or case.view is None
        case_id = case.case_id if known else case.case_id + VIEW_UNKNOWN
        picture = Picture(case.picture, case_id, view, case.width, case.height)
        for turn in draft.turns:
            self._count(turn, view)
        return Dialogue(
            f"dialogue-{case.case_id}", picture, tuple(draft.turns), self.source, self.license_note, case.patient_id
        )

    def _order(self, evidence: Mapping[str, Evidence], view: str | None, rng: np.random.Generator) -> list[str]:
        """Tasks whose label has been asked about less often than the other come first."""

        def surplus(task: str) -> float:
            seen = self.report.labels.get((task, view or "unknown"), Counter())
            label = evidence[task].conclusion.polarity
            other = seen[None] if label is None else seen[1 - label]
            return seen[label] - other + 0.02 * sum(seen.values())

        jitter = {task: rng.random() * 0.9 for task in evidence}
        return sorted(evidence, key=lambda task: (surplus(task) + jitter[task], task))

    def _count(self, turn: Turn, view: str | None) -> None:
        self.report.kinds[turn.kind] += 1
        if (truth := turn.facts.get("true")) is not None:
            self.report.premises[bool(truth)] += 1
        withheld = any("conclusion" in r.asked and r.evidence.conclusion.label is None for r in turn.requests)
        self.report.unanswerable += withheld or turn.kind == "without_tool"
        for request in turn.requests:
            key = (request.task, view or "unknown")
            self.report.labels.setdefault(key, Counter())[request.evidence.conclusion.polarity] += 1
            if request.evidence_type == "diagnostic":
                self.report.diagnostic += 1
                self.report.copyable += turn.answer_in_history

    @property
    def may_repeat(self) -> bool:
        """Whether one more request may be answerable from the history."""
        return self.report.copyable + 1 <= self.shares.copyable * (self.report.diagnostic + 1)


class _Draft:
    """A dialogue on its way."""

    def __init__(self, builder: Builder, evidence: Mapping[str, Evidence], rng: np.random.Generator) -> None:
        self.builder, self.shares = builder, builder.shares
        self.evidence, self.rng = evidence, rng
        self.turns: list[Turn] = []
        self.told: set[tuple[str, str]] = set()
        self.values: list[float] = []
        self.asked = 0
        self.copyable = 0

    def first(self, task: str, order: Sequence[str]) -> None:
        """Ask about a task for the first time, unless a value of another task could be taken for its own."""
        if any(request.task == task for turn in self.turns for request in turn.requests) or self._clashes(task):
            return
        words = WORDS[task]
        if self.rng.random() < self.shares.visual:
            self._add(self._pick(words.shows), (self._request(task, ("visual",), "visual"),), "plain")
        else:
            self._diagnostic(task, words, order)
        self.asked += 1
        if self.rng.random() < self.shares.follow_up:
            self._follow_up(task)

    def _diagnostic(self, task: str, words: Words, order: Sequence[str]) -> None:
        parts = self._parts()
        requests = [self._request(task, parts)]
        query, kind, facts = self._query(words, parts), "plain", {}
        if self.rng.random() < self.shares.double:
            other = next((t for t in order if t != task and not self._known(t) and not self._clashes(t, task)), None)
            if other is not None:
                second = self._parts()
                requests.append(self._request(other, second))
                query, kind = (
                    f"{query} {self._pick(('And then:', 'Also:'))} {self._query(WORDS[other], second)}",
                    "double",
                )
        elif self.rng.random() < self.shares.premise and self.evidence[task].conclusion.polarity is not None:
            query, facts, kind = *self._premise(task, words, query), "premise"
        self._add(query, tuple(requests), kind, facts)

    def _premise(self, task: str, words: Words, query: str) -> tuple[str, dict[str, Any]]:
        """A claim about the label, true by coin."""
        polarities = self.evidence[task].conclusion.polarities
        truth = bool(self.rng.random() < 0.5)
        label = self.evidence[task].conclusion.polarity or 0
        claimed = label if truth else 1 - label
        premise = self._pick(wording.PREMISES)
        own = premise.endswith(". {rest}") or query.startswith("I ")
        rest = query if own else query[0].lower() + query[1:]
        return premise.format(claim=words.claims[claimed], rest=rest), {"true": claimed in polarities}

    def _follow_up(self, task: str) -> None:
        kind = self._pick(("picture", "rule", "correction", "recheck"))
        if kind == "picture" and not any(r.evidence_type == "visual" for r in self.turns[-1].requests):
            single = len(self.turns[-1].requests) == 1
            if single:
                request = self._request(task, ("visual",), "visual")
                self._add(self._pick(wording.FOLLOWING_PICTURE), (request,), "follow_up")
        elif kind == "rule" and len(self.turns[-1].requests) == 1:
            if (task, "criterion") in self.told and not self.builder.may_repeat:
                return
            self._add(self._pick(wording.FOLLOWING_RULE), (self._request(task, ("criterion",)),), "follow_up")
        elif kind in ("correction", "recheck") and len(self.turns[-1].requests) == 1 and self._can_correct(task):
            self._correction(task, kind)

    def _can_correct(self, task: str) -> bool:
        return (task, "measurement") in self.told and self.builder.may_repeat and self.copyable < 1

    def _correction(self, task: str, kind: str) -> None:
        request = self._request(task, ("measurement", "conclusion"))
        value = self.evidence[task].measurements[0].value
        if kind == "recheck" or not isinstance(value, (int, float)) or task in ("inclusion", "projection"):
            self._add(self._pick(wording.RECHECKS), (request,), "correction")
            return
        truth = bool(self.rng.random() < 0.5)
        text = _printed(task, value if truth else _other_value(task, value, self.rng))
        self._add(self._pick(wording.CORRECTIONS).format(value=text), (request,), "correction", {"true": truth})

    def chatter(self) -> None:
        """A turn that asks for nothing, or for what no tool measures."""
        query = self._pick((*wording.CHATTER, *wording.WITHOUT_TOOL))
        kind = "chatter" if query in wording.CHATTER else "without_tool"
        at = int(self.rng.integers(1, len(self.turns) + 1)) if kind == "without_tool" else len(self.turns)
        reply = "You are welcome." if kind == "chatter" else "That is not among what I can measure."
        # A follow-up refers to the turn before it, so nothing comes between the two.
        while at < len(self.turns) and self.turns[at].kind in ("follow_up", "correction"):
            at += 1
        self.turns.insert(at, Turn(at, query, (), reply, kind=kind))
        self.turns[:] = [replace(turn, index=i) for i, turn in enumerate(self.turns)]

    def _add(
        self, query: str, requests: tuple[Request, ...], kind: str, facts: Mapping[str, Any] | None = None
    ) -> None:
        diagnostic = [r for r in requests if r.evidence_type == "diagnostic"]
        known = bool(diagnostic) and all((r.task, part) in self.told for r in diagnostic for part in r.asked)
        reply = " ".join(sentences(request) for request in requests)
        self.turns.append(Turn(len(self.turns), query, requests, reply, known, kind, dict(facts or {})))
        self.copyable += known
        for request in diagnostic:
            self.told |= {(request.task, part) for part in request.asked}
            self.values += _numbers(request.evidence)

    def _request(self, task: str, parts: tuple[str, ...], kind: str = "diagnostic") -> Request:
        return Request(task, kind, self.evidence[task], parts)

    def _parts(self) -> tuple[str, ...]:
        kinds = list(_SHARES)
        return kinds[int(self.rng.choice(len(kinds), p=np.array(list(_SHARES.values()))))]

    def _query(self, words: Words, parts: tuple[str, ...]) -> str:
        return self._pick(wording.ASKED[parts]).format(
            topic=self._pick(words.topics), value=self._pick(words.values), question=self._pick(words.questions)
        )

    def _pick(self, options: Sequence[str]) -> str:
        return options[int(self.rng.integers(len(options)))]

    def _known(self, task: str) -> bool:
        return any(request.task == task for turn in self.turns for request in turn.requests)

    def _clashes(self, task: str, beside: str | None = None) -> bool:
        """Whether an earlier value lies inside the tolerance of this task's."""
        earlier = self.values + (_numbers(self.evidence[beside]) if beside is not None else [])
        return any(
            abs(value - float(q.value)) <= (q.tolerance or 0.005)
            for q in self.evidence[task].measurements
            if isinstance(q.value, (int, float)) and q.unit != "px"
            for value in earlier
        )


def _numbers(evidence: Evidence) -> list[float]:
    return [float(q.value) for q in evidence.measurements if isinstance(q.value, (int, float)) and q.unit != "px"]


def _other_value(task: str, value: float, rng: np.random.Generator) -> float:
    """A plausible value outside the tolerance."""
    factor = float(rng.uniform(1.35, 1.8)) if rng.random() < 0.5 else float(rng.uniform(0.45, 0.7))
    if task == "inspiration":
        return value + (2 if rng.random() < 0.5 else -2)
    if task == "carina_angle":
        return value + (25 if rng.random() < 0.5 or value < 35 else -25)
    other = value * factor
    return other if abs(other - value) > 0.12 or value < 0.1 else value + 0.15


def _printed(task: str, value: float) -> str:
    if task == "inspiration":
        return f"rib {value:.0f}"
    if task == "carina_angle":
        return f"{value:.0f} degrees"
    return f"{value:.4f}" if task == "descending_aorta_tortuous" else f"{value:.2f}"
