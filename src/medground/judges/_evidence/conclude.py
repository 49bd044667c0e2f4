"""Which way a reply concludes, and words that stand for values: sides of the trachea, parts that are cut off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from medground.judges._evidence.idioms import plain
from medground.judges._evidence.lexicon import ABOVE, COMPARED, GOOD, HEDGE, NEGATED_AFTER, NEGATION, RULE, lexicon
from medground.judges._evidence.numbers import numbers
from medground.judges._evidence.split import clauses
from medground.judges._evidence.words import Words

#: Clauses that state a rule even without a number.
_ALWAYS_RULE = Words(
    r"\b(?:counts? (?:as|only|when)|(?:is|are) called|normal range|reference (?:interval|range)|"
    r"anything|at least|or more|we accept|would have to|only from|is what we call|would be needed|"
    r"(?:threshold|limit|criterion|cut-?off) (?:for|of) (?!\\d)|would be (?:enlarge|abnormal|normal|wide|dilat)|(?:none|nothing|0) (?:is|as) normal|"
    r"for a level|needed to|to call|both (?:less|below)|counts\b|(?:one|we|i|you)(?:'d| would| should| only| can)? (?:only )?(?:speak|talk) of|(?:from|above|below|beyond|over|under) which|range we label|would be the minimum)",
    also=r">=",
)
_FINAL = re.compile(
    r"^(?:(?:since|as) (?:both|neither|the|it|this)|so|hence|thus|therefore|this|that makes|i\.?e\.?|overall|in (?:summary|short)|conclusion|verdict|result|final)\b",
    re.I,
)
_ELLIPSIS = re.compile(
    r"^(?:so |and |but |here,? |hence |in this case,? )?(?:(?:it|this|that|which|they|he|she)\b|the [a-z ]{3,40}(?= (?:is|does|are|was)(?: not|n't))) "
    r"(?P<not>isn't|is not|does(?:n't| not)|are(?:n't| not)|was(?:n't| not)|has(?:n't| not))?(?P<is>is|does|are|was|has)?(?: here| so| the case)?\s*(?:\([^)]*\))?[.!]?$",
    re.I,
)
#: A comparison whose subject is the value, though it holds words of the rule: "this does not meet the 0.55 threshold".
_OF_THE_VALUE = re.compile(
    r"^(?:which|this|that|it|and this) (?:is|was|are|lies|falls|stays|remains|does|do|meets?|exceeds?|reaches|surpasses)\b(?! called)",
    re.I,
)
_CASE = Words(r"\b(?:that|this|which) is (?:indeed )?the case\b|\bapplies here\b|\bis met\b")
_STATED = re.compile(r"^\s*(?:>=?|<=?|at least|from|up to)?\s*[\d.]+(?: or (?:more|less))?\s*:", re.I)
_YES_NO = re.compile(r"^(?:so |hence |and )?(yes|no)\b[\s,.!:]*(?:indeed|quite clearly|definitely)?\s*[.!]?$", re.I)
_FIRST = re.compile(r"^\W*(yes|no)\b", re.I)
_EVALUATING = Words(
    r"\b(?:noticeabl\w+|striking\w*|mild\w*|marked\w*|moderate\w*|significant\w*|borderline|generous\w*|impressive|worri\w+|concern\w*|"
    r"reassuring|healthy|bad|great|excellent|perfect\w*|severe\w*|bulky|chunky|sizeable|massive|huge|tiny|odd|unusual\w*|typical\w*|"
    r"excessive\w*|limited|reduced|diminished|decreased|increased|favourable|favorable|correct|proper\w*|dubious|questionable)\b",
)
_IMAGE_SIDE = re.compile(
    r"(?:\b(?:on|to|towards) )?(?:the )?(?:(?:image|picture|film|viewer|observer)(?:'s)?[\s-](?:left|right)(?: side)?|"
    r"(?:left|right)(?: side)? of the (?:image|picture|film)|side that appears on the (?:left|right)(?: side)? of the image)",
    re.I,
)
_IDIOM = re.compile(r"\bright (?:in|on|at|down|through|along|where)\b|\b(?:all|that's|quite) right\b", re.I)
_DIRECTION = re.compile(r"\b(right|left)(?:wards?|[\s-]hand(?: side)?)?\b", re.I)
_LETTER = re.compile(r"\b(to|towards?|the|on|patient's|pt) ([RL])\b")
_OFF_LINE = re.compile(
    r"\b(off|from|(?:right|left)(?: side)?(?: of)?|one side of|out of|beyond|past) (?:the )?(?:vertebral |spinal )?(?:mid-?line|middle|cent(?:re|er))\b",
    re.I,
)
_MIDDLE = Words(
    r"\b(?:midline|mid[\s-]line|middle|central\w*|cent(?:re|er)(?:ed)?|touch\w*|straight down|in line|where it belongs|flat|none)\b",
)
_WHOLE = Words(r"\b(?:whole|wholly|entire\w*|complete\w*|full\w*|all of)\b")
_MUST = Words(r"\b(?:counts?|only|rules?|must|has to|have to|before i count|required|criteri\w+)\b")
_CUT = re.compile(
    r"\b(right|left)\s+(?:\w+\s+)?(apex|apices|costophrenic|angle|lung|border|side|margin|rib|top|bottom|sulcus)\w*",
    re.I,
)
_LOST = Words(
    r"cut[\s-]?off|clipped|truncat\w+|missing|lost|outside|not (?:included|captured|shown)|cropped|runs out|excluded",
)


#: A judging word that only names the numbers behind it: "(acceptable: 0.4 or above)".
_LABELLED = re.compile(
    r"\b((?:acceptable|normal|expected|adequate|allowed|desired|abnormal|enlarged|widened|positive|good|ok)\b)"
    r"(?:[\s:=(>]|\b(?:is|are|would|will|be|lies|runs|goes|of|an?|the|angles?|ratios?|range|values?|at|least|from|up|to|below|under|over|above|between|anything|starts|begins)\b)*[:=>\s](\d*\.?\d+)",
    re.I,
)
_PART = Words(r"\b(?:apex|apices|apical|sides?|lateral\w*|bottom|bases?|basal|tops?|margins?|costophrenic|sulci)\b")
_LUNGS = Words(r"\b(?:lungs?|chest|film|image|picture|all|everything|nothing|every|field|coverage|inclusion)\b")


@dataclass
class Concluded:
    """What a request's sentences conclude.

    Attributes:
        polarities: every label that was claimed.
        unread: clauses with a judging word outside the lexicon.
        elliptic: whether "it is" or "it is not" was said without a word behind it.
    """

    polarities: list[int] = field(default_factory=list)
    unread: int = 0
    elliptic: bool | None = None


def conclude(task: str, sentences: Sequence[str], limits: Sequence[float]) -> Concluded:
    """Read the labels that the sentences claim.

    >>> conclude("cardiomegaly", ["0.57, so the heart is not of normal size"], [0.5]).polarities
    [1]
    """
    out = Concluded()
    weak: list[int] = []
    for raw in sentences:
        sentence = _LABELLED.sub(lambda m: m[0][len(m[1]) :] if _is(float(m[2]), limits) else m[0], plain(raw))
        parts = clauses(sentence)
        if _is_rule_sentence(task, sentence, parts, limits):
            continue
        rule: list[int] | None = None
        for part in parts:
            if _is_rule(part, limits):
                rule = clause_polarity(task, part)
                weak += _compared(task, part) if _OF_THE_VALUE.match(part) else []
                continue
            short = _ELLIPSIS.match(part)
            if rule and (_CASE.search(part) or short):
                denied = short is not None and short["not"] is not None
                out.polarities.append(1 - rule[-1] if denied else rule[-1])
                continue
            if short is not None:
                out.elliptic = short["not"] is None
            if HEDGE.search(part):
                continue
            read = clause_polarity(task, part)
            if read is None:
                out.unread += _EVALUATING.search(part) is not None
                weak += _compared(task, part)
            elif task == "inclusion" and _one_part(part):
                weak += read
            else:
                out.polarities += read
    if not out.polarities:
        out.polarities = weak
    return out


def _is(value: float, limits: Sequence[float]) -> bool:
    return any(abs(value - limit) <= 1e-9 for limit in limits)


def _compared(task: str, clause: str) -> list[int]:
    """The labels that comparisons with an unnamed limit stand for."""
    out = []
    of_the_value = _OF_THE_VALUE.match(clause) is not None
    for match in COMPARED.finditer(clause):
        if match[0][-1].isdigit() and not of_the_value:
            continue
        good = GOOD[task]
        above = ABOVE.get(task) if match["out"] is None else None if good is None else 1 - good
        if above is not None:
            flipped = _denied(clause, match.start()) != (match["below"] is not None)
            out.append(1 - above if flipped else above)
    return out


def _one_part(clause: str) -> bool:
    """Whether a clause finds some parts of the lungs fine, and says nothing of the others."""
    return _PART.search(clause) is not None and _LUNGS.search(clause) is None and _LOST.search(clause) is None


def clause_polarity(task: str, clause: str) -> list[int] | None:
    """The labels that the judging words of a clause stand for, negation counted; None where it holds none."""
    words = lexicon(task)
    out = []
    for match in words.terms.finditer(clause):
        label = words.polarity(match)
        if label is None:
            continue
        before = clause[: match.start()]
        parity = sum(1 for n in NEGATION.finditer(before) if n[0].lower() != "nor")
        if NEGATED_AFTER.match(clause[match.end() :]):
            parity += 1
        out.append(label if parity % 2 == 0 else 1 - label)
    return out or None


def bare_answer(text: str, query: str, task: str) -> int | None:
    """A yes or no that stands alone, read against the question."""
    match = _FIRST.match(text)
    word = match[1].lower() if match else None
    for sentence in re.split(r"[.!\n]", text):
        for part in clauses(sentence):
            if (alone := _YES_NO.match(part)) is not None:
                word = word or alone[1].lower()
    if word is None:
        return None
    asked = clause_polarity(task, re.sub(r"n't\b|\bnot\b", " ", query.partition("?")[0]))
    label = (
        asked[-1]
        if asked
        else (1 if task not in ("inspiration", "carina_angle", "trachea_deviation", "projection") else None)
    )
    if label is None:
        return None
    return label if word == "yes" else 1 - label


def directions(sentences: Sequence[str]) -> list[str]:
    """Sides of the trachea that were claimed: ``right``, ``left``, ``flat``, or an ordered pair."""
    out = []
    for sentence in sentences:
        for part in re.split(r";\s+|,\s+(?=as\b|so\b|but\b|it\b|which\b)", sentence):
            if is_side_rule(part) or HEDGE.search(part):
                continue
            text = _LETTER.sub(lambda m: f"{m[1]} {'right' if m[2] == 'R' else 'left'}", _OFF_LINE.sub(r"\1 off", part))
            text = _IDIOM.sub(" middle " if "middle" in part else " ", _IMAGE_SIDE.sub(" ", text))
            sides = [m[1].lower() for m in _DIRECTION.finditer(text) if not _denied(text, m.start())]
            if sides:
                out.append("&".join(dict.fromkeys(sides)))
            elif (match := _MIDDLE.search(text)) is not None and not _denied(text, match.start()):
                out.append("flat")
    return out


def is_side_rule(text: str) -> bool:
    """Whether a clause says when a level counts."""
    return _WHOLE.search(text) is not None and _MUST.search(text) is not None and not re.search(r"\bmost\b", text)


def cut_off(sentences: Sequence[str]) -> list[str]:
    """Sides of the parts that were said to be cut off."""
    out = []
    for sentence in sentences:
        for part in clauses(sentence):
            lost = _LOST.search(part)
            if lost is None or NEGATION.search(part[: lost.start()]):
                continue
            out += [match[1].lower() for match in _CUT.finditer(part)]
            out += [
                m[1].lower() for m in re.finditer(r"\bat the (right|left)\b|\b(right|left) top\b", part, re.I) if m[1]
            ]
    return out


def _denied(text: str, at: int) -> bool:
    return sum(1 for _ in NEGATION.finditer(text[:at])) % 2 == 1


def _numbers(text: str, limits: Sequence[float]) -> tuple[bool, bool]:
    stated = [n.value / 100 if n.unit == "%" else n.value for n in numbers(text) if n.unit != "count"]
    limit = any(abs(v - t) <= 1e-9 for v in stated for t in limits)
    other = any(all(abs(v - t) > 1e-9 for t in limits) for v in stated)
    return limit, other


def _is_rule(clause: str, limits: Sequence[float]) -> bool:
    if _ALWAYS_RULE.search(clause) or is_side_rule(clause):
        return True
    if RULE.search(clause) is None:
        return False
    limit, other = _numbers(clause, limits)
    return limit and not other


def _is_rule_sentence(task: str, sentence: str, parts: Sequence[str], limits: Sequence[float]) -> bool:
    """A whole sentence that states the rule: "at 0.3 or more: AP"."""
    if any(_FINAL.match(part) for part in parts):
        return False
    if task == "projection":
        both = re.search(r"\bAP\b", sentence) and re.search(r"\bPA\b", sentence) and _ALWAYS_RULE.search(sentence)
        if both:
            return True
        limit, other = _numbers(sentence, limits)
        return _ALWAYS_RULE.search(sentence) is not None and not other and "speaks" not in sentence
    if task == "ascending_aorta_enlargement":
        limit, other = _numbers(sentence, [t for t in limits if t > 0])
        other = _numbers(sentence, limits)[1]
        return (
            limit and not other and re.search(r"\b(?:none|nothing|0)\b", sentence) is not None and "(0" not in sentence
        )
    if _STATED.match(sentence):
        limit, other = _numbers(sentence, limits)
        return limit and not other
    return False
