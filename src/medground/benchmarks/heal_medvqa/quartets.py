"""Swapped quartets: two scenes of one patient in which two findings exchange their regions.

Scene 1 has f in a and g in b, scene 2 has g in a and f in b. The same four questions are asked of both: f in a? g in b?
f in b? g in a? Every question is right once and wrong once, every picture has two of each, and each finding and each
region is there in both. So whoever reads only the words, only asks whether the finding is anywhere, or only whether the
region is abnormal, is at exactly 50 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np

from medground.benchmarks.heal_medvqa.lesions import pieces
from medground.benchmarks.heal_medvqa.masks import LUNG_THIRDS, Mask
from medground.benchmarks.heal_medvqa.streams import fraction, shuffled
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.scene import make_scene
from medground.worlds.phantom.streams import FINDINGS

_SEED = 2_000_003  # added to the gallery's seed, so that no quartet shows one of its patients
_PLACES = 10  # places tried for each finding
_SIZE = 128  # pixels at which places are looked at
_IN, _OUT = 0.5, 0.05  # share of a lesion on its own region, and at most on the other's
_TRIED = 4  # pairs of findings tried for each quartet wanted

Attempts = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Quartet:
    """Two scenes, and what lies where.

    Attributes:
        seed: of both scenes.
        case: the patient of both.
        first: a finding, f.
        second: another one, g.
        region_first: a: where f is in scene 1 and g in scene 2.
        region_second: b: where g is in scene 1 and f in scene 2.
        members: image id and places of the findings, scene 1 first; ids are in random order.
    """

    seed: int
    case: int
    first: str
    second: str
    region_first: str
    region_second: str
    members: tuple[tuple[str, Attempts], tuple[str, Attempts]]

    def questions(self, member: int) -> list[tuple[str, str, bool]]:
        """Return ``(anatomy, finding, answer)`` four times, of one of the two scenes (0 or 1)."""
        straight = member == 0
        a, b, f, g = self.region_first, self.region_second, self.first, self.second
        return [(a, f, straight), (b, g, straight), (b, f, not straight), (a, g, not straight)]


def quartets(seed: int, count: int) -> list[Quartet]:
    """Return up to ``count`` quartets; fewer where four times as many tries do not give them."""
    return list(_quartets(seed, count))


@lru_cache(maxsize=4)
def _quartets(seed: int, count: int) -> tuple[Quartet, ...]:
    drawn: list[Quartet] = []
    for case in range(_TRIED * count):
        quartet = _quartet(seed + _SEED, case)
        if quartet is not None:
            drawn.append(quartet)
        if len(drawn) == count:
            break
    return tuple(drawn)


def _quartet(seed: int, case: int) -> Quartet | None:
    movable = [finding for finding in FINDINGS if finding != "Cardiomegaly"]
    f, g = shuffled(movable, seed, case, "findings")[:2]
    places = {finding: _regions(seed, case, finding) for finding in (f, g)}
    for a, b in shuffled(permutations(LUNG_THIRDS, 2), seed, case, "regions"):
        chosen = [_place(places[finding], region, other) for finding, region, other in _wanted(f, g, a, b)]
        f_in_a, g_in_b, f_in_b, g_in_a = chosen
        if f_in_a is None or g_in_b is None or f_in_b is None or g_in_a is None:
            continue
        ids = [f"quartet-{case:06d}-{letter}" for letter in ("m", "n")]
        if fraction(seed, case, "ids") < 0.5:
            ids.reverse()
        one, two = ((f, f_in_a), (g, g_in_b)), ((f, f_in_b), (g, g_in_a))
        return Quartet(seed, case, f, g, a, b, ((ids[0], one), (ids[1], two)))
    return None


def _wanted(f: str, g: str, a: str, b: str) -> list[tuple[str, str, str]]:
    """Return (finding, region to be in, region to keep out of) of the four lesions."""
    return [(f, a, b), (g, b, a), (f, b, a), (g, a, b)]


def _regions(seed: int, case: int, finding: str) -> list[Mapping[str, float]]:
    """Return for each place of a finding the largest share of one lesion on each third of a lung."""
    places: list[Mapping[str, float]] = []
    for attempt in range(_PLACES):
        drawing = draw(make_scene(seed, case, [finding], {finding: attempt}), _SIZE)
        thirds = {anatomy: drawing.anatomies[anatomy] for anatomy in LUNG_THIRDS}
        seen = pieces(drawing.findings[finding]) if drawing.findings[finding].any() else []
        places.append({name: max((_share(one, third) for one in seen), default=0.0) for name, third in thirds.items()})
    return places


def _share(lesion: Mask, anatomy: Mask) -> float:
    return int(np.count_nonzero(lesion & anatomy)) / int(np.count_nonzero(lesion))


def _place(places: list[Mapping[str, float]], region: str, other: str) -> int | None:
    """Return the first place that lies on a region and keeps out of another one."""
    for attempt, shares in enumerate(places):
        if shares[region] > _IN and shares[other] < _OUT:
            return attempt
    return None
