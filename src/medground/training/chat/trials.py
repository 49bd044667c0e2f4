"""What a trained chat model is measured with: balanced closed questions, swaps, controls, open questions, captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medground.models.networks.reference.vocabulary import ANATOMIES, FINDINGS
from medground.training.chat.pastes import paste
from medground.training.chat.sampling import HOLDS, TOUCHES, kinds
from medground.training.chat.scenes import SIZE, Scenes, one
from medground.worlds.phantom import questions
from medground.worlds.phantom.drawing import Drawing, draw
from medground.worlds.phantom.scene import make_scene
from medground.worlds.phantom.twins import Quartet, quartet

PLACES: Final = len(ANATOMIES)
KINDS: Final = ("finding elsewhere", "another finding in this region", "clean region")


@dataclass(frozen=True)
class Case:
    """One unseen phantom with its truth.

    Attributes:
        number: of the case.
        drawing: scene and pixels.
        truth: a set of one.
    """

    number: int
    drawing: Drawing
    truth: Scenes

    @property
    def share(self) -> NDArray[np.float32]:
        """``(8, 8)``: anatomy by finding, largest share that it holds of any single lesion."""
        return self.truth.share[0, :PLACES]


@dataclass(frozen=True)
class Closed:
    """One closed question with everything that is asked beside it.

    Attributes:
        case: index of the case.
        region: index of the anatomy.
        finding: index of the finding.
        gold: the right answer.
        kind: of a "no": index in ``KINDS``; -1 for a "yes".
        text: the question.
    """

    case: int
    region: int
    finding: int
    gold: bool
    kind: int
    text: str


def unseen(count: int, seed: int) -> list[Case]:
    """Draw cases of a seed with the findings that phantoms usually have."""
    drawings = [draw(make_scene(seed, case), SIZE) for case in range(count)]
    return [Case(number, drawing, one(drawing)) for number, drawing in enumerate(drawings)]


def ask(region: int, finding: int, form: str = questions.CLOSED[0]) -> str:
    """Return a closed question."""
    return form.format(region=ANATOMIES[region], finding=FINDINGS[finding].lower())


def closed(cases: Sequence[Case], seed: int = 0) -> list[Closed]:
    """Return every true pair and as many false ones of the same pair, of three kinds, in both printed forms."""
    share = np.stack([case.share for case in cases])
    present = np.stack([case.truth.present[0] for case in cases])
    sorts = kinds(share, present) & (share <= TOUCHES)
    rng = np.random.default_rng([seed, 5])
    out: list[Closed] = []
    for region, finding in np.ndindex(PLACES, len(FINDINGS)):
        true = np.flatnonzero(share[:, region, finding] > HOLDS)
        taken = [(int(c), -1) for c in true]
        pools = [rng.permutation(np.flatnonzero(sort[:, region, finding])).tolist() for sort in sorts]
        # The kinds take turns, so that a scarce one gives what it has and the others fill up.
        while len(taken) < 2 * len(true) and any(pools):
            taken += [(int(pool.pop()), kind) for kind, pool in enumerate(pools) if pool]
        for case, kind in taken[: 2 * len(true)]:
            form = questions.CLOSED[int(rng.integers(2))]
            out.append(Closed(case, region, finding, kind < 0, kind, ask(region, finding, form)))
    return out


def _asked(pairs: Sequence[tuple[int, int]], rng: np.random.Generator) -> str | None:
    if not pairs:
        return None
    region, finding = pairs[int(rng.integers(len(pairs)))]
    return ask(region, finding)


@dataclass(frozen=True)
class Swaps:
    """What is asked about one true positive.

    Attributes:
        anatomy: another anatomy that can have the finding and does not, or None.
        disease: another finding that the anatomy can have and does not, or None.
        paraphrase: the same question in other words.
        other: another true pair of the picture, or None.
    """

    anatomy: str | None
    disease: str | None
    paraphrase: str
    other: str | None


def swaps(question: Closed, case: Case, valid: NDArray[np.bool_], seed: int = 0) -> Swaps:
    """Return the swaps and controls of a question, drawn for this question alone.

    Args:
        question: with the answer yes.
        case: its picture.
        valid: ``(8, 8)``: pairs that occur.
        seed: of the draws.
    """
    rng = np.random.default_rng([seed, 6, question.case, question.region, question.finding])
    absent = case.share <= TOUCHES
    regions = np.flatnonzero(valid[:, question.finding] & absent[:, question.finding])
    findings = np.flatnonzero(valid[question.region] & absent[question.region])
    own = (question.region, question.finding)
    others = [(int(a), int(f)) for a, f in np.argwhere(case.share > HOLDS) if (int(a), int(f)) != own]
    paraphrases = questions.PARAPHRASES
    return Swaps(
        anatomy=ask(int(rng.choice(regions)), question.finding) if len(regions) else None,
        disease=ask(question.region, int(rng.choice(findings))) if len(findings) else None,
        paraphrase=ask(question.region, question.finding, paraphrases[int(rng.integers(len(paraphrases)))]),
        other=_asked(others, rng),
    )


FEATHER: Final = 2.0
"""Standard deviation of the inward feather of a paste, in pixels of 224."""


def pasted(question: Closed, cases: Sequence[Case], seed: int = 0) -> NDArray[np.uint8] | None:
    """Return the picture with its region taken from another case of the same view, in which that region is normal.

    Grey values are matched to the whole picture, never inside the region: that would put the lesion back.

    Args:
        question: whose region is pasted over.
        cases: to take the donor from.
        seed: of the choice.

    Returns:
        ``(224, 224)`` grey values, or None where no case can give the region.
    """
    own = cases[question.case]
    donors = [
        case
        for case in cases
        if case is not own
        and case.drawing.scene.anatomy.view == own.drawing.scene.anatomy.view
        and case.share[question.region].max() <= TOUCHES
    ]
    if not donors:
        return None
    rng = np.random.default_rng([seed, 9, question.case, question.region, question.finding])
    donor = donors[int(rng.integers(len(donors)))].drawing
    return paste(own.drawing, donor, ANATOMIES[question.region], FEATHER)


@dataclass(frozen=True)
class Open:
    """One open question: index of the case, the question, the findings of the region."""

    case: int
    text: str
    gold: frozenset[str]


def opened(cases: Sequence[Case], seed: int = 0) -> list[Open]:
    """Return questions about abnormal regions, and as many about normal ones."""
    rng = np.random.default_rng([seed, 7])
    abnormal: list[Open] = []
    normal: list[Open] = []
    for index, case in enumerate(cases):
        for region, row in enumerate(case.share):
            held = row > HOLDS
            if ((row > 0.02) & ~held).any():
                continue
            form = questions.OPEN[int(rng.integers(len(questions.OPEN)))]
            gold = frozenset(FINDINGS[i].lower() for i in np.flatnonzero(held))
            (abnormal if gold else normal).append(Open(index, form.format(region=ANATOMIES[region]), gold))
    order = rng.permutation(len(normal))[: len(abnormal)]
    return abnormal + [normal[i] for i in sorted(order.tolist())]


def quartets(count: int, seed: int) -> list[Quartet]:
    """Return swapped quartets of a seed: words, and "anywhere in the picture", are at exactly 50 on them."""
    several: list[Quartet] = []
    for case in range(8 * count):  # about half of the draws have places for both findings
        rng = np.random.default_rng([seed, 10, case])
        first, second = (FINDINGS[int(i)] for i in rng.permutation(len(FINDINGS))[:2])
        drawn = quartet(seed, case, first, second)
        if drawn is not None:
            several.append(drawn)
        if len(several) == count:
            break
    return several


@dataclass(frozen=True)
class Captions:
    """A true caption, and false ones with one thing changed; index of the case."""

    case: int
    true: str
    false: dict[str, str]


def captions(cases: Sequence[Case], seed: int = 0) -> list[Captions]:
    """Return captions of all pictures with findings, each with a finding swapped, a region swapped, one left out."""
    out = []
    for index, case in enumerate(cases):
        rng = np.random.default_rng([seed, 8, index])
        there = np.flatnonzero(case.truth.present[0])
        places = [(int(f), [int(a) for a in np.flatnonzero(case.share[:, f] > HOLDS)]) for f in there]
        if not places:
            continue
        false: dict[str, str] = {}
        which = int(rng.integers(len(places)))
        absent = [f for f in range(len(FINDINGS)) if f not in there]
        swapped = sorted([*places[:which], (int(rng.choice(absent)), places[which][1]), *places[which + 1 :]])
        false["finding swapped"] = _caption(swapped)
        held = places[which][1]
        elsewhere = np.flatnonzero(case.share[:, places[which][0]] <= TOUCHES)
        if held and len(elsewhere):
            moved = sorted([*held[1:], int(rng.choice(elsewhere))])
            false["region swapped"] = _caption([*places[:which], (places[which][0], moved), *places[which + 1 :]])
        if len(places) > 1:
            false["finding left out"] = _caption([*places[:which], *places[which + 1 :]])
        out.append(Captions(index, _caption(places), false))
    return out


def _caption(places: Sequence[tuple[int, Sequence[int]]]) -> str:
    return questions.caption([(FINDINGS[f], [ANATOMIES[a] for a in held]) for f, held in places])
