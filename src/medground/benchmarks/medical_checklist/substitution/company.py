"""The company a term keeps: neighbours that make it a part of a longer name, so that it cannot be exchanged alone.

"Pelvis" in "renal pelvis", "hepatitis" in "hepatitis C", "head" in "head of the pancreas": no terminology lists every
compound, so a noun is exchanged only where its neighbours are known to be no part of its name. The rule refuses more
than it must; captions are many.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from medground.benchmarks.medical_checklist.mentions.base import Mention
from medground.benchmarks.medical_checklist.mentions.boundaries import fold
from medground.benchmarks.medical_checklist.mentions.dictionary import is_acronym
from medground.benchmarks.medical_checklist.substitution import story
from medground.benchmarks.medical_checklist.substitution.places import IMAGING, partners
from medground.benchmarks.medical_checklist.words import FUNCTION, MODIFIERS, word_set

_ANATOMY = frozenset({"T023", "T029", "T030"})
_STATES = frozenset({"T046", "T047", "T190", "T037"})
_PROCEDURE, _PLACE, _DEVICE, _REGION = "T060", "T082", "T074", "T029"
_TIED_MARKS = frozenset("/\\+'\"\u2019\u201c\u201d")
_TIMES = word_set(
    "preoperative pre-operative postoperative post-operative initial follow-up repeat control admission subsequent "
    "intraoperative baseline diagnostic plain routine urgent emergency immediate early late delayed serial final"
)
_REGIONS = word_set(
    "abdominal thoracic cranial cerebral pelvic cervical lumbar spinal brain chest head neck abdomen renal hepatic "
    "abdominopelvic thoracoabdominal spine knee hip shoulder ankle wrist foot hand cardiac lung liver skull"
)
_PLANES = word_set("axial transverse transaxial coronal sagittal parasagittal midsagittal")
_PROJECTED = word_set("lateral ap pa anteroposterior posteroanterior frontal oblique anterior posterior")
_SIDES = word_set("left right upper lower bilateral")
_DIRECTIONS = word_set("upper lower proximal distal anterior posterior medial lateral superior inferior")
_SEQUENCES = re.compile(r"T[12]|FLAIR|STIR|DWI|TSE|gadolinium|gd|contrast|proton|echo|phase|fat|PA|AP", re.IGNORECASE)
_VERBS = word_set(
    "confirms confirmed depicts depict depicted suggests suggest exhibits exhibited displays displayed represents "
    "appears appear identifies identified shows showed taken done made obtained performed seen noted found after "
    "before consistent compatible suggestive secondary due prior adjacent anterior posterior lateral medial superior "
    "inferior extending together along again measuring present both because therefore however although since until "
    "without within across around against beside besides toward towards throughout upon outside inside"
)
_SAYS = word_set(
    "showing shows show showed demonstrating demonstrates demonstrated revealing reveals revealed confirms"
)
_TIED = word_set(
    "weighted guided enhanced shaped sided based related induced associated assisted coated filled lined mediated "
    "negative positive dependent like type free derived imaging staining looking forming setting"
)
_PARTS = word_set(
    "head neck body tail fundus lobe lobes pole poles apex base shaft condyle condyles tubercle root roots arch ramus "
    "process horn horns hilum cortex crest tip tuberosity epicondyle trochanter spine plate antrum bulb cusp leaflet "
    "valve branch branches segment segments level dome bifurcation origin ostium floor roof third half aspect isthmus"
)
_SPECIFIC = re.compile(
    r"chest|CXR|coronary|cerebral|panoram|OPG|orthopan|periapical|mammo|echocardio|bronch|colon|gastro|cysto|laryng|"
    r"arthro|lapar|ERCP|MRCP|cholang|barium|uro|pyelo|IVP|VCUG|hystero|HSG|myelo|fundus|OCT|optical|T[TEO]E|electro|"
    r"E[CKEM]G|spiro|lumbar|D[EX]+A|densit|EUS|endoscop|intravascular|IVUS|veno|phlebo|biops|aspirat|FNA|esophag|"
    r"functional|fMRI|bone",
    re.IGNORECASE,
)
"""Procedures that name what they look at: none of them goes behind the name of a region."""
_SECTIONAL = re.compile(r"CT|MRI?\b|magnetic resonance|tomogra", re.IGNORECASE)
_NOT_SECTIONAL = re.compile(r"PET|emission|coher|beam|CB")
_UNCOUNTED = re.compile(r"(?:imaging|tomography|graphy|scopy|metry|aspiration|CT|MRI|MR)$")
_ADJECTIVAL = re.compile(r"(?:tomographic|ultrasonographic|radiographic)$")
_SIDED = re.compile(r"(?:(?i:left|right|bilateral)|[LR](?:CA|CX|AD|MCA|V|A|[UML]L|[UL]Q|IJ))\b")
"""Names that begin with a side, and abbreviations of some: never behind another side."""
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)?|first|second|third|fourth|fifth|last", re.IGNORECASE)
_STEM = 5
_LONGEST_ACRONYM = 4
_SHORTEST_PARTICIPLE = 5


class Neighbours(NamedTuple):
    """The words beside a span in its clause: those before it, nearest last, and the one after it."""

    before: tuple[str, ...]
    after: str

    @property
    def unmodified(self) -> tuple[str, ...]:
        """The words before the modifiers that precede the span, in lower case, nearest last."""
        words = [w.lower() for w in self.before]
        while words and words[-1] in MODIFIERS and not _ORDINAL.fullmatch(words[-1]):
            words.pop()
        return tuple(words)


def neighbours(caption: str, start: int, end: int) -> Neighbours:
    """Return the neighbours of a span, with nothing but blanks between.

    Example:
        >>> neighbours("a stone, in the renal pelvis seen", 22, 28)
        Neighbours(before=('in', 'the', 'renal'), after='seen')
    """
    run = re.search(r"(?:[\w'\u2019%-]+\s+)*$", caption[max(0, start - 80) : start])
    match = re.match(r"\s+([\w'\u2019%-]+)", caption[end : end + 40])
    return Neighbours(tuple(run[0].split()) if run else (), match[1] if match else "")


def refuse_company(caption: str, mention: Mention, tui: str) -> str | None:
    """Return why a mention cannot be exchanged where it stands, or None.

    Args:
        caption: the whole caption.
        mention: the term.
        tui: the type under which it would be exchanged.
    """
    start, end = mention.start, mention.end
    near = neighbours(caption, start, end)
    shared: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("compound", lambda: not _TIED_MARKS.isdisjoint((caption[end : end + 1], caption[max(0, start - 1) : start]))),
        ("legend", lambda: story.is_legend(caption, start, end)),
        ("background", lambda: story.is_background(caption, start, end, state=tui in _STATES)),
    )
    own: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("shape", lambda: not partners(caption, start, end)),
        ("background", lambda: story.is_about_health(caption, start, end)),
        ("negated", lambda: story.is_denied(caption, start, end)),
        # "Right parasagittal scan: this right-sided image" says its side twice.
        ("said_again", lambda: re.search(rf"\b{re.escape(mention.text)}-", caption, re.IGNORECASE) is not None),
    )
    if tui != _PLACE:
        own = (
            ("compound", lambda: _is_in_a_name(near, tui)),
            ("negated", lambda: story.is_denied(caption, start, end)),
            # No device shows anything, and MS is a spectrometer too: abbreviations with another meaning.
            ("stop_word", lambda: tui == _DEVICE and near.after.lower() in _SAYS),
            ("stop_word", lambda: tui != _PROCEDURE and _is_short_acronym(mention.text)),
            ("said_again", lambda: says_again(caption, mention, mention.text)),
        )
    return next((reason for reason, holds in shared + own if holds()), None)


def refuse_fit(caption: str, mention: Mention, form: str, tui: str) -> str | None:
    """Return why a form does not fit the company of a mention, or None.

    Args:
        caption: the whole caption.
        mention: the term.
        form: the replacement as its terminology spells it.
        tui: the type of both.
    """
    if tui == _PLACE:
        return None if form.lower() in partners(caption, mention.start, mention.end) else "shape"
    near = neighbours(caption, mention.start, mention.end)
    if _SIDED.match(form) and any(_SIDED.match(w) or w.lower() == "both" for w in near.before[-4:]):
        return "shape"
    if tui == _PROCEDURE and not _procedure_fits(near, mention, form):
        return "shape"
    return "already_in_caption" if says_again(caption, mention, form) else None


def says_again(caption: str, mention: Mention, term: str) -> bool:
    """Whether the caption has a term's head word, or another word from its stem, outside a mention."""
    words = re.findall(r"[^\W_]+", fold(term))
    if not words:
        return False
    rest = re.findall(r"[^\W_]+", fold(f"{caption[: mention.start]} {caption[mention.end :]}"))
    head = words[-1]
    stem = head if len(head) <= _STEM else head[: max(_STEM, len(head) - 3)]
    return any(w == head or (len(head) > _STEM and w.startswith(stem)) for w in rest)


def _is_in_a_name(near: Neighbours, tui: str) -> bool:
    """Whether a neighbour makes a term part of a longer name."""
    if not _begins_a_name(near, tui) or not _ends_a_name(near, tui):
        return True
    return tui in _ANATOMY and (near.after.lower() == "of" or _is_named_part(near))


def _begins_a_name(near: Neighbours, tui: str) -> bool:
    """Whether the word before a term is no part of its name."""
    if not near.before:
        return True
    low = near.before[-1].lower()
    if tui == _PROCEDURE:
        if low in _PROJECTED or low in _SIDES or any(_SEQUENCES.match(w) for w in near.before[-4:]):
            return False
        if low in _TIMES or low in _REGIONS or low in _PLANES:
            return True
    if tui != _PROCEDURE and _is_numbered(near):
        return False
    if tui in _ANATOMY and low in _DIRECTIONS:
        return False
    return low in FUNCTION or low in MODIFIERS or low in _VERBS or _is_participle(low)


def _ends_a_name(near: Neighbours, tui: str) -> bool:
    """Whether the word after a term is no part of a compound with it."""
    word, low = near.after, near.after.lower()
    if not word or low in FUNCTION or low in _VERBS:
        return True
    if tui == _REGION and (word in IMAGING or low in IMAGING):
        return True
    return _is_participle(low)


def _is_short_acronym(text: str) -> bool:
    """Whether a term is written as a few capitals, which mean something else in the next paper."""
    return len(text) <= _LONGEST_ACRONYM and is_acronym(text)


def _is_participle(low: str) -> bool:
    """Whether a word may be a participle that begins a clause: "showing", "located", but not "weighted"."""
    tied = low.rsplit("-", 1)[-1] in _TIED
    return low.endswith(("ed", "ing")) and len(low) >= _SHORTEST_PARTICIPLE and not tied


def _is_numbered(near: Neighbours) -> bool:
    """Whether a number counts the term: "7th left rib", "third molar"."""
    return bool(near.unmodified) and _ORDINAL.fullmatch(near.unmodified[-1]) is not None


def _is_named_part(near: Neighbours) -> bool:
    """Whether a term is the whole of a named part: "neck of the femur"."""
    words = list(near.unmodified)
    while words and (words[-1] in MODIFIERS or words[-1] in ("the", "a", "an", "this", "both")):
        words.pop()
    return len(words) > 1 and words[-1] == "of" and words[-2] in _PARTS


def _procedure_fits(near: Neighbours, mention: Mention, form: str) -> bool:
    """Whether a procedure may stand behind the words before it: a coronal MRI, never an abdominal chest film."""
    if _ADJECTIVAL.search(form):
        return False
    words = [w.lower() for w in near.before]
    if words and words[-1] in _PLANES:
        return all(_SECTIONAL.search(t) and not _NOT_SECTIONAL.search(t) for t in (mention.text, form))
    if words and words[-1] in _REGIONS and _SPECIFIC.search(form):
        return False
    while words and (words[-1] in MODIFIERS or words[-1] in _TIMES or words[-1] in _REGIONS):
        words.pop()
    return not (words and words[-1] in ("a", "an") and _UNCOUNTED.search(form))
