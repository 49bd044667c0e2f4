"""Which way a reply concludes, and words that stand for values: sides of the trachea, parts that are cut off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from medground.judges._evidence.lexicon import HEDGE, NEGATED_AFTER, NEGATION, RULE, lexicon
from medground.judges._evidence.numbers import numbers
from medground.judges._evidence.split import clauses

#: Clauses that state a rule even without a number.
_ALWAYS_RULE = re.compile(
    r"\b(?:counts? (?:as|only|when)|(?:is|are) called|means? (?:no |AP|PA|that)|indicates?|normal range|reference (?:interval|range)|"
    r"anything|at least|or more|we accept|must be|has to be|have to be|would have to|only from|is what we call|would be needed|"
    r"(?:threshold|limit|criterion|cut-?off) (?:for|of) (?!\\d)|would be (?:enlarge|abnormal|normal|wide|dilat)|(?:none|nothing|0) (?:is|as) normal|"
    r"for a level|needed to|to call|both (?:less|below)|counts\b|we only speak of|range we label|would be the minimum)|>=",
    re.I,
)
_FINAL = re.compile(
    r"^(?:so|hence|thus|therefore|this|that makes|i\.?e\.?|overall|in (?:summary|short)|conclusion|verdict|result|final)\b",
    re.I,
)
_CASE = re.compile(r"\b(?:that|this|which) is (?:indeed )?the case\b|\bapplies here\b|\bis met\b", re.I)
_STATED = re.compile(r"^\s*(?:>=?|<=?|at least|from|up to)?\s*[\d.]+(?: or (?:more|less))?\s*:", re.I)
_YES_NO = re.compile(r"^(?:so |hence |and )?(yes|no)\b[\s,.!:]*(?:indeed|quite clearly|definitely)?\s*[.!]?$", re.I)
_FIRST = re.compile(r"^\W*(yes|no)\b", re.I)
_EVALUATING = re.compile(
    r"\b(?:noticeabl\w+|striking\w*|mild\w*|marked\w*|moderate\w*|significant\w*|borderline|generous\w*|impressive|worri\w+|concern\w*|"
    r"reassuring|healthy|bad|great|excellent|perfect\w*|severe\w*|bulky|chunky|sizeable|massive|huge|tiny|odd|unusual\w*|typical\w*|"
    r"excessive\w*|limited|reduced|diminished|decreased|increased|favourable|favorable|correct|proper\w*|dubious|questionable)\b",
    re.I,
)
_IMAGE_SIDE = re.compile(
    r"(?:\b(?:on|to|towards) )?(?:the )?(?:(?:image|picture|film|viewer|observer)(?:'s)?[\s-](?:left|right)(?: side)?|"
    r"(?:left|right)(?: side)? of the (?:image|picture|film)|side that appears on the (?:left|right)(?: side)? of the image)",
    re.I,
)
_IDIOM = re.compile(r"\bright (?:in|on|at|down|through|along|where)\b|\b(?:all|that's|quite) right\b", re.I)
_DIRECTION = re.compile(r"\b(right|left)(?:wards?|[\s-]hand(?: side)?)?\b", re.I)
_MIDDLE = re.compile(
    r"\b(?:midline|mid[\s-]line|middle|central\w*|cent(?:re|er)(?:ed)?|touch\w*|straight down|in line|where it belongs|flat|none)\b",
    re.I,
)
_WHOLE = re.compile(r"\b(?:whole|wholly|entire\w*|complete\w*|full\w*|all of)\b", re.I)
_MUST = re.compile(r"\b(?:counts?|only|rules?|must|has to|have to|before i count|required|criteri\w+)\b", re.I)
_CUT = re.compile(
    r"\b(right|left)\s+(?:\w+\s+)?(apex|apices|costophrenic|angle|lung|border|side|margin|rib|top|bottom|sulcus)\w*",
    re.I,
)
_LOST = re.compile(
    r"cut[\s-]?off|clipped|truncat\w+|missing|lost|outside|not (?:included|captured|shown)|cropped|runs out|excluded",
    re.I,
)


@dataclass
class Concluded:
    """What a request's sentences conclude.

    Attributes:
        polarities: every label that was claimed.
        unread: clauses with a judging word outside the lexicon.
    """

    polarities: list[int] = field(default_factory=list)
    unread: int = 0


def conclude(task: str, sentences: Sequence[str], limits: Sequence[float]) -> Concluded:
    """Read the labels that the sentences claim.

    >>> conclude("cardiomegaly", ["0.57, so the heart is not of normal size"], [0.5]).polarities
    [1]
    """
    out = Concluded()
    for sentence in sentences:
        parts = clauses(sentence)
        if _is_rule_sentence(task, sentence, parts, limits):
            continue
        rule: list[int] | None = None
        for part in parts:
            if _is_rule(part, limits):
                rule = clause_polarity(task, part)
                continue
            if rule and _CASE.search(part):
                out.polarities.append(rule[-1])
                continue
            if HEDGE.search(part):
                continue
            read = clause_polarity(task, part)
            if read is None:
                out.unread += _EVALUATING.search(part) is not None
            else:
                out.polarities += read
    return out


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
            text = _IDIOM.sub(" middle " if "middle" in part else " ", _IMAGE_SIDE.sub(" ", part))
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
