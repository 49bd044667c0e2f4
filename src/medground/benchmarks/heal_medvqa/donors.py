"""Whose pixels are pasted: a picture of the same view and another patient, without the finding there (or with it).

The paper says once that the donor lacks the diagnosis and once that a healthy anatomy is overlaid. Rules:

==================  ==================================================================================
``prefers_normal``  a picture in which nothing was found; else one whose region is clean; else one
                    that certainly lacks the finding there (default)
``normal``          only a picture in which nothing was found
``region_normal``   only one whose region is clean
``lacks_finding``   any that certainly lacks the finding there
==================  ==================================================================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Literal

from medground.benchmarks.heal_medvqa.relation import Pair
from medground.benchmarks.heal_medvqa.streams import fraction
from medground.benchmarks.heal_medvqa.table import ImageFacts, RelationTable

DonorRule = Literal["prefers_normal", "normal", "region_normal", "lacks_finding"]
_TIERS: dict[DonorRule, tuple[str, ...]] = {
    "prefers_normal": ("normal", "region_normal", "lacks_finding"),
    "normal": ("normal",),
    "region_normal": ("region_normal",),
    "lacks_finding": ("lacks_finding",),
}


class Donors:
    """Finds donors in the images of some splits; the choice hangs on the seed and the two images alone."""

    def __init__(
        self,
        table: RelationTable,
        has_region: Callable[[str, str], bool],
        rule: DonorRule = "prefers_normal",
        splits: Sequence[str] = ("test",),
    ) -> None:
        self._has_region, self._tiers = has_region, _TIERS[rule]
        self._pools: dict[tuple[object, ...], list[ImageFacts]] = defaultdict(list)
        for image in sorted(table.images, key=lambda image: image.image_id):
            if image.split in splits:
                self._file(image, table)

    def _file(self, image: ImageFacts, table: RelationTable) -> None:
        untold = bool(image.present_without_region or image.not_annotated)
        if not (image.related or image.partial or untold):
            self._pools[image.view, "normal"].append(image)
        touched = {anatomy for anatomy, _ in image.related | image.partial}
        for anatomy in table.anatomies:
            if anatomy not in touched and not untold:
                self._pools[image.view, "region_normal", anatomy].append(image)
        for pair in table.negatives(image):
            self._pools[image.view, "lacks_finding", *pair].append(image)
        for pair in image.related:
            self._pools[image.view, "has_finding", *pair].append(image)

    def lacking(self, region: str, absent: Pair | None, image: ImageFacts, seed: int) -> str | None:
        """Return a donor whose region certainly lacks a finding, or None.

        Args:
            region: anatomy to be pasted.
            absent: pair that must not hold; None: the region must be clean, whatever the rule.
            image: that is pasted into.
            seed: of the choice.
        """
        for tier in self._tiers if absent else ("normal", "region_normal"):
            key = {"normal": (), "region_normal": (region,), "lacks_finding": absent or ()}[tier]
            donor = self._pick((image.view, tier, *key), region, image, seed)
            if donor is not None:
                return donor
        return None

    def having(self, pair: Pair, image: ImageFacts, seed: int) -> str | None:
        """Return a donor in which a pair holds, or None."""
        return self._pick((image.view, "has_finding", *pair), pair[0], image, seed)

    def _pick(self, key: tuple[object, ...], region: str, image: ImageFacts, seed: int) -> str | None:
        pool = self._pools.get(key, [])
        start = int(fraction(seed, "donor", image.image_id, *key) * len(pool))
        for step in range(len(pool)):
            other = pool[(start + step) % len(pool)]
            stranger = other.patient_id != image.patient_id if image.patient_id else other is not image
            if stranger and other.image_id != image.image_id and self._has_region(other.image_id, region):
                return other.image_id
        return None
