"""MedMentions and other PubTator files: abstracts with marked mentions, concepts and types.

A document is ``id|t|title``, ``id|a|abstract`` and one row a mention: id, start, end, text, types (commas between),
concept (``UMLS:`` in front or not), tabs between. Offsets count code points of title + one line break + abstract.

Source: Mohan and Li, MedMentions, AKBC 2019 (CC0).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from medground.benchmarks.medical_checklist.terminologies.base import Terminology, lines, table, wrong_fields
from medground.errors import DataError

_FIELDS = 6


class Annotation(NamedTuple):
    """One marked mention."""

    document: str
    start: int
    end: int
    text: str
    tuis: tuple[str, ...]
    concept_id: str


def marked(path: Path) -> Iterator[Annotation]:
    """Yield every mention of a file.

    Raises:
        DataError: a row is malformed, or its offsets do not hold the text that it states.
    """
    text: dict[str, list[str]] = {}
    document = ""
    for number, line in lines(path):
        head = line.split("|", 2)
        if len(head) == 3 and head[1] in ("t", "a") and "\t" not in head[0]:
            if head[0] != document:
                document, text = head[0], {}
            text[head[1]] = [head[2]]
        elif line.strip():
            yield _annotation(path, number, line, "\n".join(part[0] for part in text.values()))


def read(path: Path) -> Terminology:
    """Return a terminology of the surfaces that a file marks."""
    names: dict[str, list[str]] = {}
    tuis: dict[str, set[str]] = {}
    dropped: dict[str, str] = {}
    for mention in marked(path):
        names.setdefault(mention.concept_id, []).append(mention.text)
        tuis.setdefault(mention.concept_id, set()).update(mention.tuis)
    concepts = table(names, tuis, {}, dropped)
    return Terminology(concepts, dropped=dict(sorted(dropped.items())))


def _annotation(path: Path, number: int, line: str, text: str) -> Annotation:
    row = line.split("\t")
    if len(row) != _FIELDS:
        raise wrong_fields(path, number, _FIELDS, len(row))
    document, start, end, surface, types, concept = row
    if not (start.isdecimal() and end.isdecimal()):
        raise DataError("offsets are not numbers", where=f"{path}, line {number}", got=f"{start}, {end}")
    first, last = int(start), int(end)
    if text[first:last] != surface:
        raise DataError(
            "a mention does not stand at its offsets",
            where=f"{path}, line {number}",
            expected=surface[:60],
            got=text[first:last][:60],
        )
    tuis = tuple(sorted(t for t in types.split(",") if t))
    return Annotation(document, first, last, surface, tuis, concept.removeprefix("UMLS:"))
