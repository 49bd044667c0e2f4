"""Another dataset, changed a little: does a model still find what it found?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar

from medground.datasets.base import Case, Dataset, DatasetInfo
from medground.datasets.lazy import LazyRegions, Maker, as_regions
from medground.identity import fingerprint_of
from medground.imaging.augmenting import Augmentation, Kind
from medground.imaging.regions import Region

MARK = "@"
"""Between a case's id in the other dataset and what was done to it: predictions made elsewhere never fit by mistake."""


class Augmented:
    """Every picture of another dataset with one small change; regions and words move along.

    Where the run holds the unchanged dataset too, XBench prints how much each figure changes (``tables/robustness``).

    Args:
        of: the dataset: ``{name: ..., ...}`` as in a run file.
        change: ``brightness``, ``contrast``, ``noise``, ``turn``, ``shift``, or ``flip``, which exchanges left and
            right in pictures, regions and the names of findings.
        amount: how much: added to every value (.1), added to a contrast of 1 (.25), standard deviation of the noise
            (.05), degrees (5), share of the shorter side (.05); in brackets what is taken where nothing is given.
        seed: of noise and of directions, which are drawn for each case.
    """

    name: ClassVar[str] = "augmented"
    parts: ClassVar[Mapping[str, str]] = {"of": "dataset"}
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="augmented",
        findings=(),
        licence="that of the dataset that it changes",
        redistributable=False,
        citation="none: as the dataset that it changes",
        obtain="of: {name: any dataset}",
    )

    def __init__(self, *, of: Any, change: Kind, amount: float | None = None, seed: int = 0) -> None:
        self.changes: Dataset = of.build() if hasattr(of, "build") else of
        self.augmentation = Augmentation(change, amount, seed)

    @property
    def findings(self) -> Sequence[str]:
        """Those of the dataset that is changed."""
        return self.changes.findings

    def cases(self) -> Sequence[Case]:
        """Every case of the other dataset, in its order, under ``ID@CHANGE``."""
        return self._cases

    def fingerprint(self) -> str:
        """A hash over the other dataset's and the change."""
        return fingerprint_of(self.changes.fingerprint(), self.augmentation.key)

    def plain_id(self, case_id: str) -> str:
        """Return a case's id in the other dataset."""
        return case_id.removesuffix(f"{MARK}{self.augmentation.kind}")

    @cached_property
    def _cases(self) -> Sequence[Case]:
        return [self._changed(case) for case in self.changes.cases()]

    def _changed(self, case: Case) -> Case:
        how, name = self.augmentation, f"{case.case_id}{MARK}{self.augmentation.kind}"
        known = set(self.findings)
        # A finding that names a side is true of the other one now; where nobody asked for that one, nothing is known.
        labels = {how.words(f): label for f, label in case.labels.items() if f not in known or how.words(f) in known}
        return replace(
            case,
            case_id=name,
            view=None if case.view is None else how.words(case.view),
            labels=labels,
            regions=_moved(case.regions, how, name) if how.moves else case.regions,
            notes=tuple(how.words(note) for note in case.notes),
            augmentation=how,
        )


def _moved(regions: Mapping[str, Region], how: Augmentation, case_id: str) -> Mapping[str, Region]:
    """Return regions that are moved when they are looked at, under the words that are true now."""

    def key(finding: str) -> str:
        held = regions.fingerprint(finding) if isinstance(regions, LazyRegions) else regions[finding].fingerprint()
        return f"{held} {how.key} {case_id}"

    return as_regions({how.words(f): Maker(partial(_made, regions, f, how, case_id), key(f)) for f in regions})


def _made(regions: Mapping[str, Region], finding: str, how: Augmentation, case_id: str) -> Region:
    return how.region(regions[finding], case_id)
