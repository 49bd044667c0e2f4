"""The draw of questions: 2 to 5 an image, as many "no" as "yes", by one or several samplers.

Questions of an image hang on the seed, its id and counts over the *train* split alone, with one exception that cannot
be otherwise: ``same_question_other_picture`` asks what holds in one picture of another one, so that a question's words
say nothing at all about its answer. What a sampler cannot give is counted and not replaced from another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from medground.benchmarks.heal_medvqa.masks import WHOLE
from medground.benchmarks.heal_medvqa.questions import Kind, Question, negative_kind
from medground.benchmarks.heal_medvqa.relation import Pair
from medground.benchmarks.heal_medvqa.samplers import Sampler, admissible
from medground.benchmarks.heal_medvqa.streams import between, drawn, fraction, one_of, shuffled
from medground.benchmarks.heal_medvqa.table import ImageFacts, OpenQuestion, RelationTable, open_questions

PARTNERED: Sampler = "same_question_other_picture"

_PROBED = 32  # pictures looked at for each partner: enough to spread the questions evenly


@dataclass(frozen=True)
class Draw:
    """How questions are drawn.

    Attributes:
        samplers: of negatives; each slot takes one by its own coin.
        least: questions an image, at least; made up by open ones where closed ones are short.
        most: questions an image, at most.
        open_share: share of the questions that are open.
        valid_only: negatives only among pairs that hold in some train image.
        seed: of every choice.
    """

    samplers: tuple[Sampler, ...] = ("popular_by_frequency", "same_question_other_picture")
    least: int = 2
    most: int = 5
    open_share: float = 0.3
    valid_only: bool = False
    seed: int = 0


@dataclass
class Shortfall:
    """What a draw could not do, counted over its images.

    Attributes:
        images: asked.
        without_positive: images in which nothing holds.
        negatives: slots that their sampler had nothing left for.
        partners: positives for which no other picture could be asked the same.
        short: images with fewer than ``least`` questions.
        doubtful: regions left out of open questions because a finding touches them.
        dropped: reason -> pairs that may not be asked.
    """

    images: int = 0
    without_positive: int = 0
    negatives: int = 0
    partners: int = 0
    short: int = 0
    doubtful: int = 0
    dropped: Counter[str] = field(default_factory=Counter)


def draw(table: RelationTable, choices: Draw, splits: Sequence[str] = ("test",)) -> tuple[list[Question], Shortfall]:
    """Return the questions of the images of some splits, in the table's order, and what fell short."""
    shortfall = Shortfall()
    images = [image for image in table.images if image.split in splits]
    asked = {image.image_id: _closed(image, table, choices, shortfall) for image in images}
    if PARTNERED in choices.samplers:
        _ask_partners(images, table, choices, asked, shortfall)
    questions: list[Question] = []
    for image in images:
        questions += _finished(image, table, choices, asked[image.image_id], shortfall)
    return questions, shortfall


def _closed(image: ImageFacts, table: RelationTable, choices: Draw, shortfall: Shortfall) -> list[Question]:
    """Return the closed questions that an image gets by itself; ids come later."""
    names = (choices.seed, image.image_id)
    wanted = _wanted(image, choices)[0]
    yes = min(len(image.related), (wanted + one_of((0, 1), *names, "odd")) // 2)
    chosen = drawn(dict.fromkeys(image.related, 1.0), yes, *names, "yes")
    questions = [_question(image, "closed_yes", pair) for pair in chosen]
    taken: set[Pair] = set()
    admitted: dict[Sampler, dict[Pair, float]] = {}
    for slot in range(wanted - yes):
        sampler = one_of(choices.samplers, *names, "sampler", slot)
        if sampler == PARTNERED:
            continue
        if sampler not in admitted:
            admitted[sampler] = admissible(image, table, sampler, valid_only=choices.valid_only)
        left = {pair: weight for pair, weight in admitted[sampler].items() if pair not in taken}
        for pair in drawn(left, 1, *names, "no", sampler, slot):
            taken.add(pair)
            questions.append(replace(_question(image, "closed_no", pair), sampler=sampler))
        shortfall.negatives += not left
    shortfall.images += 1
    shortfall.without_positive += not image.related
    for reason, pairs in table.dropped(image).items():
        shortfall.dropped[reason] += len(pairs)
    return questions


def _wanted(image: ImageFacts, choices: Draw) -> tuple[int, int]:
    """Return how many closed and open questions an image is meant to get."""
    names = (choices.seed, image.image_id)
    wanted = between(choices.least, choices.most, *names, "how many")
    opened = sum(fraction(*names, "open", slot) < choices.open_share for slot in range(wanted))
    return wanted - opened, opened


def _ask_partners(
    images: Sequence[ImageFacts],
    table: RelationTable,
    choices: Draw,
    asked: dict[str, list[Question]],
    shortfall: Shortfall,
) -> None:
    """Ask of other pictures what holds in one: the emptiest of those where it certainly does not, ties by coin."""
    free: dict[Pair, list[ImageFacts]] = defaultdict(list)
    for image in sorted(images, key=lambda image: image.image_id):
        for pair in table.negatives(image):
            free[pair].append(image)
    positives = [
        q for image in images for q in asked[image.image_id] if q.kind == "closed_yes" and _partnered(q, choices)
    ]
    positives.sort(key=lambda q: fraction(choices.seed, "turn", q.image_id, *q.pair))
    for question in positives:
        best = _partner(question, table[question.image_id], free[question.pair], asked, choices)
        if best is None:
            shortfall.partners += 1
        else:
            asked[best.image_id].append(replace(_question(best, "closed_no", question.pair), sampler=PARTNERED))


def _partner(
    question: Question,
    owner: ImageFacts,
    free: Sequence[ImageFacts],
    asked: dict[str, list[Question]],
    choices: Draw,
) -> ImageFacts | None:
    """Return the picture with the fewest questions among the first few that may be asked, from a place by coin."""
    start = int(fraction(choices.seed, "partner", question.image_id, *question.pair) * len(free))
    around = (free[(start + step) % len(free)] for step in range(len(free)))
    few = islice((other for other in around if _may_ask(other, owner, question, asked, choices)), _PROBED)
    return min(few, key=lambda other: len(asked[other.image_id]), default=None)


def _partnered(question: Question, choices: Draw) -> bool:
    return one_of(choices.samplers, choices.seed, "partnered", question.image_id, *question.pair) == PARTNERED


def _may_ask(
    other: ImageFacts, owner: ImageFacts, question: Question, asked: dict[str, list[Question]], choices: Draw
) -> bool:
    """Whether another patient's picture, of the same view, has room for a question that it was not asked yet."""
    stranger = other.patient_id != owner.patient_id if owner.patient_id else other.image_id != owner.image_id
    own = asked[other.image_id]
    return (
        stranger and other.view == owner.view and len(own) < choices.most and all(q.pair != question.pair for q in own)
    )


def _finished(
    image: ImageFacts, table: RelationTable, choices: Draw, closed: list[Question], shortfall: Shortfall
) -> list[Question]:
    """Return an image's questions in their order and with their ids, open ones added."""
    names = (choices.seed, image.image_id)
    held = {WHOLE[anatomy] for anatomy in table.anatomies if anatomy in WHOLE}  # lungs whose thirds are asked about
    possible = open_questions(image, [anatomy for anatomy in table.anatomies if anatomy not in held])
    usable = [one for one in possible if not one.doubtful and not _untold(one, image)]
    shortfall.doubtful += len(possible) - len(usable)
    wanted = max(_wanted(image, choices)[1], choices.least - len(closed))
    opened = _open(image, usable, min(wanted, choices.most - len(closed)), names)
    questions = [*closed, *opened]
    shortfall.short += len(questions) < choices.least
    order = shuffled(range(len(questions)), *names, "order")
    return [
        replace(
            questions[k],
            question_id=f"{image.image_id}#{number}",
            wording=between(0, 5, *names, "wording", *questions[k].pair),
        )
        for number, k in enumerate(order)
    ]


def _untold(one: OpenQuestion, image: ImageFacts) -> bool:
    """Whether an anatomy cannot be called normal, as something was not annotated or lies nobody knows where."""
    return not one.findings and bool(image.present_without_region)


def _open(image: ImageFacts, usable: Sequence[OpenQuestion], count: int, names: tuple[object, ...]) -> list[Question]:
    """Return open questions, abnormal and normal regions by a fair coin while both last."""
    queues = {
        kind: shuffled([one.anatomy for one in usable if one.kind == kind], *names, kind)
        for kind in ("open_abnormal", "open_normal")
    }
    questions = []
    for slot in range(max(count, 0)):
        kind: Kind = one_of(("open_abnormal", "open_normal"), *names, "open kind", slot)
        kind = kind if queues[kind] else "open_normal" if kind == "open_abnormal" else "open_abnormal"
        if queues[kind]:
            anatomy = queues[kind].pop(0)
            questions.append(Question("", image.image_id, kind, anatomy, findings=image.on(anatomy)))
    return questions


def _question(image: ImageFacts, kind: Kind, pair: Pair) -> Question:
    negative = negative_kind(image, pair) if kind == "closed_no" else ""
    return Question("", image.image_id, kind, *pair, negative=negative)
