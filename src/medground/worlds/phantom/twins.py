"""Pairs and quartets of scenes in which one fact is exchanged and all else is equal.

A fact is changed by asking for another place, size, view or finding of the same case; places are tried in order until
one fits, on small masks. Where none fits the answer is None, and the case is skipped and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from medground.worlds.phantom.facts import IN_THIRD, ON_REGION, OUTSIDE, ZONED, facts
from medground.worlds.phantom.findings import LESIONS
from medground.worlds.phantom.scene import HEART, RESIZABLE, Population, Scene, make_scene, place_lesions
from medground.worlds.phantom.silhouette import SIDES, Stage, anatomies
from medground.worlds.phantom.streams import stream

TRIES: Final = 80
"""Places that are tried for a pair; the longest search of a prototype took 41."""

QUARTET_TRIES: Final = 32
"""Places of each finding that are tried for a quartet."""

_SIZE: Final = 64

_SIZES: Final = {"small": 0.12, "large": 0.88}
"""Where in its range a finding is put that shall be small or large."""


@dataclass(frozen=True)
class Place:
    """One place of one finding as a single lesion: its number, and its share on each of the six thirds."""

    attempt: int
    side: str
    shares: dict[str, float]

    def third(self, name: str) -> float:
        """Return the share on a third of the lungs' height."""
        return sum(self.shares[f"{side} {name} lung"] for side in SIDES)


def _places(scene: Scene, finding: str, tries: int) -> Iterator[Place]:
    """Yield the places of a finding in one scene; nothing where it has lesions on both sides."""
    stage = Stage(scene, _SIZE)
    thirds = {name: mask for name, mask in anatomies(stage.labels).items() if name.endswith("lung")}
    # What has no place of its own only changes sides.
    for attempt in range(tries if finding in ZONED else 2):
        lesions = place_lesions(scene, finding, attempt)
        if len({lesion.side for lesion in lesions}) != 1:
            return
        (mask,) = stage.masks(lesions[:1])
        if mask.any():
            shares = {name: float((mask & third).sum() / mask.sum()) for name, third in thirds.items()}
            yield Place(attempt, SIDES[lesions[0].side], shares)


def placed(
    scene: Scene, finding: str, side: str | None = None, third: str | None = None, avoid: str | None = None
) -> Scene | None:
    """Return the scene with a finding on this side and in this third, added if need be.

    Args:
        scene: any scene.
        finding: one of the eight; an enlarged heart has neither side nor third.
        side: "right" or "left"; None for any.
        third: "upper", "mid" or "lower"; None for any.
        avoid: a third that it must stay clear of.

    Returns:
        The scene, or None where no place was found.
    """
    if finding == HEART:
        return scene.with_finding(HEART) if side is None and third is None else None
    if third is not None and finding not in ZONED:
        return None
    for place in _places(scene, finding, TRIES):
        fits = side in (None, place.side)
        fits = fits and (third is None or place.third(third) >= IN_THIRD)
        if fits and (avoid is None or place.third(avoid) < OUTSIDE):
            return scene.with_finding(finding, place.attempt)
    return None


def replaced(scene: Scene, finding: str, other: str) -> Scene | None:
    """Return the scene with another finding in place of one, on the same side and, where both may lie anywhere, third.

    Args:
        scene: a scene with the first finding and without the second.
        finding: what goes.
        other: what comes.
    """
    if finding not in scene.findings or other in scene.findings:
        return None
    fact = facts(scene, _SIZE).findings[finding]
    if fact.side == "both" or (HEART in (finding, other) and finding != other and fact.side is not None):
        return None
    third = fact.third if other in ZONED else None
    return placed(scene.without(finding), other, fact.side, third)


def other_side(scene: Scene, finding: str) -> Scene | None:
    """Return the scene with a finding on the other side, in the same third where it lies in one."""
    fact = facts(scene, _SIZE).findings.get(finding)
    if fact is None or fact.side in (None, "both"):
        return None
    return placed(scene, finding, SIDES[1 - SIDES.index(fact.side or "")], fact.third)


def other_third(scene: Scene, finding: str, third: str) -> Scene | None:
    """Return the scene with a finding in another third, on the same side and clear of the old one."""
    fact = facts(scene, _SIZE).findings.get(finding)
    if fact is None or fact.side in (None, "both") or fact.third in (None, third):
        return None
    return placed(scene, finding, fact.side, third, avoid=fact.third)


def other_size(scene: Scene, finding: str) -> Scene | None:
    """Return the scene with a small finding large, or a large one small, at the same place."""
    fact = facts(scene, _SIZE).findings.get(finding)
    if fact is None or finding not in RESIZABLE or fact.size is None:
        return None
    return scene.sized(finding, _SIZES["large" if fact.size == "small" else "small"])


def other_view(scene: Scene) -> Scene:
    """Return the same patient in the other view."""
    return scene.in_view("PA" if scene.view == "AP" else "AP")


@dataclass(frozen=True)
class Quartet:
    """Two scenes of one case in which two findings exchange their regions.

    The four questions are the same for both: first in its region, second in its region, and the two crossed. The first
    scene answers yes, yes, no, no; the second one no, no, yes, yes.

    Attributes:
        one: the first finding in ``first_region``, the second in ``second_region``.
        two: exchanged.
        first: a finding.
        second: another one.
        first_region: one of the eight anatomies.
        second_region: another one.
    """

    one: Scene
    two: Scene
    first: str
    second: str
    first_region: str
    second_region: str


def quartet(seed: int, case: int, first: str, second: str, population: Population = "default") -> Quartet | None:
    """Return the quartet of two findings in one case, or None where their places do not allow one.

    Regions are chosen so that upper, middle and lower thirds are about as frequent as places allow.

    Args:
        seed: of the dataset.
        case: number of the case.
        first: a finding other than an enlarged heart.
        second: another one.
        population: of the scene.
    """
    if first == second or not {first, second} <= set(LESIONS):
        return None
    scene = make_scene(seed, case, [first, second], population=population)
    options = [_by_regions(scene, finding) for finding in (first, second)]
    both = options[0].keys() & options[1].keys()
    shared = [(region, other) for region, other in sorted(both) if (other, region) in both]
    if not shared:
        return None
    weights = np.array([_RARITY[pair[0].split()[1]] * _RARITY[pair[1].split()[1]] for pair in shared])
    chosen = shared[int(stream(seed, case, "truth", "place").choice(len(shared), p=weights / weights.sum()))]
    back = (chosen[1], chosen[0])

    def scene_of(one: tuple[str, str], other: tuple[str, str]) -> Scene:
        return scene.with_finding(first, options[0][one]).with_finding(second, options[1][other])

    made = Quartet(scene_of(chosen, back), scene_of(back, chosen), first, second, *chosen)
    return made if _exact(made) else None


def _exact(made: Quartet) -> bool:
    """Return whether all eight answers hold on larger masks than the places were chosen on."""
    one, two = facts(made.one), facts(made.two)
    straight = (made.first, made.first_region), (made.second, made.second_region)
    crossed = (made.first, made.second_region), (made.second, made.first_region)
    return all(one.in_region(*it) is True and two.in_region(*it) is False for it in straight) and all(
        one.in_region(*it) is False and two.in_region(*it) is True for it in crossed
    )


_RARITY: Final = {"upper": 4.0, "mid": 2.0, "lower": 1.0}
"""Weights of the thirds: without them lower ones take three fifths of the regions."""


def _by_regions(scene: Scene, finding: str) -> dict[tuple[str, str], int]:
    """Return (region that a place lies on, region that it keeps clear of) -> number of the first such place."""
    found: dict[tuple[str, str], int] = {}
    for place in _places(scene, finding, QUARTET_TRIES):
        for region, share in place.shares.items():
            if share <= ON_REGION:
                continue
            for other, rest in place.shares.items():
                if rest < OUTSIDE:
                    found.setdefault((region, other), place.attempt)
    return found
