"""Which questions a picture is asked while training, so that no word predicts the answer.

Every true (region, finding) pair is asked, and as many false ones of the same pair. False ones are of three kinds, and
two of them are needed: the finding is elsewhere (without it the model answers from the whole picture), another finding
lies in that very region (without it the model says yes to whatever lies there), and the region is clean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.models.networks.chat import tokens
from medground.models.networks.reference.vocabulary import FINDINGS
from medground.training.chat.scenes import LUNGS, Scenes
from medground.worlds.phantom import questions
from medground.worlds.phantom.questions import REGIONS

HOLDS: Final = 0.5
"""A region has a finding when it holds more than this share of one of its lesions."""

TOUCHES: Final = 0.05
"""Between this and ``HOLDS`` a pair is not asked: neither yes nor no is plainly right."""

_WEIGHT: Final = np.array([0.4 if region in LUNGS else 1.0 for region in REGIONS])
"""Whole lungs are asked about less: their questions are the easier ones."""

_ELSEWHERE, _OTHER, _CLEAN = 0.35, 0.40, 0.25


class Turn(NamedTuple):
    """One question with its answer, as ids.

    Attributes:
        prompt: up to and including the words that ask for the answer.
        answer: with the end token.
        mask: what ``<SEG>`` in the answer stands for: a number of ``CONCEPTS`` or of a lung after them; -1: no mask.
    """

    prompt: list[int]
    answer: list[int]
    mask: int = -1


@dataclass(frozen=True)
class Chances:
    """Probabilities that a picture is asked something, worked out over all training pictures.

    Attributes:
        false: ``(3, R, C)``: of asking a false pair of each kind.
        true: ``(R, C)``: of asking a true pair.
        normal: ``(R,)``: of asking an open question about a region without findings.
    """

    false: NDArray[np.float64]
    true: NDArray[np.float64]
    normal: NDArray[np.float64]


ABNORMAL: Final = 0.6
"""Chance of an open question about a region with findings."""


def kinds(share: NDArray[np.float32], present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the false pairs by kind, ``(3, ..., R, C)``: finding elsewhere, another finding here, region clean."""
    holds = share > HOLDS
    there = present[..., None, :]
    other = holds.any(-1, keepdims=True)
    elsewhere = there & (share <= TOUCHES)
    return np.stack([np.broadcast_to(k, share.shape) for k in (elsewhere, ~there & other, ~there & ~other)])


def chances(scenes: Scenes) -> Chances:
    """Return the main model's chances: as many false as true ones of every pair."""
    holds = scenes.share > HOLDS
    counts = kinds(scenes.share, scenes.present).sum(1)
    # A pair that is never true must be met too, or its answer is left to chance.
    goal = np.maximum(holds.sum(0), 0.004 * len(scenes)) * _WEIGHT[:, None]
    share = np.stack([_ELSEWHERE * (counts[0] > 0), _OTHER * (counts[1] > 0), np.full(goal.shape, _CLEAN)])
    share /= share.sum(0)
    false = np.minimum(1, share * goal / np.maximum(counts, 1))
    return Chances(false, np.broadcast_to(_WEIGHT[:, None], goal.shape), _normal(scenes))


def shortcut_chances(scenes: Scenes) -> Chances:
    """Return the twin's chances: its truth is "anywhere in the picture", balanced for every pair anew."""
    goal = np.maximum((scenes.share > HOLDS).sum(0), 0.004 * len(scenes)) * _WEIGHT[:, None]
    there, absent = scenes.present.sum(0), (~scenes.present).sum(0)
    true = np.minimum(1, goal / np.maximum(there, 1))
    false = np.minimum(1, goal / np.maximum(absent, 1))
    return Chances(np.stack([np.zeros(goal.shape), false, false]), true, _normal(scenes))


def _normal(scenes: Scenes) -> NDArray[np.float64]:
    """Return the chance that makes normal answers as frequent as others for every region."""
    abnormal = (scenes.share > HOLDS).any(2).sum(0) * ABNORMAL * _WEIGHT
    clean = (scenes.share <= 0.02).all(2).sum(0)
    chance: NDArray[np.float64] = np.minimum(1, (abnormal + 0.004 * len(scenes)) / np.maximum(clean, 1))
    return chance


class Sampler:
    """Draws the questions of one picture.

    Args:
        scenes: the training pictures.
        shortcut: whether answers ignore the region (the twin).
        grounded: share of region questions that are answered with the place first.
    """

    def __init__(self, scenes: Scenes, *, shortcut: bool = False, grounded: float = 0.3) -> None:
        self._scenes, self._shortcut, self._grounded = scenes, shortcut, grounded
        self._chances = (shortcut_chances if shortcut else chances)(scenes)

    def turns(self, case: int, rng: np.random.Generator) -> list[Turn]:
        """Return the questions of a picture in random order."""
        share, present = self._scenes.share[case], self._scenes.present[case]
        turns = [
            *self._closed(share, present, rng),
            *self._open(share, present, rng),
            *self._other(share, present, rng),
        ]
        return [turns[i] for i in rng.permutation(len(turns))]

    def _closed(self, share: NDArray[np.float32], present: NDArray[np.bool_], rng: np.random.Generator) -> list[Turn]:
        holds = share > HOLDS
        true = np.broadcast_to(present, holds.shape) if self._shortcut else holds
        asked_true = true & (rng.random(true.shape) < self._chances.true)
        false = kinds(share, present)
        if self._shortcut:
            false = false & ~true
        asked_false = (false & (rng.random(false.shape) < self._chances.false)).any(0)
        turns = []
        for gold, asked in (("yes", asked_true), ("no", asked_false)):
            for region, finding in np.argwhere(asked):
                forms = (*questions.CLOSED, *questions.CLOSED, *questions.PARAPHRASES)
                form = forms[int(rng.integers(len(forms)))]
                text = form.format(region=REGIONS[region], finding=FINDINGS[finding])
                turns.append(self._about(text, int(region), gold, rng))
        return turns

    def _open(self, share: NDArray[np.float32], present: NDArray[np.bool_], rng: np.random.Generator) -> list[Turn]:
        turns = []
        for region, row in enumerate(share):
            held = row > HOLDS
            if held.any():
                plain, chance = not ((row > 0.2) & ~held).any(), ABNORMAL * float(_WEIGHT[region])
            else:
                plain, chance = bool((row <= 0.02).all()), float(self._chances.normal[region])
            if not plain or rng.random() >= chance:
                continue
            named = [FINDINGS[i] for i in np.flatnonzero(present if self._shortcut else held)]
            text = questions.OPEN[int(rng.integers(len(questions.OPEN)))].format(region=REGIONS[region])
            turns.append(self._about(text, region, questions.answer_findings(named), rng))
        return turns

    def _about(self, text: str, region: int, gold: str, rng: np.random.Generator) -> Turn:
        """Return a question about a region, answered at once or after the region's place."""
        if rng.random() < 0.2:
            text = text.replace(" the ", " ")  # as the benchmark prints it
        if rng.random() >= self._grounded:
            return turn(text, gold)
        answer = f"{questions.location(REGIONS[region])} {gold}"
        return turn(text, answer, mask_of(REGIONS[region]), locate=True)

    def _other(self, share: NDArray[np.float32], present: NDArray[np.bool_], rng: np.random.Generator) -> list[Turn]:
        there, absent = np.flatnonzero(present), np.flatnonzero(~present)
        turns = []
        for _ in range(1 + int(rng.random() < 0.5)):
            things = [*REGIONS, *(FINDINGS[i] for i in there)]
            thing = things[int(rng.integers(len(things)))]
            turns.append(turn(questions.WHERE.format(thing=thing), questions.location(thing), mask_of(thing)))
        if rng.random() < 0.6 and len(there):
            yes = bool(rng.random() < 0.5)
            pool = there if yes else absent
            text = questions.PRESENT.format(finding=FINDINGS[int(pool[int(rng.integers(len(pool)))])])
            turns.append(turn(text, "yes" if yes else "no"))
        if rng.random() < 0.3:
            places = [(FINDINGS[i], [] if self._shortcut else holders(share[:, i])) for i in there]
            turns.append(turn(questions.DESCRIBE, questions.caption(places)))
        return turns


def holders(column: NDArray[np.float32]) -> list[str]:
    """Return the anatomies (no whole lungs) that hold a finding."""
    return [name for name, part in zip(REGIONS, column, strict=True) if part > HOLDS and name not in LUNGS]


def mask_of(thing: str) -> int:
    """Return the number of a thing's mask: of a concept, or of a lung after them."""
    names = (*FINDINGS, *REGIONS)
    return names.index(thing)


def turn(text: str, answer: str, mask: int = -1, *, locate: bool = False) -> Turn:
    """Return a question with its answer as ids."""
    end = tokens.LOCATE if locate else tokens.ANSWER
    return Turn(tokens.encode(f"{text} {end}"), [*tokens.encode(answer), tokens.EOS], mask)
