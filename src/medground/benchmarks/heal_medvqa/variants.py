"""What is done to a question that holds: changes that should turn "yes" into "no", and controls that should not.

======================  ======  ==============================================================================
variant                 expect  what changes
======================  ======  ==============================================================================
``tpt_anatomy``         no      the anatomy, for one where the finding certainly is not
``tpt_disease``         no      the finding, for one that certainly is not on that anatomy
``vpt``                 no      the anatomy's pixels, from a donor without the finding there
``vpt_lung``            no      the whole lung's pixels, where a third of it was asked about
``vpt_redrawn``         no      the same picture drawn again without the finding (phantoms)
``paraphrase``          yes     the wording alone
``swap_to_positive``    yes     the pair, for another one that holds in this picture
``positive_donor``      yes     the anatomy's pixels, from a donor that has the finding there
``own_region_back``     yes     the anatomy's pixels, cut out and pasted back: what the paste itself does
``other_region``        yes     the pixels of another anatomy, which the finding does not touch
======================  ======  ==============================================================================

Swapped terms are "valid co-occurring": the pair holds in some train image. A variant that cannot be made is listed with
its reason, never replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from medground.benchmarks.heal_medvqa.donors import DonorRule, Donors
from medground.benchmarks.heal_medvqa.questions import Question
from medground.benchmarks.heal_medvqa.relation import Pair
from medground.benchmarks.heal_medvqa.streams import drawn
from medground.benchmarks.heal_medvqa.table import ImageFacts, RelationTable

Expected = Literal["yes", "no"]

FLIPS = ("tpt_anatomy", "tpt_disease", "vpt", "vpt_lung", "vpt_redrawn")
CONTROLS = ("paraphrase", "swap_to_positive", "positive_donor", "own_region_back", "other_region")
VARIANTS = FLIPS + CONTROLS
PICTURED = ("vpt", "vpt_lung", "vpt_redrawn", "positive_donor", "own_region_back", "other_region")
"""Variants that change the picture."""


@dataclass(frozen=True)
class Variant:
    """One change of one question.

    Attributes:
        name: see above.
        anatomy: asked about after the change.
        finding: asked about after the change.
        wording: form of the question.
        region: anatomy whose pixels are replaced; empty: the picture stays.
        donor: image that they come from; the question's own for ``own_region_back``.
    """

    name: str
    anatomy: str
    finding: str
    wording: int
    region: str = ""
    donor: str = ""

    @property
    def expected(self) -> Expected:
        """The answer that a model which looks at the region gives."""
        return "no" if self.name in FLIPS else "yes"


@dataclass(frozen=True)
class Planned:
    """A question with its variants.

    Attributes:
        question: the base.
        variants: that can be made, in the order of ``VARIANTS``.
        not_made: name -> why there is none.
    """

    question: Question
    variants: tuple[Variant, ...] = ()
    not_made: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Surroundings:
    """What the plan must know about pictures, beside the table.

    Attributes:
        has_region: ``(image, anatomy)`` -> whether there is a mask with pixels.
        apart: ``(image, anatomy, anatomy)`` -> whether their masks share no pixel.
        whole: anatomy -> the larger one that holds it (a third of a lung -> the lung).
        redrawn: whether pictures can be drawn again without a finding.
    """

    has_region: Callable[[str, str], bool]
    apart: Callable[[str, str, str], bool]
    whole: Mapping[str, str] = field(default_factory=dict)
    redrawn: bool = False


class Planner:
    """Plans variants over one table; every choice hangs on the seed and the question's id."""

    def __init__(
        self,
        table: RelationTable,
        around: Surroundings,
        *,
        seed: int = 0,
        donor: DonorRule = "prefers_normal",
        splits: Sequence[str] = ("test",),
    ) -> None:
        self.table, self.around, self.seed = table, around, seed
        self.donors = Donors(table, around.has_region, donor, splits)

    def plan(self, question: Question) -> Planned:
        """Return a question with its variants; only those that hold have any."""
        if question.kind != "closed_yes":
            return Planned(question)
        image = self.table[question.image_id]
        variants, missing = [], {}
        for name in VARIANTS:
            result = self._textual(name, question, image) or self._pictured(name, question, image)
            if isinstance(result, Variant):
                variants.append(result)
            elif result:
                missing[name] = result
        return Planned(question, tuple(variants), missing)

    def _textual(self, name: str, question: Question, image: ImageFacts) -> Variant | str:
        if name == "paraphrase":
            return Variant(name, *question.pair, question.wording + 1)
        if name not in ("tpt_anatomy", "tpt_disease", "swap_to_positive"):
            return ""
        pair = self._swapped(name, question, image)
        if pair is None:
            return {
                "tpt_anatomy": "the finding holds, or never occurs, on every other anatomy",
                "tpt_disease": "every other finding holds, or never occurs, on this anatomy",
                "swap_to_positive": "nothing else holds in this picture",
            }[name]
        return Variant(name, *pair, question.wording)

    def _swapped(self, name: str, question: Question, image: ImageFacts) -> Pair | None:
        if name == "swap_to_positive":
            choices = image.related - {question.pair}
        else:
            place = 1 if name == "tpt_anatomy" else 0  # what stays
            absent = self.table.negatives(image) & self.table.valid_pairs()
            choices = frozenset(pair for pair in absent if pair[place] == question.pair[place])
        chosen = drawn(dict.fromkeys(choices, 1.0), 1, self.seed, question.question_id, name)
        return chosen[0] if chosen else None

    def _pictured(self, name: str, question: Question, image: ImageFacts) -> Variant | str:
        region = question.anatomy
        if name == "vpt_redrawn":
            return Variant(name, *question.pair, question.wording) if self.around.redrawn else ""
        if name == "vpt_lung":
            region = self.around.whole.get(region, "")
            if not region:
                return "the anatomy is no part of a lung"
        if name == "other_region":
            region = self._elsewhere(question, image)
            if not region:
                return "every other anatomy touches the finding or the region"
        if not self.around.has_region(question.image_id, region):
            return f"there is no mask of the {region}"
        if name == "own_region_back":
            donor: str | None = question.image_id
        elif name == "positive_donor":
            donor = self.donors.having(question.pair, image, self.seed)
        else:
            absent = (region, question.finding) if name != "other_region" else None
            donor = self.donors.lacking(region, absent, image, self.seed)
        if donor is None:
            return "no donor of the same view and another patient"
        return Variant(name, *question.pair, question.wording, region, donor)

    def _elsewhere(self, question: Question, image: ImageFacts) -> str:
        """Return an anatomy apart from the one asked about that the finding does not touch, or nothing."""
        touched = {a for a, f in image.related | image.partial if f == question.finding}
        choices = {
            anatomy: 1.0
            for anatomy in self.table.anatomies
            if anatomy not in touched
            and self.around.has_region(question.image_id, anatomy)
            and self.around.apart(question.image_id, anatomy, question.anatomy)
        }
        chosen = drawn(choices, 1, self.seed, question.question_id, "elsewhere")
        return chosen[0] if chosen else ""
