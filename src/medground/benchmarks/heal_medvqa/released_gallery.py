"""The circulating release as a dataset and a gallery: its own questions are asked, and perturbed by what it tells.

A release says of a picture what its own questions say and nothing more: pairs of rightful yes hold, pairs of rightful
no and all findings of a normal region do not, and every other pair is unknown, so it is neither asked nor swapped to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import ClassVar, Literal

from medground.benchmarks.heal_medvqa.gallery import GalleryPicture, Survey, survey_of
from medground.benchmarks.heal_medvqa.masks import ANATOMIES, LUNGS, Mask, resized
from medground.benchmarks.heal_medvqa.questions import Question, negative_kind
from medground.benchmarks.heal_medvqa.relation import Pair, RelationRule, place
from medground.benchmarks.heal_medvqa.released import Release, Released, picture_bytes, read_release
from medground.benchmarks.heal_medvqa.table import ImageFacts
from medground.datasets.base import Case, DatasetInfo
from medground.errors import DatasetError
from medground.identity import file_hash, fingerprint_of
from medground.imaging.geometry import resize_pixels
from medground.imaging.reading import Radiograph, decode
from medground.readers.base import Question as Query
from medground.readers.findings import Findings


class ReleasedDataset:
    """The user's own copy of the release: ``name: medground.benchmarks.heal_medvqa.released_gallery:ReleasedDataset``.

    Args:
        root: the folder of shards named ``train*`` and ``test*``.
        order: of the pixels in run lengths; None: told from the masks.
    """

    name: ClassVar[str] = "heal_medvqa_release"
    info: ClassVar[DatasetInfo] = DatasetInfo(
        title="HEAL-MedVQA, as it circulates",
        findings=(),
        licence="pictures of MIMIC-CXR and VinDr-CXR, under PhysioNet's terms whatever a card states",
        redistributable=False,
        citation="Localizing Before Answering, IJCAI 2025, arXiv 2505.00744",
        obtain="a Parquet copy of the user's",
        layout=("train-*.parquet, test-*.parquet: questions, answers, coded masks, embedded pictures",),
    )

    def __init__(self, *, root: Path, order: Literal["row", "column"] | None = None) -> None:
        self.root, self.order = Path(root).expanduser(), order

    @cached_property
    def release(self) -> Release:
        """Its rows.

        Raises:
            DatasetError: it cannot be read, or no mask tells the order of the pixels.
        """
        release = read_release(self.root, order=self.order)
        if release.order is None:
            raise DatasetError(
                "no mask of the release tells how its pixels are ordered",
                where=self.root,
                fix="order: row, or order: column",
            )
        return release

    @cached_property
    def findings(self) -> Sequence[str]:
        """The findings that closed questions name, sorted."""
        return tuple(sorted({row.finding for row in self.release.rows if row.finding}))

    def cases(self) -> Sequence[Case]:
        """One case a picture; the file is the shard that it is embedded in."""
        shards = {row.image_id: row.shard for row in self.release.rows}
        return [Case(image, self.root / shard) for image, shard in shards.items()]

    def fingerprint(self) -> str:
        """A hash of the shards."""
        shards = sorted({row.shard for row in self.release.rows})
        return fingerprint_of([(shard, file_hash(self.root / shard)) for shard in shards], self.release.order)


@dataclass(frozen=True, eq=False)
class ReleasedGallery:
    """A release as a gallery.

    Attributes:
        dataset: the user's copy.
        longest: side that pictures are shrunk to before they are pasted and shown; 0: as they are.
    """

    dataset: ReleasedDataset
    longest: int = 512

    redraws = False
    words: ClassVar[Mapping[str, str]] = {}

    @property
    def statement(self) -> str:
        """Where the anatomies come from."""
        release = self.dataset.release
        read = f"anatomies are the masks of the release, run lengths read along {release.order}s"
        unknown = release.counts["closed questions of no known form"]
        left = f"; {unknown} closed questions of no known form are not asked" if unknown else ""
        return f"{read}; of a picture is known what its own questions tell{left}"

    @cached_property
    def anatomies(self) -> Sequence[str]:
        """The usual ones first, then those of other names."""
        there = {named(row) for row in self._rows}
        usual = [anatomy for anatomy in (*ANATOMIES, *LUNGS) if anatomy in there]
        return (*usual, *sorted(there - set(usual)))

    @property
    def findings(self) -> Sequence[str]:
        """Those of its closed questions."""
        return self.dataset.findings

    @cached_property
    def _rows(self) -> Sequence[Released]:
        return [row for row in self.dataset.release.rows if row.finding or row.kind.startswith("open")]

    @cached_property
    def _by_image(self) -> Mapping[str, Sequence[Released]]:
        rows: dict[str, list[Released]] = defaultdict(list)
        for row in self._rows:
            rows[row.image_id].append(row)
        return rows

    def surveys(self) -> Sequence[Survey]:
        """Every picture's survey, in the order of the release."""
        return self._surveys

    @cached_property
    def _surveys(self) -> Sequence[Survey]:
        return [self._survey(image, rows) for image, rows in self._by_image.items()]

    def _survey(self, image: str, rows: Sequence[Released]) -> Survey:
        holds: set[Pair] = set()
        absent: set[Pair] = set()
        for row in rows:
            if row.kind.startswith("closed"):
                (holds if row.kind == "closed_yes" else absent).add((named(row), row.finding))
            elif row.kind == "open_normal":
                absent |= set(product([named(row)], self.findings))
            else:
                holds |= set(product([named(row)], self._stated(row)))
        every = set(product(self.anatomies, self.findings))
        facts = ImageFacts(
            image, frozenset(holds), frozenset(every - holds - absent), source=self.dataset.name, split=rows[0].split
        )
        masks = self._masks(image)
        return survey_of(facts, place((), masks, RelationRule()), masks)

    def _stated(self, row: Released) -> tuple[str, ...]:
        """Return the findings that the answer to an open question states, of those that closed ones name."""
        read = Findings().read(Query(row.question, region=named(row), vocabulary=tuple(self.findings)), row.answer)
        return tuple(read.value or ()) if row.kind == "open_abnormal" else ()

    def questions(self) -> list[Question]:
        """Return the questions of its test shards in their own words; findings of open answers as a reader reads them.

        Those of which a question id stands twice are told apart by a number.
        """
        facts = {survey.facts.image_id: survey.facts for survey in self.surveys()}
        asked: list[Question] = []
        seen: dict[str, int] = {}
        for row in self._rows:
            if row.split != "test":
                continue
            number = seen[row.question_id] = seen.get(row.question_id, -1) + 1
            pair = (named(row), row.finding)
            asked.append(
                Question(
                    row.question_id if not number else f"{row.question_id}+{number}",
                    row.image_id,
                    row.kind,
                    *pair,
                    findings=() if row.finding else self._stated(row),
                    negative=negative_kind(facts[row.image_id], pair) if row.kind == "closed_no" else "",
                    sampler="release" if row.kind == "closed_no" else "",
                    text=" ".join(row.question.split()),
                )
            )
        return asked

    def picture(self, image_id: str) -> GalleryPicture:
        """Return a picture with the masks of its questions; where lesions are is not told."""
        row = self._by_image[image_id][0]
        shown = decode(picture_bytes(self.dataset.root / row.shard, row.question_id, image_id))
        read = Radiograph(shown.pixels, image_id, None, row.shard, shown.value_range, shown.steps)
        width, height = read.size
        share = min(1.0, self.longest / max(width, height)) if self.longest else 1.0
        size = max(1, round(width * share)), max(1, round(height * share))
        if size != read.size:
            step = f"shrunk to {size[0]} x {size[1]}"
            read = replace(read, pixels=resize_pixels(read.pixels, size, "area"), steps=(*read.steps, step))
        return GalleryPicture(
            read, {anatomy: resized(mask, size) for anatomy, mask in self._masks(image_id).items()}, {}
        )

    def _masks(self, image: str) -> dict[str, Mask]:
        """Return the masks of a picture, those of the first question about each anatomy, brought to one size."""
        order = self.dataset.release.order
        assert order is not None
        masks: dict[str, Mask] = {}
        for row in self._by_image[image]:
            if not row.mask.is_empty and named(row) not in masks:
                masks[named(row)] = row.mask.read(order)
        if not masks:
            return {}
        height, width = max((mask.shape for mask in masks.values()), key=lambda shape: shape[0] * shape[1])
        return {anatomy: resized(mask, (width, height)) for anatomy, mask in masks.items()}

    def without(self, image_id: str, finding: str) -> Radiograph:
        """Refuse: a real picture cannot be drawn again.

        Raises:
            DatasetError: always.
        """
        raise DatasetError("a real picture cannot be drawn without a finding", where=image_id, got=finding)

    def files(self, image_id: str) -> tuple[Path, ...]:
        """Return the shard that holds the picture."""
        return (self.dataset.root / self._by_image[image_id][0].shard,)

    def fingerprint(self) -> str:
        """Return what surveys and pictures depend on."""
        return repr((self.dataset.fingerprint(), self.longest, Findings().fingerprint()))


def named(row: Released) -> str:
    """Return the anatomy of a row as it is written here: lower case, without an article, ``mid`` for ``middle``."""
    words = " ".join(row.anatomy.lower().split()).removeprefix("the ")
    return words.replace(" middle ", " mid ")
