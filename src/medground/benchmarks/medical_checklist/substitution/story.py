"""What a caption says beside the picture: legends, general statements, the patient's history, denials.

A term that stands there can be exchanged and leave the caption as true, or as undecided, as before.
"""

from __future__ import annotations

import re

from medground.benchmarks.medical_checklist.substitution.places import IMAGING

_LEGEND = re.compile(
    r"(?:(?:^|[\s;,.(*])(?:\*+|[A-Za-z]{1,5}\d{0,2}|\d{1,2}|(?:arrow|star|asterisk|circle)\w*\)?)"
    r"\s*[:=\u2013\u2014-]\s*"
    r"|(?:^|[\s;.(])[A-Z][A-Za-z-]{0,7}\d?(?:,|\s+(?:indicates?|denotes?|represents?|is|are|stands? for))\s*)"
    r"(?:the\s+)?(?:(?:left|right|upper|lower|normal)\s+)?$"
)
_KEY = re.compile(r"(?:^|[;.(,:])\s*[A-Z][A-Za-z]{0,5}\d?\s*[,=:]\s+[a-z]")
"""One entry of a list that explains letters: "LV, left ventricle"."""

_FEWEST_KEYS = 2
_LETTERS = re.compile(r"(?:^|[\s(,;])([A-Z]{2,6})\s+$")
_GENERAL = re.compile(
    r"\b(?:we|our|usually|often|generally|typically|commonly|common|can be|may|might|should|people|tool|technique|"
    r"method|reprinted|theory|model of|schematic|diagram|considered|regarded as|"
    r"defined as|dangerous|recommended|necessary|essential|useful|helpful|important)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\b(?:(?:evaluation|assessment|exclusion|risk|prevention|detection|signs?|search) (?:of|for)|courtesy|department|"
    r"hospital|institute|university|clinic|possibility of|(?:in)?susceptible to|suggestive of|suggesting|suggests|"
    r"suggested|consistent with|"
    r"compatible with|indicative of)\b[^.;]{0,60}$",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"\b(?:patients?|m[ae]n|wom[ae]n|males?|females?|boys?|girls?|child|children|infants?|neonates?|fetus|foetus|"
    r"newborns?|subjects?|known|history|diagnosis|diagnosed|treated|due to|because of|caused by|secondary to)\b"
    r"(?:\s+\w+)?(?:\s+(?:with|of|for|as|having|who|from))?(?:\s+[\w-]+){0,4}\s*$",
    re.IGNORECASE,
)
_DENIED_BEFORE = re.compile(
    r"\b(?:no|not|without|neither|nor|absence|absent|lack|lacking|never|free of|rather)\b", re.IGNORECASE
)
_DENIED_AFTER = re.compile(
    r"\s+(?:[\w-]+\s+){0,4}?(?:not|never|cannot|no longer|without|un(?:remarkable|affected|changed|involved)|normal|"
    r"intact|preserved|spared)\b",
    re.IGNORECASE,
)
_UNCHANGED = re.compile(r"\b(?:normal|unremarkable|intact|preserved|spared|unaffected|healthy)\b", re.IGNORECASE)
_REACH = 80


def sentence(caption: str, start: int, end: int) -> str:
    """Return the sentence around a span.

    Example:
        >>> sentence("A lung. The liver is large. End.", 12, 17)
        'The liver is large'
    """
    before = re.split(r"[.;!?]\s", caption[:start])[-1]
    return before + caption[start:end] + re.split(r"[.;!?](?:\s|$)", caption[end:])[0]


def is_legend(caption: str, start: int, end: int) -> bool:
    """Whether a span explains a letter, number or mark of the picture.

    Example:
        >>> is_legend("LV, left ventricle; * liver", 4, 18), is_legend("An axial CT", 9, 11)
        (True, False)
    """
    if _LEGEND.search(caption[max(0, start - 40) : start]) is not None or caption[end:].lstrip().startswith("="):
        return True
    # "LFC Lateral femoral condyle": letters, and what they stand for.
    letters = _LETTERS.search(caption[max(0, start - 8) : start])
    if letters and letters[1][0].lower() == caption[start].lower() and letters[1] not in IMAGING:
        return True
    # "CT, chordae tendineae" among other letters: the term itself is the letters, in another sense.
    key = _KEY.match(caption[max(0, start - 2) : end + 4].lstrip(" ") if start else caption[: end + 4])
    return key is not None and len(_KEY.findall(caption)) >= _FEWEST_KEYS


def is_background(caption: str, start: int, end: int, *, state: bool) -> bool:
    """Whether a span belongs to a general statement, a credit, a guess or the patient's history.

    Args:
        caption: the whole caption.
        start: first code point of the span.
        end: one past its last.
        state: the span names a disease, an injury or another state, which a patient may have unseen.
    """
    left = caption[max(0, start - _REACH) : start]
    if _GENERAL.search(sentence(caption, start, end)) or _ASIDE.search(left):
        return True
    return state and _HISTORY.search(left) is not None


def is_denied(caption: str, start: int, end: int) -> bool:
    """Whether the sentence denies something before a span, or says that nothing is wrong with it.

    "No leak, bleeding and ulcer" denies all three; "the aorta is not dilated" is as true of the spleen.

    Example:
        >>> is_denied("no leak, bleeding and ulcer", 22, 27), is_denied("the aorta is dilated", 4, 9)
        (True, False)
    """
    before = re.split(r"[.;!?:]\s|\b(?:but|however|although)\b", caption[:start])[-1]
    if _DENIED_BEFORE.search(before) or _DENIED_AFTER.match(caption[end : end + 60]):
        return True
    # "Normal sized liver (arrow) and spleen", "a normal position of the stomach": of others it may be true as well.
    return _UNCHANGED.search(re.split(r"[,;:]", before)[-1]) is not None


def is_about_health(caption: str, start: int, end: int) -> bool:
    """Whether a sentence says of something that it is normal: of the other side that may be true as well.

    Example:
        >>> is_about_health("The left eye is normal. A scar.", 4, 8)
        True
    """
    return _UNCHANGED.search(sentence(caption, start, end)) is not None
