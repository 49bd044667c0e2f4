"""What can be had without looking where the question points: the figures to print beside every sampler.

*Blind*: the majority answer by finding, by anatomy, by pair, learnt on other patients. *Picture*: answering "is the
finding anywhere?" or "is anything in that region?" from the true findings, the paper's visual shortcut. A sampler that
brings one of them to 50 usually leaves another high, which is why the figures are never merged into one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from medground.benchmarks.heal_medvqa.questions import Question
from medground.benchmarks.heal_medvqa.streams import fraction
from medground.benchmarks.heal_medvqa.table import RelationTable

Key = Callable[[Question], Hashable]

BLIND: dict[str, Key] = {
    "majority": lambda _: "",
    "by_finding": lambda q: q.finding,
    "by_anatomy": lambda q: q.anatomy,
    "by_pair": lambda q: q.pair,
}
PICTURE = ("finding_anywhere", "region_abnormal")


@dataclass(frozen=True)
class Floor:
    """What one baseline gets.

    Attributes:
        name: of the baseline.
        balanced_accuracy: in percent; None without questions of both kinds. A tie counts half.
        n_yes: questions with the answer yes.
        n_no: with the answer no.
    """

    name: str
    balanced_accuracy: float | None
    n_yes: int
    n_no: int


def floors(questions: Sequence[Question], table: RelationTable, others: Sequence[Question] = ()) -> list[Floor]:
    """Return what every baseline gets on the closed questions.

    Args:
        questions: asked.
        table: that they were drawn from.
        others: questions of other patients to learn the majorities from; without any, the questions themselves are
            cut in two by patient, and each half is answered from the other.
    """
    closed = [q for q in questions if not q.is_open]
    found = [_floor(name, closed, _blind(closed, table, others, key)) for name, key in BLIND.items()]
    return found + [_floor(name, closed, [_seen(name, q, table) for q in closed]) for name in PICTURE]


def _seen(name: str, question: Question, table: RelationTable) -> float:
    image = table[question.image_id]
    if name == "finding_anywhere":
        return float(question.finding in image.findings | image.present_without_region)
    return float(bool(image.on(question.anatomy)))


def _blind(questions: Sequence[Question], table: RelationTable, others: Sequence[Question], key: Key) -> list[float]:
    """Return the share of "yes" that a majority by key says, 0.5 where it is torn or knows nothing."""
    if others:
        learnt = _majorities([q for q in others if not q.is_open], key)
        return [learnt.get(key(q), 0.5) for q in questions]
    halves = [_half(q, table) for q in questions]
    learnt_by = [
        _majorities([q for q, half in zip(questions, halves, strict=True) if half != side], key) for side in (0, 1)
    ]
    return [learnt_by[half].get(key(q), 0.5) for q, half in zip(questions, halves, strict=True)]


def _half(question: Question, table: RelationTable) -> int:
    patient = table[question.image_id].patient_id or question.image_id
    return int(fraction("half", patient) < 0.5)


def _majorities(questions: Sequence[Question], key: Key) -> dict[Hashable, float]:
    """Return key -> 1, 0 or 0.5: which answer is commoner there, each weighed by how rare it is overall."""
    yes = Counter(key(q) for q in questions if q.gold == "yes")
    no = Counter(key(q) for q in questions if q.gold == "no")
    all_yes, all_no = max(yes.total(), 1), max(no.total(), 1)
    # Balanced accuracy is what is scored, so the shares of each answer are compared, not the counts.
    share = {k: (yes[k] / all_yes, no[k] / all_no) for k in yes.keys() | no.keys()}
    return {k: 0.5 if a == b else float(a > b) for k, (a, b) in share.items()}


def _floor(name: str, questions: Sequence[Question], said: Sequence[float]) -> Floor:
    right = {"yes": 0.0, "no": 0.0}
    n = Counter(q.gold for q in questions)
    for question, yes in zip(questions, said, strict=True):
        right[question.gold] += yes if question.gold == "yes" else 1.0 - yes
    defined = n["yes"] > 0 and n["no"] > 0
    value = 50.0 * (right["yes"] / n["yes"] + right["no"] / n["no"]) if defined else None
    return Floor(name, value, n["yes"], n["no"])
