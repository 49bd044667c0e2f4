"""Sentences about phantoms: what each says, in many wordings, and what a sentence says, read back.

A statement is true, false or unsayable of a scene (``facts``), and its wordings differ in one *term* alone from those
of the statements that could stand in its place. The same grammar writes captions and reads them: what a reader takes
from a caption is what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from medground.worlds.phantom.facts import ZONED, Facts

Kind = Literal["present", "absent", "side", "third", "size", "near", "view", "device"]
LATERAL: Final = ("Atelectasis", "Effusion", "Infiltration", "Mass", "Nodule", "Pneumonia", "Pneumothorax")
"""Findings that lie on a side."""

TERMS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "T046": {
        "Effusion": ("pleural effusion",),
        "Atelectasis": ("atelectasis", "collapse"),
        "Infiltration": ("infiltrate", "infiltration"),
        "Pneumonia": ("consolidation",),
        "Cardiomegaly": ("cardiomegaly",),
    },
    "T047": {
        "Pneumothorax": ("pneumothorax",),
        "Pneumonia": ("pneumonia",),
        "Nodule": ("pulmonary nodule", "lung nodule"),
        "Mass": ("pulmonary mass", "lung mass"),
    },
    "T031": {"Effusion": ("pleural fluid",), "Pneumothorax": ("pleural air",)},
}
"""Semantic type -> finding -> its names. Which type a name has is this lexicon's choice."""

SIDES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "T082": {"right": ("right",), "left": ("left",)},
    "T029": {"right": ("right hemithorax", "right chest"), "left": ("left hemithorax", "left chest")},
}
THIRDS: Final = {"upper": ("upper",), "mid": ("middle", "mid"), "lower": ("lower",)}
SIZES: Final = {"small": ("small",), "large": ("large",)}
LANDMARKS: Final = {"chest wall": ("chest wall",), "hilum": ("hilum",), "apex": ("lung apex",)}
VIEWS: Final = {"PA": ("PA", "posteroanterior"), "AP": ("AP", "anteroposterior")}
DEVICES: Final = {
    "tube": ("endotracheal tube",),
    "line": ("central venous catheter", "central venous line"),
    "pacemaker": ("pacemaker",),
}

PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    "present": ("{f}", "{f} is present", "{f} is seen", "{f} visible", "Finding: {f}", "Findings include {f}"),
    "absent": ("No {f}", "No evidence of {f}", "No sign of {f}", "There is no {f}"),
    "side": ("{s}-sided {f}", "{f} on the {s}", "{f} on the {s} side", "{f} in the {s} lung", "{s} side: {f}"),
    "hemithorax": ("{f} in the {s}", "{f} is seen in the {s}", "{f} visible in the {s}", "{s}: {f}"),
    "third": (
        "{f} in the {s} {t} zone",
        "{f} in the {t} zone of the {s} lung",
        "{s} {t} zone {f}",
        "{s} {t} zone: {f}",
        "{f} projecting over the {s} {t} zone",
        "{f} is seen in the {t} zone on the {s}",
    ),
    "size": ("{z} {f}", "{f}, {z} in size", "{f} of {z} size", "{z} {f} is seen"),
    "near": ("{f} near the {l}", "{f} close to the {l}", "{f} lies near the {l}", "Near the {l}: {f}"),
    "view": ("{v} chest radiograph", "Chest radiograph, {v} view", "Frontal chest radiograph, {v}", "{v} chest X-ray"),
    "device": ("{d} in place", "{d} visible", "A {d} is in place", "There is a {d}"),
}
OPENINGS: Final = (
    "Chest radiograph", "Frontal chest radiograph", "Chest X-ray", "Radiograph of the chest", "Chest film",
)  # fmt: skip

# fmt: off
WORDS: Final = (
    "-", "air", "an", "anteroposterior", "ap", "apex", "catheter", "central", "chest", "close", "collapse",
    "consolidation", "endotracheal", "evidence", "film", "finding", "findings", "fluid", "frontal", "hemithorax",
    "hilum", "include", "infiltrate", "large", "lies", "line", "middle", "near", "on", "over", "pa", "pacemaker",
    "place", "pleural", "posteroanterior", "projecting", "pulmonary", "radiograph", "ray", "side", "sided", "sign",
    "size", "small", "to", "true", "tube", "venous", "view", "visible", "wall", "x", "zone",
)
# fmt: on
"""Words of these sentences and of the question about them that no sentence of ``questions`` has, in lower case."""


@dataclass(frozen=True, order=True)
class Statement:
    """One thing said.

    Attributes:
        kind: of what.
        finding: the finding it is about, or empty for view and device.
        value: side, landmark, size, view or device.
        third: of a statement about a third.
    """

    kind: Kind
    finding: str = ""
    value: str = ""
    third: str = ""

    def holds(self, facts: Facts) -> bool | None:
        """Return whether it is true of a scene; None where it cannot be said."""
        if self.kind in ("present", "absent"):
            return facts.has(self.finding) == (self.kind == "present")
        if self.kind == "view":
            return facts.view == self.value
        if self.kind == "device":
            return facts.has_device(self.value)
        if self.kind == "size":
            return facts.sized(self.finding, self.value)
        if self.kind == "near":
            return facts.near(self.finding, self.value)
        return self._where(facts)

    def _where(self, facts: Facts) -> bool | None:
        side = facts.on_side(self.finding, self.value)
        if self.kind == "side":
            return side
        third = facts.in_third(self.finding, self.third)
        if side is False or third is False:
            return False
        return None if side is None or third is None else True


@dataclass(frozen=True)
class Wording:
    """A statement in words, in three parts: before its changeable term, the term, after it."""

    statement: Statement
    left: str
    term: str
    right: str

    @property
    def text(self) -> str:
        """The sentence without its full stop, as it stands inside a caption; a capital in front."""
        return capital(self.left + self.term + self.right)


def capital(text: str) -> str:
    """Return a text with its first letter large."""
    return text[:1].upper() + text[1:]


def worded(pattern: str, slot: str, term: str, others: Mapping[str, str]) -> tuple[str, str, str]:
    """Return a pattern filled in, cut at the slot whose term may change."""
    left, right = pattern.split("{" + slot + "}")
    return left.format_map(others), term, right.format_map(others)


def said(caption: str) -> list[Statement]:
    """Return the statements of a caption that this grammar wrote; sentences that it does not know say nothing.

    Example:
        >>> said("Chest film. Right-sided pneumothorax. No lung mass.")
        [Statement(kind='side', finding='Pneumothorax', value='right', third=''), Statement(kind='absent', \
finding='Mass', value='', third='')]
    """
    return [s for part in re.split(r"\.(?:\s+|$)", caption) if (s := _sentences().get(part.strip().lower()))]


@cache
def wordings() -> Mapping[Statement, tuple[str, ...]]:
    """Return every statement with all its sentences, without a full stop, in a fixed order."""
    held: dict[Statement, list[str]] = {}
    for text, statement in _all():
        held.setdefault(statement, []).append(capital(text))
    return {statement: tuple(dict.fromkeys(held[statement])) for statement in sorted(held)}


@cache
def _sentences() -> dict[str, Statement]:
    """Return every sentence that the grammar can write, in lower case, with what it says."""
    return {text.lower(): statement for text, statement in _all()}


def names(finding: str) -> list[str]:
    """Return all names of a finding."""
    return sorted({n for held in TERMS.values() for n in held.get(finding, ())})


def _all() -> Iterator[tuple[str, Statement]]:
    findings = sorted({f for held in TERMS.values() for f in held})
    for finding, name in ((f, n) for f in findings for n in names(f)):
        for kind in _ABOUT_A_FINDING:
            for pattern in PATTERNS[kind]:
                yield pattern.format(f=name), Statement(kind, finding)
        if finding in LATERAL:
            yield from _placed(finding, name)
    for slot, kind, values in _ALONE:
        for value, words in values.items():
            for word, pattern in ((w, p) for w in words for p in PATTERNS[kind]):
                yield article(pattern.format_map({slot: word})), Statement(kind, value=value)


_ABOUT_A_FINDING: Final[tuple[Kind, ...]] = ("present", "absent")
_ALONE: Final[tuple[tuple[str, Kind, Mapping[str, tuple[str, ...]]], ...]] = (
    ("v", "view", VIEWS),
    ("d", "device", DEVICES),
)


def _placed(finding: str, name: str) -> Iterator[tuple[str, Statement]]:
    for side in ("right", "left"):
        yield from _on_side(finding, name, side)
    for slot, kind, values in (("z", "size", SIZES), ("l", "near", LANDMARKS)):
        for value, words in values.items():
            for word, pattern in ((w, p) for w in words for p in PATTERNS[kind]):
                text = pattern.format_map({"f": name, slot: word})
                yield text, Statement("size" if kind == "size" else "near", finding, value)


def _on_side(finding: str, name: str, side: str) -> Iterator[tuple[str, Statement]]:
    for pattern in PATTERNS["side"]:
        yield pattern.format(f=name, s=side), Statement("side", finding, side)
    for word, pattern in ((w, p) for w in SIDES["T029"][side] for p in PATTERNS["hemithorax"]):
        yield pattern.format(f=name, s=word), Statement("side", finding, side)
    if finding in ZONED:
        for third, words in THIRDS.items():
            for word, pattern in ((w, p) for w in words for p in PATTERNS["third"]):
                yield pattern.format(f=name, s=side, t=word), Statement("third", finding, side, third)


def article(text: str) -> str:
    """Return a sentence about a device with "an" where its name begins with a vowel."""
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", text)
