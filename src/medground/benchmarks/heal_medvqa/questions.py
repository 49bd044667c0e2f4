"""A question and its words.

The paper prints two closed forms and shows several open ones; the further wordings are ours. Which form an item gets
hangs on its id alone, never on its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from medground.benchmarks.heal_medvqa.relation import Pair
from medground.benchmarks.heal_medvqa.table import ImageFacts

Kind = Literal["closed_yes", "closed_no", "open_abnormal", "open_normal"]

CLOSED = ("Does the {anatomy} have {finding}?", "Is there {finding} present in the {anatomy}?")
"""The two printed forms."""
PARAPHRASES = ("Does the {anatomy} show {finding}?", "Can {finding} be seen in the {anatomy}?")
"""Further closed wordings, ours."""
OPEN = (
    "Are there any abnormalities in the {anatomy}?",
    "What abnormalities does the {anatomy} show?",
    "List all abnormalities in the {anatomy}.",
)


@dataclass(frozen=True)
class Question:
    """One question about one image, with its answer.

    Attributes:
        question_id: ``<image>#<n>``, unique in a build.
        image_id: of the picture.
        kind: closed or open, and its class.
        anatomy: asked about.
        finding: asked about; empty for open questions.
        findings: those on the anatomy (open questions).
        wording: index into the forms.
        negative: for ``closed_no``: what is in the picture instead; see :func:`negative_kind`.
        sampler: for ``closed_no``: which sampler drew it.
        text: its words, where they are not made from a form.
    """

    question_id: str
    image_id: str
    kind: Kind
    anatomy: str
    finding: str = ""
    findings: tuple[str, ...] = ()
    wording: int = 0
    negative: str = ""
    sampler: str = ""
    text: str = ""

    @property
    def is_open(self) -> bool:
        """Whether findings are asked for, not yes or no."""
        return self.kind.startswith("open")

    @property
    def gold(self) -> str:
        """``yes`` or ``no``; for open questions the findings, joined, or ``normal``."""
        if self.is_open:
            return ", ".join(self.findings) or "normal"
        return "yes" if self.kind == "closed_yes" else "no"

    @property
    def pair(self) -> Pair:
        """``(anatomy, finding)``."""
        return self.anatomy, self.finding


def worded(anatomy: str, finding: str, wording: int, words: Mapping[str, str] | None = None) -> str:
    """Return the closed question in one of the two printed forms (0, 1) or of ours (2, 3).

    Args:
        anatomy: asked about.
        finding: its name.
        wording: which form.
        words: finding -> how it is written in a sentence; default: lower case.
    """
    forms = CLOSED + PARAPHRASES
    return forms[wording % len(forms)].format(anatomy=anatomy, finding=in_words(finding, words))


def worded_open(anatomy: str, wording: int) -> str:
    """Return the open question in one of its forms."""
    return OPEN[wording % len(OPEN)].format(anatomy=anatomy)


def in_words(finding: str, words: Mapping[str, str] | None = None) -> str:
    """Return a finding as it stands in a sentence: the dataset's words, or its name in lower case.

    Names in capitals throughout (``ILD``) stay.
    """
    if words and finding in words:
        return words[finding]
    return " ".join(w if w.isupper() and len(w) > 1 else w.lower() for w in finding.replace("_", " ").split())


def negative_kind(image: ImageFacts, pair: Pair) -> str:
    """Return what makes a "no" hard: the finding is elsewhere, another finding is here, both, or neither."""
    elsewhere = pair[1] in image.findings or pair[1] in image.present_without_region
    here = bool(image.on(pair[0]))
    if elsewhere and here:
        return "elsewhere_and_other_here"
    return "elsewhere" if elsewhere else "other_here" if here else "clean"
