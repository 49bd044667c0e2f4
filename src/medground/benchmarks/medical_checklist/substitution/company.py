"""The company a term keeps: neighbours that make it a part of a longer name, so that it cannot be exchanged alone.

"Pelvis" in "renal pelvis", "hepatitis" in "hepatitis C", "head" in "head of the pancreas": no terminology lists every
compound, so a noun is exchanged only where its neighbours are known to be no part of its name. The rule refuses more
than it must; captions are many.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from medground.benchmarks.medical_checklist.mentions.base import Mention
from medground.benchmarks.medical_checklist.mentions.boundaries import fold
from medground.benchmarks.medical_checklist.substitution.places import IMAGING, partners
from medground.benchmarks.medical_checklist.words import FUNCTION, MODIFIERS, word_set

_ANATOMY = frozenset({"T023", "T029", "T030"})
_STATES = frozenset({"T046", "T047", "T190", "T037"})
_TIMES = word_set(
    "preoperative pre-operative postoperative post-operative initial follow-up repeat control admission subsequent final "
    "intraoperative baseline diagnostic plain routine urgent emergency immediate early late delayed serial"
)
_REGIONS = word_set(
    "abdominal thoracic cranial cerebral pelvic cervical lumbar spinal brain chest head neck abdomen renal hepatic "
    "abdominopelvic thoracoabdominal spine knee hip shoulder ankle wrist foot hand cardiac lung liver skull"
)
_PLANES = word_set("axial transverse transaxial coronal sagittal parasagittal midsagittal")
_PROJECTED = word_set("lateral ap pa anteroposterior posteroanterior frontal oblique anterior posterior")
_VERBS = word_set(
    "confirms confirmed depicts depict depicted suggests suggest exhibits exhibited displays displayed represents "
    "appears appear identifies identified shows showed taken done made obtained performed seen noted found after "
    "before consistent compatible suggestive secondary due prior adjacent anterior posterior lateral medial superior "
    "inferior extending together along again measuring present both because therefore however although since until "
    "without within across around against beside besides toward towards throughout upon outside inside"
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
_SECTIONAL = re.compile(r"CT|MRI?\b|magnetic resonance|tomogra", re.IGNORECASE)
_UNCOUNTED = re.compile(r"(?:imaging|tomography|graphy|scopy|metry|aspiration|tomographic|CT|MRI|MR|ultrasonography)$")
_ADJECTIVAL = re.compile(r"(?:tomographic|ultrasonographic|radiographic)$")
_LEGEND = re.compile(
    r"(?:(?:^|[\s;,.(*])(?:\*+|[A-Za-z]{1,5}\d{0,2}|\d{1,2}|(?:arrow|star|asterisk|circle)\w*\)?)\s*[:=\u2013\u2014-]\s*"
    r"|(?:^|[\s;.(])[A-Z][A-Za-z]{0,4}\d?,\s*)(?:the\s+)?(?:(?:left|right|upper|lower)\s+)?$"
)
_BACKGROUND = re.compile(
    r"\b(?:patients?|m[ae]n|wom[ae]n|males?|females?|boys?|girls?|child|children|infants?|neonates?|fetus|foetus|"
    r"newborns?|subjects?|known|history|diagnosis|diagnosed|treated|due to|because of|caused by|secondary to)\b"
    r"(?:\s+\w+)?(?:\s+(?:with|of|for|as|having|who|from))?(?:\s+[\w-]+){0,4}\s*$",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\b(?:courtesy|department|hospital|institute|university|clinic|suggestive of|suggesting|suggests|suggested|"
    r"consistent with|compatible with|indicative of)\b[^.;]{0,60}$",
    re.IGNORECASE,
)
_SAYS = word_set(
    "showing shows show showed demonstrating demonstrates demonstrated revealing reveals revealed confirms"
)
_SIDED = re.compile(r"(?:left|right|bilateral)\b", re.IGNORECASE)
_STEM = 5


class Neighbours(NamedTuple):
    """The words beside a span in its clause: those before it, nearest last, and the one after it."""

    before: tuple[str, ...]
    after: str


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
    """Return why a mention cannot be exchanged alone where it stands, or None.

    Args:
        caption: the whole caption.
        mention: the term.
        tui: the type under which it would be exchanged.
    """
    if caption[mention.end : mention.end + 1] in ("/", "'", "\u2019", "\\", "+") or (
        mention.start and caption[mention.start - 1] in "/\\+"
    ):
        return "compound"
    if _LEGEND.search(caption[max(0, mention.start - 40) : mention.start]) or re.match(r"\s*=", caption[mention.end :]):
        return "legend"
    if tui == "T082":
        return None if partners(caption, mention.start, mention.end) else "shape"
    near = neighbours(caption, mention.start, mention.end)
    if not _ends_a_name(near, tui) or not _begins_a_name(near, tui):
        return "compound"
    if tui in _ANATOMY and (_is_named_part(near) or near.after.lower() == "of"):
        return "compound"
    left = caption[max(0, mention.start - 80) : mention.start]
    if _ASIDE.search(left) or (tui in _STATES and _BACKGROUND.search(left)):
        return "background"
    if tui == "T074" and near.after.lower() in _SAYS:
        return "stop_word"  # no device shows anything: an abbreviation with another meaning
    return "said_again" if says_again(caption, mention, mention.text) else None


def refuse_fit(caption: str, mention: Mention, form: str, tui: str) -> str | None:
    """Return why a form does not fit the company of a mention, or None.

    Args:
        caption: the whole caption.
        mention: the term.
        form: the replacement as its terminology spells it.
        tui: the type of both.
    """
    if tui == "T082":
        return None if form.lower() in partners(caption, mention.start, mention.end) else "shape"
    near = neighbours(caption, mention.start, mention.end)
    if _SIDED.match(form) and any(_SIDED.match(w) or w.lower() == "both" for w in near.before[-4:]):
        return "shape"
    if tui == "T060" and not _procedure_fits(near, mention, form):
        return "shape"
    return "already_in_caption" if says_again(caption, mention, form) else None


def says_again(caption: str, mention: Mention, term: str) -> bool:
    """Whether the caption has a term's head word, or another word from its stem, outside a mention."""
    words = re.findall(r"[^\W_]+", fold(term))
    rest = f"{caption[: mention.start]} {caption[mention.end :]}"
    if not words:
        return False
    head = words[-1]
    stem = head if len(head) <= _STEM else head[: max(_STEM, len(head) - 3)]
    return any(w == head or (len(head) > _STEM and w.startswith(stem)) for w in re.findall(r"[^\W_]+", fold(rest)))


def _begins_a_name(near: Neighbours, tui: str) -> bool:
    """Whether the word before a term is no part of its name."""
    if not near.before:
        return True
    word = near.before[-1]
    low = word.lower()
    if tui == "T060" and low in _PROJECTED:
        return False
    if low in FUNCTION or low in MODIFIERS or low in _VERBS:
        return True
    if tui == "T060":
        return low in _TIMES or low in _REGIONS or low in _PLANES
    return low.endswith(("ed", "ing")) and len(low) > 4


def _ends_a_name(near: Neighbours, tui: str) -> bool:
    """Whether the word after a term is no part of a compound with it."""
    word, low = near.after, near.after.lower()
    if not word or low in FUNCTION or low in _VERBS:
        return True
    if tui == "T029" and (word in IMAGING or low in IMAGING):
        return True
    return low.endswith(("ed", "ing")) and len(low) > 4 and low not in IMAGING


def _is_named_part(near: Neighbours) -> bool:
    """Whether a term is the whole of a named part: "neck of the femur"."""
    words = [w.lower() for w in near.before]
    while words and (words[-1] in MODIFIERS or words[-1] in ("the", "a", "an", "this", "both")):
        words.pop()
    return len(words) > 1 and words[-1] == "of" and words[-2] in _PARTS


def _procedure_fits(near: Neighbours, mention: Mention, form: str) -> bool:
    """Whether a procedure may stand behind the words before it: a coronal MRI, never an abdominal chest film."""
    if _ADJECTIVAL.search(form):
        return False
    words = [w.lower() for w in near.before]
    if words and words[-1] in _PLANES:
        return all(
            _SECTIONAL.search(t) and not re.search(r"PET|emission|coher|beam|CB", t) for t in (mention.text, form)
        )
    if words and words[-1] in _REGIONS and _SPECIFIC.search(form):
        return False
    while words and (words[-1] in MODIFIERS or words[-1] in _TIMES or words[-1] in _REGIONS):
        words.pop()
    return not (words and words[-1] in ("a", "an") and _UNCOUNTED.search(form))
