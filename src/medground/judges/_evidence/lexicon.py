"""Words of the twelve tasks: which task a sentence is about, and which way it concludes.

Polarity is the task's own: 1 is enlarged, rotated, AP, deviated, poor inspiration, abnormal angle, and *included*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

#: task -> what names it. A sentence that names another task alone is not about this one.
CUES: dict[str, str] = {
    "inclusion": r"apex|apices|apical|costophrenic|sulc(?:us|i)|margins?\b|borders?\b|captured|coverage|cut off|clipped|"
    r"truncat\w+|on the film|in the (?:picture|frame|image)|inclu\w+|lateral ribs?|whole lungs?|both lungs|gaps?\b",
    "inspiration": r"\bribs?\b|inspir\w+|\bbreath\w*|inhal\w+|diaphragm\w*|hypoinflat\w+|(?:under|well|over|hyper)[\s-]?"
    r"(?:inflat|expand|aerat)\w+|inflat\w+|lung volumes?|expanded",
    "rotation": r"rotat\w+|clavic\w+|spinous|turned\b|turning|twist\w+|oblique\w*|squarely|medial ends?",
    "projection": r"projection|antero-?\s?posterior\w*|postero-?\s?anterior\w*|posterior-anterior|anterior-posterior|scapul\w+|"
    r"shoulder blades?|front to back|back to front",
    "cardiomegaly": r"\bheart\b(?![ -](?:to|trachea|border|point|line))|cardi\w+|\bctr\b|silhouette",
    "mediastinal_widening": r"mediastin\w+",
    "carina_angle": r"carin\w+|bronch\w+|bifurcat\w+|\bangle\b|splayed|splits?\b|\bfork\b",
    "trachea_deviation": r"trachea\b(?!\s*(?:widths?|ratio|line))|tracheal (?:dev|dis|pos|shift|air)\w*|windpipe|air\s?pipe|airway|"
    r"air column",
    "aortic_knob_enlargement": r"\bknob\w*|knuckle|aortic arch|button",
    "ascending_aorta_enlargement": r"ascending (?:aort\w+|part|thoracic)|\bascending\b(?<!descending)",
    "descending_aorta_enlargement": r"descending\b(?! aort\w+ (?:is|runs|appears|looks)? ?(?:not )?(?:tortuous|winding|straight))",
    "descending_aorta_tortuous": r"tortuo\w+|curvatur\w+|winding|winds\b|serpentine|meander\w*|unfold\w+",
}

#: task -> tasks whose words belong to its own sentences, as a reference or a part.
COMPATIBLE: dict[str, frozenset[str]] = {
    "inclusion": frozenset(("inspiration", "carina_angle")),
    "inspiration": frozenset(("inclusion", "rotation")),
    "rotation": frozenset(("projection",)),
    "projection": frozenset(("rotation",)),
    "cardiomegaly": frozenset(("projection",)),
    "mediastinal_widening": frozenset(("projection",)),
    "carina_angle": frozenset(("trachea_deviation",)),
    "trachea_deviation": frozenset(("carina_angle", "mediastinal_widening")),
    "aortic_knob_enlargement": frozenset(("trachea_deviation", "descending_aorta_enlargement")),
    "ascending_aorta_enlargement": frozenset(("trachea_deviation", "cardiomegaly")),
    "descending_aorta_enlargement": frozenset(("trachea_deviation",)),
    "descending_aorta_tortuous": frozenset(("descending_aorta_enlargement", "ascending_aorta_enlargement")),
}

_LARGE = (
    r"enlarg\w+|dilat\w+|(?:too|abnormally|unusually) (?:big|large|wide|broad|prominent)|(?:bigger|larger|wider|broader) than"
    r" (?:it (?:should|ought)|normal|usual|expected|average|we)[\w ]{0,18}|prominent|\bbig\b|increased (?:size|width|in)|"
    r"ectatic|ectasia|aneurysm\w*|widen\w+|too much|exaggerated"
)
_FINE = r"(?:just )?the size it (?:ought to|should) be|no bigger than|ordinary size|usual size|small enough|slim|narrow enough"

#: task -> (words for label 1, words for label 0).
OWN: dict[str, tuple[str, str]] = {
    "inclusion": (
        r"(?:fully|completely|wholly|entirely|all) (?:included|captured|covered|shown|visible|in|on|inside)|(?:lungs?|film|chest) complete\b|"
        r"complete (?:chest|inclusion|coverage|lungs?|study|film)|inclu(?:ded|sion is complete)|(?:all|everything|whole|both)[^.;]{0,60}"
        r"(?:captured|shown|included|on the film|in the (?:picture|frame)|inside the (?:frame|picture)|made it)|sit inside the frame|"
        r"borders? (?:is|are) (?:free|inside)|inside the picture|coverage (?:is )?(?:adequate|complete)|(?:see|visible) all of|"
        r"all of the lungs|complete\b|pass this film",
        r"cut[\s-]?off|clipped|truncated|missing|incomplete\w*|(?:partly|partially) (?:included|outside|cut)|out(?:side)? of the "
        r"(?:image|frame|picture)|outside the (?:image|frame|picture)|runs out|lost\b|excluded|cropped|coverage (?:is )?inadequate",
    ),
    "inspiration": (
        r"poor\w*|shallow|insufficient\w*|inadequate\w*|suboptimal|underinflat\w+|under-inflat\w+|hypoinflat\w+|low lung volumes?|"
        r"falls? short|expirat\w+|hypoventilat\w+|too weak|incomplete breath|not (?:taken )?a full breath",
        r"good|adequate\w*|satisf\w+|sufficient\w*|deep\w*|well[\s-](?:expanded|inflated|inspired|aerated)|breathed in well|"
        r"proper|full (?:breath|inspiration)|\bfull\b|enough|plenty|large breath",
    ),
    "rotation": (
        r"rotat\w+|turned\b|twist\w+|oblique\w*|asymmetric\w*|turning|off[\s-]axis|tilted",
        r"straight|symmetri\w+|squarely|well cent(?:er|r)ed|equidistant|face[sd]? (?:forward|straight|the detector)|true frontal|"
        r"evenly",
    ),
    "projection": (
        r"\bAP\b|antero-?\s?posterior\w*|anterior[\s-](?:to[\s-])?posterior|front to back|portable[\s-]type",
        r"\bPA\b|postero-?\s?anterior\w*|posterior[\s-](?:to[\s-])?anterior|back to front|back was towards the x-ray tube",
    ),
    "cardiomegaly": (
        rf"cardiomegal\w+|{_LARGE}",
        rf"normal[\s-]sized?|regular size|{_FINE}|does(?:n't| not) reach half",
    ),
    "mediastinal_widening": (_LARGE + r"|\bwide\b|\bbroad\b", rf"{_FINE}|\bnarrow\b|slender"),
    "carina_angle": (
        r"splayed|widen\w+|too (?:wide|large|narrow|small|sharp|acute|steep)|(?:wider|larger|more|less|narrower|smaller) than "
        r"(?:we|normal|usual|expected|it)[\w ]{0,18}|obtuse|\bwide\b|\bnarrow\b",
        r"not splayed",
    ),
    "trachea_deviation": (
        r"deviat\w+|displac\w+|too far|shift\w*|(?:pushed|pulled|moved|drawn)\b|off (?:to|the) |off[\s-]cent(?:er|re)|to one side|aside",
        r"(?:in|on|at|along|down|stays? (?:in|on)) the (?:very )?(?:middle|midline|cent(?:re|er))|central\w*|cent(?:er|r)ed|(?<!of the )(?<!of )(?<!vertebral )(?<!beyond the )(?<!past the )\bmidline|"
        r"straight down|in line with|where it belongs",
    ),
    "aortic_knob_enlargement": (_LARGE, _FINE + r"|\bsmall\b"),
    "ascending_aorta_enlargement": (
        _LARGE + r"|bulges? (?:out|past|beyond)|sticks? out",
        _FINE + r"|stays? (?:inside|within|behind)|inside its (?:border|line)",
    ),
    "descending_aorta_enlargement": (_LARGE + r"|\bwide\b|\bbroad\b", _FINE + r"|\bslender\b"),
    "descending_aorta_tortuous": (
        r"tortuo\w+|winding|winds\b|serpentine|meander\w*|unfold\w+|elongated|bends a lot|snak\w+|curvy|sinuous|kinked",
        r"straight\w*|smooth\w*|gentle",
    ),
}
#: What any task may say for "nothing wrong" and "something wrong".
FINE = (
    r"\bnormal\w*|unremarkable|\bfine\b|\bok(?:ay)?\b|within (?:the )?(?:normal )?(?:norms?|limits?|range)|in (?:the )?(?:normal )?range|"
    r"acceptable|as (?:we would |you would |would be )?expect(?:ed)?|what (?:we|you|one) would expect|as it should(?: be)?|ordinary|"
    r"\bregular\b|passes\b|\bnegative\b|physiologic\w*|inconspicuous|not notable"
)
WRONG = (
    r"abnormal\w*|out(?:side)? (?:of )?(?:the )?(?:normal )?(?:range|limits)|patholog\w+|\bpositive\b|suspicious|"
    r"(?:would |to )?flag\b(?: the \w+)?|remarkable|not as it should(?: be)?"
)
#: Which label means "nothing wrong"; projection has none.
GOOD: dict[str, int | None] = {task: {"inclusion": 1, "projection": None}.get(task, 0) for task in CUES}

NEGATION = re.compile(
    r"\b(?:not?|nor|never|none|nothing|neither|without|absent|absence|rules? out|ruled out|excluded|denied|"
    r"far from|free of|cannot be called|hardly|barely|negative for|lack of|fails? to|nowhere)\b|n't\b",
    re.I,
)
#: Negations that follow their word: "deviation absent", "widening: no".
NEGATED_AFTER = re.compile(
    r"^[\s,:=-]*(?:(?:is|are|was|be|can be|has been)\s+)?(?:absent|excluded|ruled out|not (?:present|seen|evident|the case)|no\b|none\b|false\b|unlikely|isn't (?:true|the case))",
    re.I,
)
HEDGE = re.compile(
    r"\b(?:might|may|could|maybe|perhaps|possibl\w+|either (?:way|or)?|hard to (?:say|tell)|uncertain|unclear|"
    r"if\b|whether|when\b|can(?:'t|not) (?:exclude|say|tell|be)|would (?:it|have|be needed|be called|mean)|suspect\w*|equivocal)\b",
    re.I,
)
#: A clause that states a rule and concludes nothing about this patient.
RULE = re.compile(
    r"\b(?:limits?|thresholds?|cut-?\s?offs?|criteri(?:on|a)|normal range|reference|counts? as|counts? (?:only|when)|is called|"
    r"are called|we call|i call|call(?:ed)? (?:it |a )?|"
    r"means?|indicates?|defined|definition|from [\d.]+ (?:on\w*|up\w*)|at least|or more|or less|needed|required|"
    r"need|needs|must|should be|anything|everything|accept\w*|ceiling|minimum|maximum|considered|rule|the mark|up to|"
    r"label as|speak of|is excluded from|only from|counts\b|tortuous from|enlarged from|"
    r"(?:is|as) (?:fine|normal)|(?:i'd|i would) call|bound)\b|>=|<=|=>|[<>]",
    re.I,
)
NO_LABEL = re.compile(
    r"no label|(?:can(?:'t|not)|can not|unable to|impossible to|not possible to) (?:be )?(?:say|tell|call|decide|judge|label\w*|"
    r"conclude\w*|classif\w+|give|assign|determine\w*)|without knowing|view is (?:unknown|not)|unknown view|not recorded|cannot (?:say|be)|"
    r"no (?:conclusion|limit|threshold) (?:can|applies)|undetermined|indeterminate",
    re.I,
)
#: Declines the question as a whole, which withholds more than a label.
REFUSAL = re.compile(
    r"from the image|image provided|image quality|\bas an ai\b|interpret medical|consult a|\bsorry\b|provide a measurement",
    re.I,
)


@dataclass(frozen=True)
class Lexicon:
    """The words of one task, compiled."""

    task: str
    cue: re.Pattern[str]
    terms: re.Pattern[str]

    def polarity(self, match: re.Match[str]) -> int | None:
        """Which label the matched term stands for, before negation."""
        if match["one"] is not None:
            return 1
        if match["zero"] is not None:
            return 0
        good = GOOD[self.task]
        if good is None:
            return None
        return good if match["fine"] is not None else 1 - good


@cache
def lexicon(task: str) -> Lexicon:
    """Return the compiled words of a task."""
    one, zero = OWN[task]
    parts = [f"(?P<wrong>{WRONG})", f"(?P<one>{one})", f"(?P<zero>{zero})", f"(?P<fine>{FINE})"]
    if task == "inclusion":  # "incomplete" before "complete"
        parts[1], parts[2] = parts[2], parts[1]
    flags = re.I if task != "projection" else 0
    return Lexicon(task, re.compile(CUES[task], re.I), re.compile("|".join(parts), flags))


#: Of inclusion's words, those that are never said of another task.
_FOREIGN = CUES | {
    "inclusion": r"margins? to|costophrenic|apices|both lungs|lung inclusion|on the film|lungs (?:is|are) cut"
}


@cache
def foreign(task: str) -> re.Pattern[str]:
    """Words that make a sentence another task's."""
    others = [cue for name, cue in _FOREIGN.items() if name != task and name not in COMPATIBLE[task]]
    return re.compile("|".join(others), re.I)
