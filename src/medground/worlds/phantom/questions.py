"""What can be asked about a phantom, in which words, and what is the right answer.

A question is a sentence, an answer is a sentence that the scene makes true. Benchmarks and the small chat model's
training take their wording from here, so that both speak one language of some seventy words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

CLOSED: Final = ("Does the {region} have {finding}?", "Is there {finding} present in the {region}?")
"""The two forms that HEAL-MedVQA prints."""

PARAPHRASES: Final = (
    "Does the {region} show {finding}?",
    "Can {finding} be seen in the {region}?",
    "Does the {region} suffer from {finding}?",
)
"""The same question in other words."""

OPEN: Final = (
    "Are there any abnormalities in the {region}?",
    "Are there any diseases in the {region}?",
    "What abnormalities does the {region} show?",
    "What abnormalities does the {region} suffer from?",
    "List all abnormalities in the {region}.",
)
WHERE: Final = "Where is {thing}?"
PRESENT: Final = "Is there {finding} in the picture?"
DESCRIBE: Final = "Describe the picture."
CLAIM: Final = "True: {sentence}?"
"""Asks whether a sentence of a caption is true of the picture."""

SEG: Final = "<SEG>"
"""The token that stands for a mask."""

NORMAL: Final = "normal"

REGIONS: Final = (
    "right upper lung",
    "right mid lung",
    "right lower lung",
    "left upper lung",
    "left mid lung",
    "left lower lung",
    "heart",
    "aorta",
    "right lung",
    "left lung",
)
"""What is asked about: eight anatomies, and both lungs as wholes for findings that no third holds."""

# fmt: off
WORDS: Final = (
    "a", "and", "are", "any", "answer", "at", "be", "can", "abnormalities", "aorta", "atelectasis", "cardiomegaly",
    "describe", "diseases", "does", "effusion", "from", "have", "heart", "in", "infiltration", "is", "left", "list",
    "locate", "location", "lower", "lung", "mass", "mid", "no", "nodule", "normal", "of", "picture", "pneumonia",
    "pneumothorax", "present", "right", "seen", "show", "shows", "suffer", "the", "there", "upper", "what", "where",
    "yes", "all", ",", ".", "?", ":",
)
# fmt: on
"""Every word of the sentences of this module."""


def answer_findings(findings: Sequence[str]) -> str:
    """Return the answer to an open question: the findings of a region in a fixed order, or ``normal``."""
    return ", ".join(finding.lower() for finding in findings) or NORMAL


def location(thing: str) -> str:
    """Return the sentence that says where something is; the mask stands for the place."""
    return f"the location of {thing.lower()} is at {SEG}."


def caption(places: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return the sentence that says what a picture shows.

    Args:
        places: findings in a fixed order, each with the regions that hold it; none: it is named without a place.

    Example:
        >>> caption([("Effusion", ["left lower lung"]), ("Nodule", [])])
        'the picture shows effusion in left lower lung, nodule'
    """
    return f"the picture shows {', '.join(_clauses(places)) or 'no abnormalities'}"


def _clauses(places: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    for finding, regions in places:
        yield f"{finding.lower()} in {' and '.join(regions)}" if regions else finding.lower()
