"""Words of the twelve tasks: which task a sentence is about, and which way it concludes.

Polarity is the task's own: 1 is enlarged, rotated, AP, deviated, poor inspiration, abnormal angle, and *included*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from medground.judges._evidence.words import Words

#: task -> what names it. A sentence that names another task alone is not about this one.
CUES: dict[str, str] = {
    "inclusion": r"apex|apices|apical|costophrenic|sulc(?:us|i)|margins?\b|borders?\b|captured|coverage|cut off|clipped|"
    r"truncat\w+|on the film|in the (?:picture|frame|image)|inclu\w+|lateral ribs?|whole lungs?|both lungs|gaps?\b",
    "inspiration": r"\bribs?\b|inspir\w+|\bbreath\w*|inhal\w+|(?:hemi-?)?diaphragm\w*|hypoinflat\w+|(?:under|well|over|hyper)[\s-]?"
    r"(?:inflat|expand|aerat)\w+|inflat\w+|lung volumes?|expanded",
    "rotation": r"rotat\w+|(?<!mid-)clavic\w+|spinous|turned\b|turning|twist\w+|oblique\w*|squarely|medial ends?",
    "projection": r"projection|antero-?\s?posterior\w*|postero-?\s?anterior\w*|posterior-anterior|anterior-posterior|scapul\w+|"
    r"shoulder blades?|front to back|back to front",
    "cardiomegaly": r"\bheart\b(?![ -](?:to|trachea|border|point|line))|cardi\w+|\bctr\b|silhouette",
    "mediastinal_widening": r"mediastin\w+",
    "carina_angle": r"(?:sub-?)?carin\w+|bronch\w+|bifurcat\w+|\bangle\b|splayed|splits?\b|\bfork\b",
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

_THAN = r"(?: than (?:normal|usual|expected|average|typical|customary|healthy|desired|it (?:should|ought)|we|one|you|i)[\w' ]{0,18})"
_LARGE = (
    r"enlarg\w+|dilat\w+|distend\w*|oversized?|(?:too|abnormally|unusually|excessively|overly|unduly) (?:big|large|wide|broad|prominent|"
    rf"thick|great)|(?:bigger|larger|wider|broader|thicker|greater|more(?: \w+)?|sticks? out more){_THAN}|"
    r"prominent|prominence|\bbig\b|(?:is|looks?|appears?|seems?|quite|very|rather) (?:\w+ly )?(?:large|bulky|broad|broadened)|"
    r"increased (?:\w+ )?(?:size|width|cali\w+|diameter|in)|(?:size|width|cali\w+|diameter|ratio|heart|mediastinum|aorta|knob) (?:is )?"
    r"(?:\w+ly )?increased|ectatic|ectasia|aneurysm\w*|widen\w+|too much|exaggerated|bulg(?:ing|es|ed)|swollen|hypertroph\w+|expanded|"
    r"broadened|augmented|thickened|plump|massive|huge|bulky"
)
_FINE = (
    r"(?:just )?the size it (?:ought to|should) be|no bigger than|(?:ordinary|usual|average|typical) (?:size|width|cali\w+|diameter)|"
    r"small enough|slim|narrow enough|undilated|unenlarged|non-?\s?(?:enlarged|dilated|widened|prominent)"
)

#: task -> (words for label 1, words for label 0).
OWN: dict[str, tuple[str, str]] = {
    "inclusion": (
        r"(?:fully|completely|wholly|entirely|totally|all|in full|in (?:its|their) (?:entirety|totality|whole))(?: \w+)? (?:included|captured|covered|shown|"
        r"visible|in|on|inside|imaged|displayed|depicted|seen|contained|visuali[sz]ed|represented|within|there|present)|"
        r"(?:included|captured?s?|covered?s?|shown?s?|imaged|displayed?s?|depicted|visuali[sz]ed|contains?|includes?|images|visible) "
        r"(?:(?:both|the|all|of|whole|entire|lungs?|chest|lung fields?) ){0,4}(?:fully|completely|entirely|in full|in (?:its|their) (?:entirety|totality|whole))|"
        r"(?:captures?|shows?|includes?|covers?|contains?|displays?|images|have|has|get|got|see) (?:both|all|the (?:whole|entire|full|complete)|entire)\b|"
        r"(?:lungs?|film|chest|study|image|radiograph) (?:is |are )?complete\b|(?:adequate|full|sufficient|complete|good|proper) (?:field of view|coverage|inclusion)|(?:inclusion|coverage) (?:is |was )?(?:adequate|full|sufficient|good|proper|satisfactory)|"
        r"(?:lungs?|both|all)[^.;]{0,30} in (?:the )?(?:full )?(?:view|frame|field)|field of view is (?:adequate|full|sufficient|complete)|"
        r"(?:full|whole|entire) (?:chest|lungs?|thorax)\b|complete (?:chest|inclusion|coverage|lungs?|study|film)|inclu(?:ded|sion is complete)|(?:all|everything|whole|both)[^.;]{0,60}"
        r"(?:captured|caught|shown|included|on (?:the )?(?:film|x-?ray)|in the (?:picture|frame|image)|inside the (?:frame|picture|image)|made it|imaged|visible|on there|"
        r"in there|on it|covered|accounted for|visuali[sz]ed)|sit inside the frame|"
        r"borders? (?:is|are) (?:free|inside)|inside the picture|coverage (?:is )?(?:adequate|complete|full|sufficient)|(?:see|visible) all of|"
        r"all of the lungs|complete\b|pass this film",
        r"cut[\s-]?(?:off|away|out)|(?:not|n't|never) (?:on|in|within|inside) (?:the )?(?:film|picture|image|frame|field|radiograph|x-?ray)|clipped|truncated|missing|incomplete\w*|(?:partly|partially|only partially) (?:included|outside|cut|shown|imaged|visible|"
        r"captured|covered)|out(?:side)? of the (?:image|frame|picture|film|field)|outside the (?:image|frame|picture|film|field)|runs? out|"
        r"falls? (?:off|outside)|lost\b|excluded|cropped|coverage (?:is )?(?:inadequate|insufficient|incomplete)|chopped|trimmed|stops? short|(?:inclusion|coverage) (?:is |was )?(?:inadequate|insufficient|incomplete|partial|poor)|cut short|left out|"
        r"omitted|sliced|partial\b|inadequate (?:coverage|inclusion|field)|extends? (?:beyond|past|off)",
    ),
    "inspiration": (
        r"poor\w*|shallow\w*|insufficient\w*|inadequate\w*|sub-?optimal\w*|underinflat\w+|under-inflat\w+|under-?inspir\w+|hypoinflat\w+|"
        r"(?:low|reduced|decreased|diminished|small) (?:lung )?volumes?|volumes? (?:is|are|appears?|looks?|seems?) (?:\w+ly )?(?:low|small)|low-volume|falls? short(?: of (?:an? |the |being )?\w+)?|expirat\w+|"
        r"hypoventilat\w+|too weak|incomplete breath|not (?:taken )?a full breath|limited|reduced|restricted|diminished|weak|submaximal|"
        r"too (?:small|little|few|low)|not reach|superficial|unsatisf\w+|bad\b|under-?expanded|lacking|deficient",
        r"good|adequate\w*|satisf\w+|sufficient\w*|deep\w*|well[\s-](?:expanded|inflated|inspired|aerated)|(?:breathed in|inspired|inhaled|"
        r"inflated|expanded) (?:very |quite )?(?:well|fully|deeply)|fully (?:inflated|expanded|inspired)|proper\w*|full (?:breath|inspiration|inflation)|"
        r"\bfull\b|enough|plenty|large breath|ample|excellent|optimal\w*|nice\w*|great|decent|strong|solid|appropriate|generous",
    ),
    "rotation": (
        r"(?:mal-?)?rotat\w+|turned\b|twist\w+|obliqu\w+|asymmetr\w+|turning|off[\s-]axis|tilted|skewed|angled|crooked\w*|malposition\w*|not square|"
        r"unequal distances?|at an? (?:\w+ )?angle|uneven\w*|mal-?aligned|misaligned|swivel\w*",
        r"straight|symmetri\w+|square(?:ly)?(?: (?:on|to)\b)?|well[ -](?:cent(?:er|r)ed|aligned|positioned)|equidistant|equal distances?|face[sd]? "
        r"(?:forward|straight|the detector)|facing (?:forward|straight|directly|the (?:detector|cassette))|true frontal|evenly|en face|head-?on|"
        r"cent(?:er|r)ed between|midway|half-?way|aligned|neutral|proper(?:ly)? (?:position\w*|aligned)",
    ),
    "projection": (
        r"\bAP\b|(?i:antero[-\s]*posterior\w*|anterior[\s-](?:to[\s-])?posterior|front[\s-]to[\s-]back|portable[\s-]type|facing the (?:tube|source|beam))|"
        r"\bap\b(?= (?:view|film|projection|image|x-?ray|radiograph|chest|picture|shot))",
        r"\bPA\b|(?i:postero[-\s]*anterior\w*|posterior[\s-](?:to[\s-])?anterior|back[\s-]to[\s-]front|back (?:was )?towards? the (?:x-ray )?tube|"
        r"facing the (?:detector|cassette|plate))|\bpa\b(?= (?:view|film|projection|image|x-?ray|radiograph|chest|picture|shot))",
    ),
    "cardiomegaly": (
        rf"cardiomegal\w+|(?<!\d )cm\b|cardiac enlargement|{_LARGE}",
        rf"normal[\s-]sized?|regular size|{_FINE}|does(?:n't| not) reach (?:half|0\.5)",
    ),
    "mediastinal_widening": (_LARGE + r"|\bwide\b|\bbroad\b", rf"{_FINE}|\bnarrow\b|slender"),
    "carina_angle": (
        r"splay\w+|widen\w+|too (?:wide|large|narrow|small|sharp|acute|steep|obtuse|big|open|tight|closed)|(?:wider|larger|more|less|narrower|smaller|"
        rf"bigger|steeper|sharper|tighter|more \w+){_THAN}|obtuse|\bwide\b|\bnarrow(?:ed)?\b|increased|reduced|decreased|enlarg\w+|flattened",
        r"not splayed",
    ),
    "trachea_deviation": (
        r"deviat\w+|displac\w+|too far|shift\w*|(?:pushed|pulled|moved|drawn|tugged|dragged|bent|bowed|tilted|swayed|nudged|deflected)\b"
        r"(?: \w+){0,2}?(?: (?:off|from|of) the (?:midline|middle|cent\w+))?|off (?:to|the )(?: ?(?:midline|middle|cent\w+|median))?|"
        r"off[\s-](?:cent(?:er|re)|mid-?line)|to one side|aside|(?:away |offset |well )?from (?:the )?(?:midline|middle|cent(?:re|er))|"
        r"(?:lean|veer|drift|swerv|bow|bend|deflect|curv|tilt)(?:s|ed|ing|es)\b|"
        r"\bdev\b|leav(?:e|es|ing) (?:the )?(?:midline|middle)|eccentric\w*|lateral(?:i[sz]ed)|out of (?:the )?(?:midline|middle|place|line)",
        r"(?:in|on|at|along|down|stays? (?:in|on)) the (?:very )?(?:middle|midline|cent(?:re|er))|central\w*|cent(?:er|r)ed|"
        r"(?<!of the )(?<!of )(?<!vertebral )(?<!beyond the )(?<!past the )(?<!from the )(?<!off the )(?<!right of )(?<!left of )\bmid-?line|straight down|in line with|where (?:it|we|one|you|i) "
        r"(?:belongs?|should|ought|expect\w*|want\w*|would|like)|(?:dead|bang|smack|spot)[\s-](?:on )?(?:in )?(?:the )?(?:cent(?:re|er)|middle)|undisplaced|undeviated|in (?:its )?(?:normal|usual|expected|proper) (?:position|place)|aligned|in place\b|"
        r"straight\b",
    ),
    "aortic_knob_enlargement": (_LARGE, _FINE + r"|\bsmall\b"),
    "ascending_aorta_enlargement": (
        _LARGE + r"|bulges? (?:out|past|beyond)|sticks? out",
        _FINE + r"|stays? (?:inside|within|behind)|inside its (?:border|line)",
    ),
    "descending_aorta_enlargement": (_LARGE + r"|\bwide\b|\bbroad\b", _FINE + r"|\bslender\b"),
    "descending_aorta_tortuous": (
        r"tortuo\w+|winding|winds\b|serpentine|serpiginous|meander\w*|unfold\w+|elongated|bend(?:s|ing)?\b(?! with)|snak\w+|curv(?:y|ed|es|ing)\b(?! (?:edge|border|"
        r"outline))|sinuous|kink\w*|wavy|undulat\w+|crooked\w*|twist\w*|s-shaped|loop(?:s|ing|ed)\b|zigzag\w*|squiggl\w+|convoluted|not straight",
        r"straight\w*|smooth\w*|gentle|\blinear\b|direct course",
    ),
}
#: What any task may say for "nothing wrong" and "something wrong".
FINE = (
    r"\bnormal\w*|unremarkable|\bfine\b|\bok(?:ay)?\b|within (?:the )?(?:normal )?(?:norms?|limits?|range)|in (?:the )?(?:normal )?range|"
    r"acceptable|as (?:we would |you would |would be )?expect(?:ed)?|(?:what|where|how|angle|size|width|position|course|value) (?:we|you|one|i)(?: would|'d)? (?:normally |usually )?expect\w*|as it should(?: be)?|ordinary|"
    r"\bregular\b|\bpasses\b|\bnegative\b(?! for)|physiologic\w*|inconspicuous|not notable|preserved|\bintact\b|maintained|\bhealthy\b|"
    r"\baverage\b|(?:is|are|looks?|appears?|seems?|perfectly|all|quite|pretty|just|in) (?:good|great|perfect|appropriate|proper|right)\b|"
    r"\bbenign\b|reassuring|(?:un|not )problematic"
)
WRONG = (
    r"abnormal\w*|out(?:side)? (?:of )?(?:the )?(?:normal )?(?:range|limits)|patholog\w+|\bpositive\b|suspicious|"
    r"(?:would |to )?flag\b(?: the \w+)?|remarkable|not as it should(?: be)?|(?:is|are|looks?|seems?) (?:concerning|worrisome|worrying|alarming|off)\b|"
    r"positive for|anomalous|anomal(?:y|ies)"
)
#: Which label means "nothing wrong"; projection has none.
GOOD: dict[str, int | None] = {task: {"inclusion": 1, "projection": None}.get(task, 0) for task in CUES}

NEGATION = Words(
    r"\b(?:not?|nor|never|none|nothing|neither|without|absent|absence|rules? out|ruled out|excluded|denied|"
    r"far from|free of|cannot be called|hardly|barely|negative for|lacks?(?: of)?|fails? to|nowhere|cannot|scarcely|disagree\w*)\b",
    also=r"n't\b",
)
#: Negations that follow their word: "deviation absent", "widening: no".
NEGATED_AFTER = re.compile(
    r"^[\s,:=-]*(?:(?:is|are|was|be|can be|has been)\s+)?(?:absent|excluded|ruled out|not (?:present|seen|evident|the case)|no\b|none\b|false\b|unlikely|isn't (?:true|the case))",
    re.I,
)
HEDGE = Words(
    r"\b(?:might|may|could(?! not be (?:call|consider|describ|regard))|maybe|perhaps|possibl\w+|either (?:way|or)?|hard to (?:say|tell)|uncertain|unclear|"
    r"if\b|whether|when\b(?! the (?:film|image|picture|radiograph|x-ray|exposure|shot|photo))|can(?:'t|not) (?:exclude|say|tell|rule|be "
    r"(?:determin|assess|judg|exclud|said|told|ruled|decid|classif|conclud|label|sure|certain|establish|evaluat)\w*)|would (?:it|have|be needed|be called|mean)|suspect\w*|equivocal)\b",
)
#: A clause that states a rule and concludes nothing about this patient.
RULE = Words(
    r"\b(?:limits?|thresholds?|cut-?\s?offs?|criteri(?:on|a)|normal range|reference|counts? as|counts? (?:only|when)|is called|"
    r"are called|we call|i call|call(?:ed)? (?:it |a )?|"
    r"means?|indicates?|defined|definition|from [\d.]+ (?:on\w*|up\w*)|at least|or more|or less|needed|required|"
    r"need|needs|must|has to|have to|should be|anything|everything|accept\w*|ceiling|minimum|maximum|considered|rule|the mark|up to|"
    r"label as|speak of|is excluded from|only from|counts\b|tortuous from|enlarged from|"
    r"(?:is|as) (?:fine|normal)|(?:i'd|i would) call|bound|what (?:we|one|you)(?:'d| would)? (?:normally |usually )?expects?)\b",
    also=r">=|<=|=>|[<>]",
)
NO_LABEL = Words(
    r"no label|(?:can(?:'t|not)|can not|unable to|impossible to|not possible to) (?:be )?(?:say|tell|call|decide|judge|label\w*|"
    r"conclude\w*|classif\w+|give|assign|determine\w*)|without knowing|view is (?:unknown|not)|unknown view|not recorded|cannot (?:say|be)|"
    r"leave (?:the |it |this )?(?:label |conclusion |question |answer )?open|depends on (?:the |whether )?(?:it|view|projection)|(?:view|projection)[^.;]{0,20}(?:was|is|were|has)(?:n't| not| un)|"
    r"not (?:given|stated|provided|known|specified|told)|withh(?:o|e)ld|no (?:conclusion|limit|threshold) (?:can|applies)|undetermined|indeterminate",
)
#: Declines the question as a whole, which withholds more than a label.
REFUSAL = Words(
    r"from the image|image provided|image quality|\bas an ai\b|interpret medical|consult a|\bsorry\b|provide a measurement",
)


_LIMIT = r"(?: (?:the|our|its|that|this|an?))?(?:(?: [\w.-]+){0,3}? (?:limits?|thresholds?|cut-?\s?offs?|criteri(?:on|a)|mark|ceiling|bound|requirements?|minimum|maximum)\b| \.?\d)"
#: A value that is compared with its limit, which concludes where nothing else does: above, and below.
COMPARED = Words(
    rf"(?P<above>(?:exceed\w*|surpass\w*|above|over|past|beyond|more than|greater than|higher than|meets?|met|reach\w*|hits?|fulfil\w*|satisf\w+|"
    rf"crosse?s?|clears?|passes){_LIMIT})|(?P<below>(?:below|under|beneath|less than|fewer than|lower than|smaller than|short of|within|inside){_LIMIT})|"
    r"(?P<out>\boutrange\b)",
)
#: What a value above the limit concludes, by task; the others' limits are no single number.
ABOVE: dict[str, int] = {
    "inclusion": 1, "inspiration": 0, "rotation": 0, "cardiomegaly": 1, "mediastinal_widening": 1, "aortic_knob_enlargement": 1,
    "descending_aorta_enlargement": 1, "descending_aorta_tortuous": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Lexicon:
    """The words of one task, compiled."""

    task: str
    cue: Words
    terms: Words | re.Pattern[str]

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
    terms = "|".join(parts)
    return Lexicon(task, Words(CUES[task]), re.compile(terms) if task == "projection" else Words(terms))


#: Of the words of some tasks, those that are never said of another.
_FOREIGN = CUES | {
    "carina_angle": r"(?:sub-?)?carin\w+|bronch\w+|bifurcat\w+|splayed|\bangle\b(?<!at an angle)(?<!slight angle)(?<!small angle)",
    "inclusion": r"margins? to|costophrenic|apices|both lungs|lung inclusion|on the film|lungs (?:is|are) cut",
}


@cache
def foreign(task: str) -> Words:
    """Words that make a sentence another task's."""
    others = [cue for name, cue in _FOREIGN.items() if name != task and name not in COMPATIBLE[task]]
    return Words("|".join(others))
