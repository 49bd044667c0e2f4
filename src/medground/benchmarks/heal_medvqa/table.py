"""What is known about findings and anatomies over all images: the table that questions are drawn from.

An :class:`ImageFacts` says of one image which pairs (anatomy, finding) hold, and which may not be asked because nobody
can tell: the finding touches the anatomy without lying on it, lies on no anatomy at all, or was not annotated. A
:class:`RelationTable` holds the images of a build and counts over its *train* split, which samplers and the textual
perturbation read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from medground.benchmarks.heal_medvqa.relation import Pair, PlacedLesion
from medground.errors import DatasetError

Dropped = Mapping[str, frozenset[Pair]]
"""Reason -> pairs that may not be asked: ``not_annotated``, ``partial_overlap``, ``present_without_region``."""


@dataclass(frozen=True)
class ImageFacts:
    """What is known about one image.

    Attributes:
        image_id: unique in the table.
        related: pairs that hold: the finding lies on the anatomy.
        partial: pairs that touch without being related; only the pair itself may not be asked.
        present_without_region: findings that are in the image but on no anatomy; asked of no anatomy.
        not_annotated: findings that nobody said yes or no to; asked of no anatomy.
        source: the dataset, for scores by source.
        split: ``train`` or ``test`` (``val`` counts as test).
        patient_id: None: unknown, the image is a patient of its own.
        view: projection as the dataset writes it.
    """

    image_id: str
    related: frozenset[Pair] = frozenset()
    partial: frozenset[Pair] = frozenset()
    present_without_region: frozenset[str] = frozenset()
    not_annotated: frozenset[str] = frozenset()
    source: str = ""
    split: str = "test"
    patient_id: str | None = None
    view: str | None = None

    @property
    def findings(self) -> frozenset[str]:
        """Findings that lie on some anatomy."""
        return frozenset(finding for _, finding in self.related)

    def on(self, anatomy: str) -> tuple[str, ...]:
        """Return the findings on an anatomy, sorted."""
        return tuple(sorted(finding for a, finding in self.related if a == anatomy))

    def touching(self, anatomy: str) -> tuple[str, ...]:
        """Return the findings that touch an anatomy without lying on it, sorted."""
        return tuple(sorted(finding for a, finding in self.partial if a == anatomy))


@dataclass(frozen=True)
class RelationTable:
    """All images of a build over one list of anatomies and one of findings.

    Raises:
        DatasetError: an image id twice, or a pair outside the two lists.
    """

    anatomies: tuple[str, ...]
    findings: tuple[str, ...]
    images: tuple[ImageFacts, ...]
    _known: Mapping[str, ImageFacts] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = {image.image_id: image for image in self.images}
        if len(known) != len(self.images):
            twice = [name for name, n in Counter(image.image_id for image in self.images).items() if n > 1]
            raise DatasetError("an image stands twice in a relation table", where=twice[0], expected="unique ids")
        pairs = set(self.pairs)
        for image in self.images:
            strange = (image.related | image.partial) - pairs
            if strange:
                raise DatasetError(
                    "an image names a pair outside the table",
                    where=image.image_id,
                    expected=f"anatomies {', '.join(self.anatomies)}; findings {', '.join(self.findings)}",
                    got=sorted(strange)[0],
                )
        object.__setattr__(self, "_known", known)

    def __getitem__(self, image_id: str) -> ImageFacts:
        return self._known[image_id]

    @property
    def pairs(self) -> list[Pair]:
        """Every (anatomy, finding)."""
        return [(anatomy, finding) for anatomy in self.anatomies for finding in self.findings]

    @cached_property
    def train(self) -> tuple[ImageFacts, ...]:
        """The images that counts are made over."""
        return tuple(image for image in self.images if image.split == "train")

    @cached_property
    def image_frequency(self) -> Counter[str]:
        """Finding -> number of train images that it lies on some anatomy of."""
        return Counter(finding for image in self.train for finding in image.findings)

    @cached_property
    def pair_frequency(self) -> Counter[Pair]:
        """Pair -> number of train images that it holds in."""
        return Counter(pair for image in self.train for pair in image.related)

    @cached_property
    def together(self) -> Counter[tuple[str, str]]:
        """Ordered pair of two findings -> number of train images that hold both."""
        counts: Counter[tuple[str, str]] = Counter()
        for image in self.train:
            counts.update((a, b) for a in image.findings for b in image.findings if a != b)
        return counts

    def dropped(self, image: ImageFacts) -> Dropped:
        """Return the pairs of an image that may not be asked, each under its first reason."""
        rest = set(self.pairs) - image.related
        unread = {pair for pair in rest if pair[1] in image.not_annotated}
        partial = (rest & image.partial) - unread
        nowhere = {pair for pair in rest if pair[1] in image.present_without_region} - unread - partial
        return {
            "not_annotated": frozenset(unread),
            "partial_overlap": frozenset(partial),
            "present_without_region": frozenset(nowhere),
        }

    def negatives(self, image: ImageFacts) -> frozenset[Pair]:
        """Return the pairs that certainly do not hold in an image."""
        rest = set(self.pairs) - image.related
        return frozenset(rest.difference(*self.dropped(image).values()))

    def valid_pairs(self) -> frozenset[Pair]:
        """Return the pairs that hold in some train image: "valid co-occurring" terms."""
        return frozenset(self.pair_frequency)


@dataclass(frozen=True)
class OpenQuestion:
    """An open question that can be asked of one anatomy.

    Attributes:
        anatomy: asked about.
        findings: that lie on it, sorted; none: ``open_normal``.
        partial: that touch it.
        doubtful: nothing lies on it, but something touches it (or cannot be told): calling it normal is a guess.
    """

    anatomy: str
    findings: tuple[str, ...]
    partial: tuple[str, ...]
    doubtful: bool

    @property
    def kind(self) -> str:
        """``open_abnormal`` or ``open_normal``."""
        return "open_abnormal" if self.findings else "open_normal"


def open_questions(image: ImageFacts, anatomies: Iterable[str]) -> list[OpenQuestion]:
    """Return one open question an anatomy; doubtful ones are marked, to be left out and counted."""
    questions = []
    for anatomy in anatomies:
        findings, partial = image.on(anatomy), image.touching(anatomy)
        questions.append(OpenQuestion(anatomy, findings, partial, not findings and bool(partial)))
    return questions


def facts_of(
    image_id: str,
    placed: PlacedLesion,
    labels: Mapping[str, bool | None],
    findings: Sequence[str],
    **about: str | None,
) -> ImageFacts:
    """Return the facts of one image from where its lesions lie and what its labels say.

    A finding that is labelled present (or has lesions) but lies on no anatomy is ``present_without_region``; one
    that has neither label nor lesion is ``not_annotated``.

    Args:
        image_id: of the image.
        placed: what the relation rule says.
        labels: finding -> present, absent, or None for not annotated; a missing one is not annotated.
        findings: the vocabulary.
        about: ``source``, ``split``, ``patient_id``, ``view``.
    """
    vocabulary = set(findings)
    related = frozenset(pair for pair in placed.related if pair[1] in vocabulary)
    on_some = {finding for _, finding in related}
    seen = {finding for finding in placed.findings if finding in vocabulary}
    present = seen | {finding for finding in findings if labels.get(finding) is True}
    return ImageFacts(
        image_id,
        related,
        frozenset(pair for pair in placed.partial if pair[1] in vocabulary),
        frozenset(present - on_some),
        frozenset(f for f in findings if f not in present and labels.get(f) is None),
        source=about.get("source") or "",
        split=about.get("split") or "test",
        patient_id=about.get("patient_id"),
        view=about.get("view"),
    )
