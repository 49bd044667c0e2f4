"""Pictures with a region pasted over, and what is true of them: the region shows what its donor shows there.

Donors are normal in the region, or have a finding in it, so that the traces of a paste do not predict the answer; about
other regions the picture is asked as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medground.imaging.pasting import alpha_of, blended, box_of, matched, moments, scaled_donor, support_of
from medground.models.networks.reference.vocabulary import ANATOMIES, CONCEPTS, FINDINGS
from medground.training.chat.sampling import HOLDS, TOUCHES, Turn, turn
from medground.training.chat.scenes import GRID, SIZE, coverage, findings_of, shares
from medground.worlds.phantom import questions
from medground.worlds.phantom.drawing import Drawing, draw
from medground.worlds.phantom.scene import HEART, make_scene

NOT_ASKED: Final = -1
_POSITIVE: Final = 0.4
"""Share of donors that have a finding in the region."""

_TRIES: Final = 6
_PLACES: Final = len(ANATOMIES)


def paste(own: Drawing, donor: Drawing, anatomy: str, sigma: float) -> NDArray[np.uint8]:
    """Return a drawing with one anatomy taken from another, ``(224, 224)``.

    Grey values are matched to the whole picture, never inside the region: that would put the lesion back.

    Args:
        own: what is pasted into.
        donor: what is pasted, of the same view.
        anatomy: name of the region.
        sigma: of the inward feather, in pixels.
    """
    target = own.anatomies[anatomy]
    box = box_of(target)
    block, inside = scaled_donor(donor.pixels, donor.anatomies[anatomy], box)
    block = matched(block, moments(donor.pixels), moments(own.pixels))
    whole = blended(own.pixels, block, alpha_of(support_of(target, inside, box), box, sigma), box)
    return np.rint(np.clip(whole, 0, 255)).astype(np.uint8)


@dataclass(frozen=True)
class Pasted:
    """Pasted pictures with their truth.

    Attributes:
        images: ``(N, 224, 224)`` grey values.
        masks: ``(N, 16, 28, 28)``, as of :class:`medground.training.chat.scenes.Scenes`, findings as they are now.
        region: ``(N,)``: the anatomy that was pasted over.
        golds: ``(N, 8, 8)``: anatomy by finding: 1 yes, 0 no, -1 not asked.
        open: ``(N,)``: whether all findings of the pasted anatomy are known, so that it may be asked for them.
    """

    images: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    region: NDArray[np.int64]
    golds: NDArray[np.int8]
    open: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.images)


def one_paste(seed: int, case: int) -> Pasted:
    """Draw one pasted picture; a function of seed and case alone."""
    rng = np.random.default_rng([seed, case, 15])
    view = ("PA", "AP")[int(rng.integers(2))]
    own = draw(make_scene(seed, case * (_TRIES + 1), findings_of(seed, case * (_TRIES + 1)), view=view), SIZE)
    share = shares(own)[:_PLACES]
    abnormal = np.flatnonzero((share > HOLDS).any(1))
    region = int(rng.choice(abnormal)) if len(abnormal) and rng.random() < 0.75 else int(rng.integers(_PLACES))
    donor = _donor(seed, case * (_TRIES + 1), view, region, positive=bool(rng.random() < _POSITIVE))
    theirs = shares(donor)[region]
    image = paste(own, donor, ANATOMIES[region], float(rng.choice((1.0, 2.0, 3.0))))
    golds, opened = _golds(share, theirs, region)
    return Pasted(image[None], _masks(own, donor, region)[None], np.array([region]), golds[None], np.array([opened]))


def joined(parts: list[Pasted]) -> Pasted:
    """Return several sets as one."""
    return Pasted(*(np.concatenate([getattr(part, name) for part in parts]) for name in Pasted.__dataclass_fields__))


def _donor(seed: int, first: int, view: str, region: int, *, positive: bool) -> Drawing:
    """Return a donor that has a finding in the region, or has none there."""
    for number in range(first + 1, first + 1 + _TRIES):
        drawing = draw(make_scene(seed, number, findings_of(seed, number), view=view), SIZE)
        row = shares(drawing)[region]
        if row.max() > HOLDS if positive else row.max() <= TOUCHES:
            return drawing
    return draw(make_scene(seed, first + _TRIES, [], view=view), SIZE)


def _golds(share: NDArray[np.float32], theirs: NDArray[np.float32], region: int) -> tuple[NDArray[np.int8], bool]:
    """Return what is true of every anatomy and finding now, and whether the pasted one is known in full."""
    now = share.copy()
    now[region] = theirs
    golds = np.where(now > HOLDS, 1, np.where(now <= TOUCHES, 0, NOT_ASKED)).astype(np.int8)
    heart = ANATOMIES.index("heart")
    if region == heart:  # a heart that is stretched into an enlarged one's outline stays enlarged, or becomes it
        golds[heart, FINDINGS.index(HEART)] = NOT_ASKED
    return golds, bool((golds[region] != NOT_ASKED).all())


def _masks(own: Drawing, donor: Drawing, region: int) -> NDArray[np.uint8]:
    """Return the coverage of all concepts: findings in the region are the donor's, elsewhere the picture's own."""
    name = ANATOMIES[region]
    target, theirs = own.anatomies[name], donor.anatomies[name]
    box = box_of(target)
    x0, y0, x1, y1 = box
    planes = []
    for concept in CONCEPTS:
        mask = own.masks.get(concept, np.zeros((SIZE, SIZE), np.bool_)).copy()
        if concept in FINDINGS:
            mask &= ~target
            if concept in donor.findings:
                block, _ = scaled_donor(donor.findings[concept].astype(np.float64), theirs, box)
                mask[y0:y1, x0:x1] |= (block > 0.5) & target[y0:y1, x0:x1]
        planes.append(coverage(mask))
    return np.stack(planes).reshape(len(CONCEPTS), GRID, GRID)


def turns(pasted: Pasted, case: int, rng: np.random.Generator) -> list[Turn]:
    """Return the questions about a pasted picture in random order.

    All that is true is asked, of the pasted region every finding that could be, and elsewhere about as many false ones
    as true ones.
    """
    golds, region = pasted.golds[case], int(pasted.region[case])
    asked = golds == 1
    false = golds == 0
    chance = np.full(golds.shape, min(1.0, (asked.sum() + 1) / max(1, false.sum())))
    chance[region] = 0.6
    asked = asked | (false & (rng.random(golds.shape) < chance))
    asked_turns = []
    for place, finding in np.argwhere(asked):
        forms = (*questions.CLOSED, *questions.CLOSED, *questions.PARAPHRASES)
        text = forms[int(rng.integers(len(forms)))].format(region=ANATOMIES[place], finding=FINDINGS[finding])
        asked_turns.append(turn(text, "yes" if golds[place, finding] == 1 else "no"))
    if pasted.open[case] and rng.random() < 0.5:
        named = [FINDINGS[i] for i in np.flatnonzero(golds[region] == 1)]
        text = questions.OPEN[int(rng.integers(len(questions.OPEN)))].format(region=ANATOMIES[region])
        asked_turns.append(turn(text, questions.answer_findings(named)))
    return [asked_turns[i] for i in rng.permutation(len(asked_turns))]
