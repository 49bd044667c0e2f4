"""What can be had without looking where the question points: the figures to print beside every sampler.

*Blind*: the majority answer by finding, by anatomy, by pair, learnt on other patients. *Picture*: answering "is the
finding anywhere?" or "is anything in that region?" from the true findings, the paper's visual shortcut. A sampler that
brings one of them to 50 usually leaves another high, which is why the figures are never merged into one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medground.benchmarks.heal_medvqa.questions import Question
from medground.benchmarks.heal_medvqa.table import RelationTable
from medground.metrics.majority import majorities, majority_by_key


@dataclass(frozen=True)
class Known:
    """What a closed question gives away, and what its picture would.

    Attributes:
        anatomy: asked about.
        finding: asked about.
        yes: the right answer.
        cluster: patient.
        anywhere: whether the finding is anywhere in the picture.
        abnormal: whether anything lies on the anatomy.
    """

    anatomy: str
    finding: str
    yes: bool
    cluster: str
    anywhere: bool
    abnormal: bool


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


BLIND: dict[str, Callable[[Known], Hashable]] = {
    "majority": lambda _: "",
    "by_finding": lambda q: q.finding,
    "by_anatomy": lambda q: q.anatomy,
    "by_pair": lambda q: (q.anatomy, q.finding),
}
PICTURE: dict[str, Callable[[Known], bool]] = {
    "finding_anywhere": lambda q: q.anywhere,
    "region_abnormal": lambda q: q.abnormal,
}


def known(questions: Iterable[Question], table: RelationTable) -> list[Known]:
    """Return what closed questions give away; open ones are left out."""
    listed = []
    for q in questions:
        if q.is_open:
            continue
        image = table[q.image_id]
        anywhere = q.finding in image.findings | image.present_without_region
        cluster = image.patient_id or image.image_id
        listed.append(Known(*q.pair, q.gold == "yes", cluster, anywhere, bool(image.on(q.anatomy))))
    return listed


def known_from(rows: Iterable[Mapping[str, Any]]) -> list[Known]:
    """Return the same from rows of closed base questions."""
    return [
        Known(r["anatomy"], r["finding"], r["wanted"] == "yes", r["cluster"], bool(r["anywhere"]), bool(r["abnormal"]))
        for r in rows
    ]


def floors(asked: Sequence[Known], others: Sequence[Known] = ()) -> list[Floor]:
    """Return what every baseline gets.

    Args:
        asked: closed questions.
        others: questions of other patients to learn the majorities from; without any, the questions themselves are
            cut in two by patient, and each half is answered from the other.
    """
    blind = [_floor(name, asked, _blind(asked, others, key)) for name, key in BLIND.items()]
    return blind + [_floor(name, asked, [float(says(q)) for q in asked]) for name, says in PICTURE.items()]


def _blind(asked: Sequence[Known], others: Sequence[Known], key: Callable[[Known], Hashable]) -> list[float]:
    """Return the share of "yes" that a majority by key says, 0.5 where it is torn or knows nothing.

    Balanced accuracy is what is scored, so each answer is weighed by how rare it is.
    """
    keys, right = [key(q) for q in asked], [q.yes for q in asked]
    if not others:
        told = majority_by_key(right, keys, [q.cluster for q in asked], folds=2, balanced=True)
        return [float(says) for says in told]
    learnt = majorities([q.yes for q in others], [key(q) for q in others], balanced=True)
    return [learnt.get(k, 0.5) for k in keys]


def _floor(name: str, asked: Sequence[Known], answers: Sequence[float]) -> Floor:
    n_yes = sum(q.yes for q in asked)
    n_no = len(asked) - n_yes
    if not n_yes or not n_no:
        return Floor(name, None, n_yes, n_no)
    right_yes = sum(says for q, says in zip(asked, answers, strict=True) if q.yes)
    right_no = sum(1.0 - says for q, says in zip(asked, answers, strict=True) if not q.yes)
    return Floor(name, 50.0 * (right_yes / n_yes + right_no / n_no), n_yes, n_no)
