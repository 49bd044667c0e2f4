"""The book of observations of MedKLIP and MAVL: 75 descriptions in a fixed order, which only the authors may pass on.

The network is always asked about the whole book, because the queries see each other. A finding is looked up by its
position; the key at a position is not relied on (one of them is misspelt in a published book). A finding that the book
lacks, or that the user words anew, is appended, which changes the other answers a little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medground.errors import ModelError, did_you_mean
from medground.models.common.text import Prompts, key_of

POSITIONS = {
    "normal": 0,
    "clear": 1,
    "effusion": 8,
    "opacity": 9,
    "pneumothorax": 10,
    "edema": 11,
    "atelectasis": 12,
    "consolidation": 14,
    "enlarge": 17,
    "pneumonia": 20,
    "cardiomegaly": 24,
    "fracture": 25,
    "calcification": 30,
    "nodule": 38,
    "thicken": 43,
    "emphysema": 52,
    "mass": 54,
    "infiltrate": 56,
    "hernia": 59,
    "lesion": 65,
    "tail_abnorm_obs": 73,
    "excluded_obs": 74,
}
# Names that datasets use for the book's observations. Fibrosis is the authors' own choice for ChestX-ray14.
OBSERVATIONS = {
    "pleural effusion": "effusion",
    "airspace opacity": "opacity",
    "lung opacity": "opacity",
    "enlarged cardiomediastinum": "enlarge",
    "rib fracture": "fracture",
    "clavicle fracture": "fracture",
    "pleural thickening": "thicken",
    "infiltration": "infiltrate",
    "lung lesion": "lesion",
    "lung mass": "mass",
    "lung nodule": "nodule",
    "fibrosis": "tail_abnorm_obs",
    "pulmonary fibrosis": "tail_abnorm_obs",
}
ENTRIES = 75


@dataclass(frozen=True)
class Query:
    """Where a finding's answer stands: a position in the book, or a text to append."""

    position: int | None
    text: str = ""


def check_book(book: Mapping[str, object], where: object) -> None:
    """Raise ModelError for a book that is too short or not in the published order."""
    keys = [key.casefold() for key in book]
    if len(keys) < ENTRIES:
        raise ModelError("the book is too short", where=where, expected=f"{ENTRIES} entries or more", got=len(keys))
    for name, position in POSITIONS.items():
        if name in keys and keys.index(name) != position:
            raise ModelError(
                "the book is not in the published order",
                where=where,
                expected=f"{name!r} at position {position}",
                got=f"at position {keys.index(name)}",
                fix="use the authors' file as it is; only the order of its entries is read",
            )


def queries(findings: Sequence[str], book: Mapping[str, object], prompts: Prompts) -> list[Query]:
    """Return where each finding's answer stands.

    Args:
        findings: in the order asked.
        book: the authors' book, for entries beyond the published 75 that are found by name.
        prompts: a user's own wording goes before the book.

    Raises:
        ModelError: the book has no such observation and the user gives no description.
    """
    return [_query(finding, book, prompts) for finding in findings]


def _query(finding: str, book: Mapping[str, object], prompts: Prompts) -> Query:
    if given := prompts.given(finding):
        return Query(None, given[0])
    key = key_of(finding)
    name = OBSERVATIONS.get(key, key)
    if name in POSITIONS:
        return Query(POSITIONS[name])
    beyond = {key_of(entry): index for index, entry in enumerate(book)}
    for spelling in (name, name.replace("-", "")):
        if spelling in beyond:
            return Query(beyond[spelling])
    raise ModelError(
        f"the book has no observation for {finding!r}",
        expected="one of " + ", ".join(sorted({*POSITIONS, *OBSERVATIONS})),
        fix=f"prompts: {{{finding}: DESCRIPTION}}"
        + (f"; {near}" if (near := did_you_mean(key, [*POSITIONS, *OBSERVATIONS])) else ""),
    )
