"""Places on a chest radiograph in words: an organ, a side, a height. Right and left are the patient's."""

from __future__ import annotations

import re
from dataclasses import dataclass

BOTH = frozenset({"left", "right"})
_SIDES = {
    "right": r"right(?:-sided|-side|sided)?|right hand|r\.(?=\s)",
    "left": r"left(?:-sided|-side|sided)?|left hand",
    "both": r"both|bilateral(?:ly)?|bi(?=basilar|basal|apical)",
}
_HEIGHTS = {
    "upper": r"upper|apical|apices|apex|superior",
    "mid": r"mid|middle|perihilar|hilar|hilum",
    "lower": r"lower|basal|basilar|bases|base|inferior|costophrenic|hemidiaphragm",
}
_ORGANS = {
    "heart": r"heart|cardiac|cardiomediastinal|pericardial",
    "aorta": r"aort(?:a|ic)",
    "mediastinum": r"mediastin(?:um|al)|trachea|tracheal",
    "lung": r"lungs?|lobes?|zones?|fields?|hemithorax|hemithoraces|pulmonary|pleural space|pleural cavity"
    r"|costophrenic angles?|sides?|sulcus",
}
_SIDE, _HEIGHT = ("|".join(f"(?P<{name}>{words})" for name, words in table.items()) for table in (_SIDES, _HEIGHTS))
_ORGAN = "|".join(f"(?P<{name}>{words})" for name, words in _ORGANS.items())
_PLACE = re.compile(rf"\b(?:(?:{_SIDE})[\s-]*|(?:{_HEIGHT})[\s-]*|(?:{_ORGAN})\b[\s-]*)+")
_WORD = re.compile(rf"\b(?:{_SIDE}|{_HEIGHT}|{_ORGAN})")
_EVERYWHERE = re.compile(r"\b(?:all|both|whole|entire)\b|\blungs\b|\bbilateral|\bchest\b|\bthroughout\b")


@dataclass(frozen=True)
class Place:
    """A place in a text.

    Attributes:
        start: where its words start.
        end: where they end.
        sides: ``left`` and ``right``; empty: no side is named.
        heights: ``upper``, ``mid``, ``lower``; empty: none is named.
        organ: ``lung``, ``heart``, ``aorta`` or ``mediastinum``; empty: not named.
    """

    start: int
    end: int
    sides: frozenset[str] = frozenset()
    heights: frozenset[str] = frozenset()
    organ: str = ""

    def excludes(self, other: Place) -> bool:
        """Whether the two places have nothing in common: other sides, other heights or other organs."""
        if self.sides and other.sides and not self.sides & other.sides:
            return True
        if self.heights and other.heights and not self.heights & other.heights:
            return True
        mine, theirs = self.organ or self._implied(), other.organ or other._implied()
        return bool(mine and theirs and mine != theirs)

    def _implied(self) -> str:
        return "lung" if self.sides or self.heights else ""


def places(text: str, offset: int = 0) -> list[Place]:
    """Return the places that a folded text names, in order.

    Args:
        text: folded.
        offset: added to starts and ends.
    """
    return [_place(match[0], match.start() + offset) for match in _PLACE.finditer(text)]


def region_of(words: str) -> Place | None:
    """Return the place that a question's region names; None: it names none that the reader knows."""
    parts = places(words.casefold())
    if not parts:
        return None
    sides = frozenset().union(*(part.sides for part in parts))
    heights = frozenset().union(*(part.heights for part in parts))
    return Place(0, 0, sides, heights, next((part.organ for part in parts if part.organ), ""))


def everywhere(text: str) -> bool:
    """Whether a folded text speaks of all lungs or the whole picture."""
    return _EVERYWHERE.search(text) is not None


def _place(words: str, start: int) -> Place:
    named = [match.lastgroup for match in _WORD.finditer(words)]
    sides = frozenset(name for name in named if name in BOTH) | (BOTH if "both" in named else frozenset())
    heights = frozenset(name for name in named if name in _HEIGHTS)
    organ = next((name for name in named if name in _ORGANS), "")
    return Place(start, start + len(words.rstrip(" -")), sides, heights, organ or "")
