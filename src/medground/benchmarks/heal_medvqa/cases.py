"""A dataset's cases as a gallery: its boxes or masks held against anatomy masks of a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from medground.benchmarks.heal_medvqa.gallery import GalleryPicture, Survey, survey_of
from medground.benchmarks.heal_medvqa.lesions import lesions_of
from medground.benchmarks.heal_medvqa.masks import ANATOMIES, LUNGS, Mask, MaskSource, resized
from medground.benchmarks.heal_medvqa.relation import RelationRule, place
from medground.benchmarks.heal_medvqa.streams import fraction
from medground.benchmarks.heal_medvqa.table import facts_of
from medground.datasets.base import Case, Dataset, picture_of
from medground.errors import DataError, DatasetError
from medground.imaging.geometry import resize_pixels
from medground.imaging.reading import Radiograph, image_size

_WORKING = 512  # longest side at which regions without a size of their own are made


@dataclass(frozen=True, eq=False)
class CaseGallery:
    """Cases of one dataset with anatomy masks.

    Attributes:
        dataset: any of ours.
        source: of the anatomy masks.
        rule: of the relation.
        longest: side that pictures are shrunk to before they are pasted and shown; 0: as they are.
        train_share: patients whose cases are counted over and never asked, so that counts and questions are disjoint.
        seed: of that cut.
    """

    dataset: Dataset
    source: MaskSource
    rule: RelationRule
    longest: int = 512
    train_share: float = 0.3
    seed: int = 0

    redraws = False

    @property
    def statement(self) -> str:
        """Where the anatomies come from."""
        return self.source.statement

    @property
    def findings(self) -> Sequence[str]:
        """The dataset's classes."""
        return tuple(self.dataset.findings)

    @property
    def words(self) -> Mapping[str, str]:
        """The dataset's words for its classes, where a name is an abbreviation."""
        return self.dataset.info.prompts

    @property
    def anatomies(self) -> Sequence[str]:
        """Those of the eight and the two lungs that some case has a mask of."""
        there = {anatomy for survey in self.surveys() for anatomy in survey.regions}
        return tuple(anatomy for anatomy in (*ANATOMIES, *LUNGS) if anatomy in there)

    def surveys(self) -> Sequence[Survey]:
        """Every case with masks. Reads masks and headers, decodes no picture.

        Raises:
            DatasetError: no case has a mask.
        """
        return self._surveys

    @cached_property
    def _cases(self) -> Mapping[str, Case]:
        return {case.case_id: case for case in self.dataset.cases()}

    @cached_property
    def _surveys(self) -> Sequence[Survey]:
        surveys = [survey for case in self._cases.values() if (survey := self._survey(case)) is not None]
        if not surveys:
            raise DatasetError(
                "no case of the dataset has an anatomy mask",
                where=self.dataset.name,
                expected="masks named by the dataset's case ids",
                got=f"{len(self._cases)} cases, such as {', '.join(list(self._cases)[:3])}",
            )
        return surveys

    def _survey(self, case: Case) -> Survey | None:
        masks = self._masks(case)
        if not masks:
            return None
        shape = next(iter(masks.values())).shape
        size = (shape[1], shape[0])
        lesions = [
            lesion
            for finding in self.findings
            if finding in case.regions
            for lesion in lesions_of(finding, case.regions[finding], size)
        ]
        placed = place(lesions, masks, self.rule)
        counted = fraction(self.seed, "train", case.patient_id or case.case_id) < self.train_share
        facts = facts_of(
            case.case_id,
            placed,
            case.labels,
            self.findings,
            source=self.dataset.name,
            split="train" if counted else "test",
            patient_id=case.patient_id,
            view=case.view,
        )
        return survey_of(facts, placed, masks)

    def _masks(self, case: Case) -> Mapping[str, Mask]:
        try:
            width, height = image_size(case.image)
        except DataError:  # a picture that cannot be read fails when it is loaded, as the run's on_error says
            return {}
        share = min(1.0, _WORKING / max(width, height))
        return self.source.masks(case.case_id, (max(1, round(width * share)), max(1, round(height * share))))

    def picture(self, image_id: str) -> GalleryPicture:
        """Return a case's picture with its masks, shrunk to the longest side."""
        case = self._cases[image_id]
        read = picture_of(case)
        size = self._size(read)
        masks = {anatomy: resized(mask, size) for anatomy, mask in self._masks(case).items()}
        lesions = {
            finding: case.regions[finding].mask_at(size, resize="centre")
            for finding in self.findings
            if finding in case.regions
        }
        return GalleryPicture(_shrunk(read, size), masks, lesions)

    def _size(self, read: Radiograph) -> tuple[int, int]:
        width, height = read.size
        share = min(1.0, self.longest / max(width, height)) if self.longest else 1.0
        return max(1, round(width * share)), max(1, round(height * share))

    def without(self, image_id: str, finding: str) -> Radiograph:
        """Refuse: a real picture cannot be drawn again.

        Raises:
            DatasetError: always.
        """
        raise DatasetError("a real picture cannot be drawn without a finding", where=image_id, got=finding)

    def files(self, image_id: str) -> tuple[Path, ...]:
        """Return the picture's file."""
        return (self._cases[image_id].image,)

    def fingerprint(self) -> str:
        """Return what surveys and pictures depend on."""
        parts = (self.dataset.fingerprint(), self.source.fingerprint(), self.rule, self.longest, self.train_share)
        return repr((*parts, self.seed))


def _shrunk(read: Radiograph, size: tuple[int, int]) -> Radiograph:
    from dataclasses import replace

    if size == read.size:
        return read
    pixels = resize_pixels(read.pixels, size, "area")
    return replace(read, pixels=pixels, steps=(*read.steps, f"shrunk to {size[0]} x {size[1]}"))
