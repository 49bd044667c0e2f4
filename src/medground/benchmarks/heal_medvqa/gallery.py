"""Where questions get their pictures from: one interface for phantoms, datasets with masks, and built folders.

A *survey* says what is known about each picture without its pixels: facts, which anatomies have a mask, which of them
touch. Questions are planned on surveys alone; pixels and masks are read when an item is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Protocol

import numpy as np

from medground.benchmarks.heal_medvqa.masks import WHOLE, Mask
from medground.benchmarks.heal_medvqa.relation import PlacedLesion
from medground.benchmarks.heal_medvqa.table import ImageFacts, RelationTable
from medground.benchmarks.heal_medvqa.variants import Surroundings
from medground.imaging.reading import Radiograph

_LEAST = 1e-3  # share of the picture below which a mask is no region to ask about or to paste


@dataclass(frozen=True)
class Survey:
    """What is known about one picture without its pixels.

    Attributes:
        facts: what lies where.
        regions: anatomies with a mask worth the name.
        touching: pairs of them, sorted, that share pixels.
        shares: ``(anatomy, finding)`` -> largest share of one lesion on it, where above 0.
        counts: of the relation: ``on_none``, ``on_several``, ``undefined``, ``empty``.
    """

    facts: ImageFacts
    regions: frozenset[str]
    touching: frozenset[tuple[str, str]]
    shares: Mapping[tuple[str, str], float] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class GalleryPicture:
    """One picture with what is in it.

    Attributes:
        radiograph: grey values, its ids set.
        masks: anatomy -> mask of the radiograph's size.
        lesions: finding -> where it is, of the same size; findings of unknown place are missing.
    """

    radiograph: Radiograph
    masks: Mapping[str, Mask]
    lesions: Mapping[str, Mask]


class Gallery(Protocol):
    """Pictures with their surveys."""

    @property
    def statement(self) -> str:
        """Where the anatomies come from, in one sentence."""

    @property
    def anatomies(self) -> Sequence[str]:
        """Anatomies that are asked about."""

    @property
    def findings(self) -> Sequence[str]:
        """The vocabulary, ordered."""

    @property
    def words(self) -> Mapping[str, str]:
        """Finding -> how it is written in a question, where that is not its name in lower case."""

    @property
    def redraws(self) -> bool:
        """Whether a picture can be drawn again without a finding."""

    def surveys(self) -> Sequence[Survey]:
        """Every picture's survey, in a stable order; decodes no picture."""

    def picture(self, image_id: str) -> GalleryPicture:
        """Return a picture.

        Raises:
            DataError: it, or a mask, cannot be read.
        """

    def without(self, image_id: str, finding: str) -> Radiograph:
        """Return the same picture drawn without one of its findings; only where ``redraws``."""

    def files(self, image_id: str) -> tuple[Path, ...]:
        """Return the files that a picture is read from."""

    def fingerprint(self) -> str:
        """A hash of everything that surveys and pictures depend on."""


def survey_of(facts: ImageFacts, placed: PlacedLesion, masks: Mapping[str, Mask]) -> Survey:
    """Return the survey of a picture from its anatomy masks and what lies on them."""
    regions = frozenset(name for name, mask in masks.items() if np.count_nonzero(mask) > _LEAST * mask.size)
    pairs = combinations(sorted(regions), 2)
    touching = frozenset((a, b) for a, b in pairs if bool((masks[a] & masks[b]).any()))
    shares: dict[tuple[str, str], float] = {}
    for finding, row in zip(placed.findings, placed.shares, strict=True):
        for anatomy, share in row.items():
            if share:
                shares[anatomy, finding] = max(share, shares.get((anatomy, finding), 0.0))
    counts = {
        "lesions": len(placed.findings),
        "on_none": placed.on_none,
        "on_several": placed.on_several,
        "undefined": placed.undefined,
        "empty": len(placed.empty),
        "findings_lost": len(placed.lost),
    }
    return Survey(facts, regions, touching, shares, counts)


def table_of(gallery: Gallery, surveys: Iterable[Survey]) -> RelationTable:
    """Return the relation table of surveys, whole lungs asked about only where no third of theirs holds a finding."""
    anatomies = tuple(gallery.anatomies)
    asked = set(anatomies)
    return RelationTable(anatomies, tuple(gallery.findings), tuple(_askable(one.facts, asked) for one in surveys))


def _askable(facts: ImageFacts, anatomies: set[str]) -> ImageFacts:
    """Return the facts with pairs of other anatomies left out, and a lung's as partial where a part has the finding.

    A partial pair is not asked: where the right upper lung has a mass, the narrower place is the question; and an
    enlarged heart that covers most of the left lung is no finding of that lung.
    """
    related = {pair for pair in facts.related if pair[0] in anatomies}
    partial = {pair for pair in facts.partial if pair[0] in anatomies}
    split = {WHOLE[anatomy] for anatomy in anatomies if anatomy in WHOLE}  # lungs whose thirds are asked about
    placed = {finding for anatomy, finding in related if anatomy not in split}
    wider = {(lung, finding) for lung in split for finding in placed}
    return replace(facts, related=frozenset(related - wider), partial=frozenset(partial | (related & wider)))


def surroundings(gallery: Gallery, surveys: Iterable[Survey]) -> Surroundings:
    """Return what a plan of variants must know about pictures."""
    by_id = {one.facts.image_id: one for one in surveys}

    def has_region(image_id: str, anatomy: str) -> bool:
        return anatomy in by_id[image_id].regions

    def apart(image_id: str, first: str, second: str) -> bool:
        return (min(first, second), max(first, second)) not in by_id[image_id].touching

    return Surroundings(has_region, apart, WHOLE, gallery.redraws)
