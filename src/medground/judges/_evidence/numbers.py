"""Numbers in text: digits, words, ordinals, percent, decimal commas, scientific notation, with their unit."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace

_UNITS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_VALUES = {word: i for i, word in enumerate(_UNITS)} | {word: 10 * (i + 2) for i, word in enumerate(_TENS)}
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12,
}  # fmt: skip
_ONE = "|".join(_UNITS)
_TENS_RE = "|".join(_TENS)
_SPOKEN = re.compile(rf"\b({_TENS_RE})[\s-]({'|'.join(_UNITS[1:10])})\b|\b({_ONE}|{_TENS_RE})\b", re.I)
_HUNDRED = re.compile(rf"\b(?:one|a)\s+hundred(?:\s+and)?(?:\s+({_TENS_RE}))?(?:[\s-]({_ONE}))?\b", re.I)
_POINT = re.compile(rf"\b({_ONE}|{_TENS_RE}|\d+)\s+point\s+((?:(?:{_ONE}|\d)\b\s?)+)", re.I)
_HALF = re.compile(rf"\b({_ONE})\s+and\s+a\s+half\b", re.I)
_HALF_PERCENT = re.compile(r"\bhalf (?:a|of a|of one|of 1) ?(?:percent|per cent|%)", re.I)
_ORDINAL = re.compile(r"\b(fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth)\b(?!\s+of\b)", re.I)
_ORDINAL_DIGITS = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b", re.I)
_FRACTION = re.compile(r"(?<![\d./])\d+(?:\.\d+)?\s*/\s*\d+(?:\.\d+)?\s*(?==|of\b)")
_SHARE = re.compile(r"\b(?:a|an|about a|one)\s+(third|quarter|fifth|tenth)\b(?:\s+of\b)?", re.I)
_COMMA = re.compile(r"(?<![\d.,])(\d{1,3}),(\d{1,4})(?!\d|[.,]\d|,\s?\d)")
_HAS_WORD = re.compile(
    rf"\b(?:{_ONE}|{_TENS_RE}|hundred|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|third|quarter|half)\b",
    re.I,
)
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>-)?(?P<value>\d+\.\d+|\.\d+|\d+)(?:\s?[x*]\s?10\s?\^?\s?(?P<power>-\d)|[eE](?P<exponent>-?\d{1,2}))?"
    r"(?P<unit>\s?(?:%|percent\b|per cent\b|-?degrees?\b|deg\b|rad(?:ians?)?\b|px\b|pixels?\b|mm\b|cm\b|x\b|"
    r"1/px\b|per pixel\b|levels?\b|rows?\b|points?\b|views?\b|times\b))?(?![\d])",
    re.I,
)
#: Between two numbers that share the unit of the second.
_AND = re.compile(r"\s*(?:,|/|and|versus|vs|against|to)\s*", re.I)


@dataclass(frozen=True)
class Number:
    """A number in a text.

    Attributes:
        value: as written, percent not yet divided.
        unit: ``%``, ``degree``, ``rad``, ``px``, ``mm``, ``count`` or empty.
        decimals: digits after the point, which say how it was rounded.
        start: of its place in the text.
        end: of its place in the text, unit included.
    """

    value: float
    unit: str
    decimals: int
    start: int
    end: int

    @property
    def rounding(self) -> float:
        """Half a unit in the last written place."""
        return 0.5 * float(10**-self.decimals)


def spell(text: str) -> str:
    """Write number words, ordinals and decimal commas as digits.

    >>> spell("rib ten, sixty-six degrees, one point four eight, 0,42")
    'rib 10, 66 degrees, 1.48, 0.42'
    """
    if "," in text:
        text = _COMMA.sub(r"\1.\2", text)
    if "/" in text:
        text = _FRACTION.sub("", text)
    text = _ORDINAL_DIGITS.sub(r"\1", text)
    if not _HAS_WORD.search(text):
        return text
    text = _HALF_PERCENT.sub("0.5 percent", text)
    text = _HUNDRED.sub(lambda m: str(100 + sum(_VALUES[w.lower()] for w in m.groups() if w)), text)
    text = _HALF.sub(lambda m: f"{_VALUES[m[1].lower()]}.5", text)
    text = _POINT.sub(_decimal, text)
    text = _SHARE.sub("part", text)
    text = _ORDINAL.sub(lambda m: str(_ORDINALS[m[1].lower()]), text)
    return _SPOKEN.sub(_spoken, text)


def _decimal(match: re.Match[str]) -> str:
    whole = match[1].lower()
    digits = "".join(part if part.isdigit() else str(_VALUES[part.lower()]) for part in match[2].split())
    tail = " " if match[2].endswith(" ") else ""
    return f"{whole if whole.isdigit() else _VALUES[whole]}.{digits}{tail}"


def _spoken(match: re.Match[str]) -> str:
    if match[1]:
        return str(_VALUES[match[1].lower()] + _VALUES[match[2].lower()])
    word = match[3].lower()
    # "one" and "zero" are as often a pronoun or a figure of speech as a count.
    return match[0] if word == "one" else str(_VALUES[word])


_KINDS = {
    "%": "%", "percent": "%", "per cent": "%", "degree": "degree", "degrees": "degree", "deg": "degree", "rad": "rad",
    "radian": "rad", "radians": "rad", "px": "px", "pixel": "px", "pixels": "px", "mm": "mm", "cm": "mm", "level": "count",
    "levels": "count", "row": "count", "rows": "count", "point": "count", "points": "count", "view": "count",
    "views": "count",
}  # fmt: skip


def numbers(text: str) -> list[Number]:
    """Return the numbers of a text in order.

    >>> [(round(n.value, 6), n.unit) for n in numbers("CTR 57 % at 3e-4, 66 degrees")]
    [(57.0, '%'), (0.0003, ''), (66.0, 'degree')]
    """
    out = []
    for match in _NUMBER.finditer(text):
        written = match["value"]
        power = int(match["power"] or match["exponent"] or 0)
        decimals = len(written.partition(".")[2]) - power
        unit = _KINDS.get((match["unit"] or "").strip(" -").lower(), "")
        out.append(Number(float(written) * 10.0**power, unit, max(decimals, 0), match.start(), match.end()))
    for i, (number, following) in enumerate(itertools.pairwise(out)):
        if following.unit == "px" and not number.unit and _AND.fullmatch(text, number.end, following.start):
            out[i] = replace(number, unit="px")
    return out
