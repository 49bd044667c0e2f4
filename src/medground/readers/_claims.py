"""What a reply claims: findings asserted, denied or left open, each with its place; and that all is normal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from medground.readers._assertion import Polarity, polarity
from medground.readers._places import Place, everywhere, places
from medground.readers._text import Piece, clauses, sentences
from medground.readers.lexicon import Term

REFUSAL = re.compile(
    r"\b(?:can't|cannot|can not|unable to|not able to|won't|will not|must decline|not allowed to|not permitted to"
    r"|couldn't|not qualified to|have the (?:ability|capability) to|not capable of|not designed to)\s+"
    r"(?:to\s+)?(?:\w+ly\s+)?(?:assist|help|provide|interpret|diagnose|view|see (?:the |any |this )?(?:image|picture|"
    r"attach|x-ray|scan)|see the attached|analy[sz]e|process|comment|give|offer|access|open|read (?:x-ray|image|medical"
    r"|radiograph)|interpreting|diagnosing|viewing|fulfil)"
    r"|\b(?:as an ai|as a language model|i am an ai|i'm an ai)\b[^.]*\b(?:can't|cannot|not able|unable|don't)\b"
    r"|\bno image (?:was|is|has been) (?:provided|attached|given)|\bplease (?:upload|provide|attach)\b"
    r"|\bno can do\b|\b(?:not|n't) be appropriate\b|\bmust decline\b|\bi decline\b|\b(?:i )?refuse\b"
    r"|\boutside (?:of )?(?:what i can|my)\b|\bagainst (?:my|the) (?:policy|guidelines)\b"
    r"|\[?content[ _]filter(?:ed)?\]?"
    r"|\bi (?:do not|don't) see (?:any |an |the )?(?:image|picture|attachment)"
)
_ABNORMAL = r"(?:abnormal(?:ity|ities)?|findings?|disease|diseases|pathology|lesions?|abnormal findings?|process)"
_FINE = (
    r"(?:normal(?! overlap| variant)|unremarkable|clear|within normal limits|intact|healthy|free of (?:any )?(?:disease"
    r"|abnormalit(?:y|ies)|lesions?|pathology|findings))"
)
_NORMAL = re.compile(
    rf"\b(?:no|without|free of|nil|not any)\s+(?:\w+\s+){{0,3}}?{_ABNORMAL}\b|\bnothing (?:abnormal|to report"
    rf"|remarkable|unusual)"
    rf"|\bnothing\W*$|\bno[ _]findings?\b|\bnad\b|\bnone (?:in|on)\b|^\W*(?:none|nil)\W*$|\bno active disease\b"
    rf"|\b(?:is|are|appears?|looks?|remains?|seems?)\s+(?:\w+ly\s+|of\s+)?{_FINE}\b|^\W*(?:all )?{_FINE}\W*$"
    rf"|\bnormal (?:chest|study|radiograph|x-ray|film|image|scan|examination|heart|cardiac|lungs?|aort|appearance|size"
    rf"|calib|width|contour)|\b(?:of|has|have)\s+(?:a\s+)?normal\b|:\s*{_FINE}\W*$"
    rf"|\b(?:size|width|contour|calib(?:re|er)|silhouette|lungs?|heart|aorta|mediastinum|fields?)\s+{_FINE}\b"
)
_NOT_NORMAL = re.compile(
    r"\bnot (?:normal|clear|unremarkable|healthy|free|within)\b|\b(?:other than|apart from|except|besides|aside from)\b"
    r"|\b(?:may|might|could) be normal\b|\bwhether\b|\?\s*$|\botherwise\b"
)
_WHOLE_PICTURE = re.compile(
    r"\bnormal (?:chest|study|radiograph|x-ray|film|image|scan|examination|appearance)|\bcardiopulmonary|\bnad\b"
)
_PRONOUN = re.compile(
    r"^\W*(?:but |and |which |that )?(?:it|this|that|they|which)?\s*(?:is|are|lies|lie|sits|located)\b"
)
# "shifted to the left" says whither, "confined to the left" says where.
_DIRECTION = re.compile(r"(?<!confined )(?<!limited )(?<!restricted )(?<!isolated )\bto(?:wards?)? (?:the |its )?$")
_LIST = re.compile(
    r"^(?:[\s,/]|and|or|as well as|with|a|an|the|small|large|mild|moderate|severe|some|also|associated)*$"
)


@dataclass(frozen=True)
class Claim:
    """What a reply says of one finding in one place.

    Attributes:
        finding: the name that was asked for.
        polarity: see :func:`medground.readers._assertion.polarity`.
        place: where; None: not said.
        start: of the words in the reply.
        end: of the words.
        home: the organ that the finding always lies on, where it is another than the lung.
        sentence: index of its sentence.
    """

    finding: str
    polarity: Polarity
    place: Place | None
    start: int
    end: int
    home: str = ""
    sentence: int = 0


@dataclass(frozen=True)
class Normal:
    """A statement that nothing is wrong: where (None: everywhere), and its words."""

    place: Place | None
    start: int
    end: int


@dataclass(frozen=True)
class _Mention:
    term: Term
    start: int
    end: int


def claims(text: str, terms: Sequence[Term], landmarks: Sequence[Term] = ()) -> list[Claim]:
    """Return what a cleaned, folded reply claims of some findings, in order.

    Args:
        text: see :mod:`medground.readers._text`.
        terms: the findings that are looked for.
        landmarks: other findings, which take the places that belong to them.
    """
    return [
        claim
        for index, sentence in enumerate(sentences(text))
        for claim in _of_sentence(sentence, index, terms, landmarks)
    ]


def _of_sentence(sentence: Piece, index: int, terms: Sequence[Term], landmarks: Sequence[Term]) -> list[Claim]:
    wanted = {term.name for term in terms}
    mentions = _mentions(sentence, [*terms, *(other for other in landmarks if other.name not in wanted)])
    if not any(mention.term.name in wanted for mention in mentions):
        return []
    where = _places_beside(sentence, mentions)
    parts = clauses(sentence)
    found = []
    for mention in mentions:
        if mention.term.name not in wanted:
            continue
        clause = _around(parts, mention, sentence)
        if REFUSAL.search(clause.text):
            continue
        told = polarity(clause.text, mention.start - clause.start, mention.end - clause.start)
        place = _place_of(mention, mentions, where, sentence)
        found.append(Claim(mention.term.name, told, place, mention.start, mention.end, mention.term.home, index))
    return found


def _mentions(sentence: Piece, terms: Sequence[Term]) -> list[_Mention]:
    found = [
        _Mention(term, sentence.start + match.start(), sentence.start + match.end())
        for term in terms
        for match in term.pattern.finditer(sentence.text)
    ]
    return sorted(found, key=lambda mention: (mention.start, mention.end))


def _places_beside(sentence: Piece, mentions: Sequence[_Mention]) -> list[Place]:
    """Return the places of a sentence that are no part of a finding's own words ("enlarged heart", "aortic knob")."""
    return [
        place
        for place in places(sentence.text, sentence.start)
        if not _DIRECTION.search(sentence.text[: place.start - sentence.start])
        and (
            place.sides
            or place.heights
            or not any(mention.start < place.end and place.start < mention.end for mention in mentions)
        )
    ]


def _around(parts: Sequence[Piece], mention: _Mention, sentence: Piece) -> Piece:
    """Return the clause around a mention; the clauses that it spans, where it spans several."""
    over = [part for part in parts if part.start < mention.end and mention.start < part.end]
    if not over:
        return sentence
    start, end = over[0].start, over[-1].end
    after = next((part for part in parts if part.start >= end), None)
    if after is not None and not sentence.text[mention.end - sentence.start : after.start - sentence.start].strip(" :"):
        end = after.end  # "pneumothorax: absent"
    return Piece(start, sentence.text[start - sentence.start : end - sentence.start])


def _place_of(mention: _Mention, mentions: Sequence[_Mention], where: Sequence[Place], sentence: Piece) -> Place | None:
    """Return the place that belongs to a mention: right before it, after it, or the sentence's subject."""

    def words(start: int, end: int) -> str:
        return sentence.text[max(0, start - sentence.start) : max(0, end - sentence.start)]

    inside = [p for p in where if mention.start <= p.start and p.end <= mention.end and (p.sides or p.heights)]
    if inside:
        return inside[0]
    for place in reversed(where):
        if place.end <= mention.start and len(words(place.end, mention.start).split()) <= 1:
            between = words(place.end, mention.start)
            if not re.search(r"[,;:.]", between) and not _introduced(place, sentence, mentions):
                return place
    for place in where:
        if place.start < mention.end:
            continue
        others = [m for m in mentions if mention.end <= m.start < place.start]
        between = words(mention.end, place.start)
        if others and not _is_list(between, others, mention.end):
            break
        return place if _belongs(between) else None
    first = min(m.start for m in mentions)
    subject = [place for place in where if place.end <= first]
    return subject[-1] if subject else None


def _introduced(place: Place, sentence: Piece, mentions: Sequence[_Mention]) -> bool:
    """Whether a place closes a phrase about an earlier finding: "effusion at the right base and cardiomegaly"."""
    ahead = sentence.text[: place.start - sentence.start]
    return (
        any(m.end <= place.start for m in mentions)
        and re.search(r"\b(?:in|on|at|of|within)\b[^,;]*$", ahead) is not None
    )


def _is_list(between: str, others: Sequence[_Mention], offset: int) -> bool:
    """Whether only joined findings stand before a place: "effusion and atelectasis in the right base"."""
    kept = list(between)
    for other in others:
        for index in range(other.start - offset, min(other.end - offset, len(kept))):
            kept[index] = " "
    words = "".join(kept)
    last = max(other.end for other in others) - offset
    return _LIST.match(words[:last]) is not None


def _belongs(between: str) -> bool:
    """Whether what follows a mention up to a place belongs to the mention: no new statement starts in between."""
    parts = re.split(r"[;:]|,(?!\s*(?:right|left))|\b(?:but|however|while|whereas)\b", between)
    return all(_PRONOUN.match(part) for part in parts[1:] if part.strip())


def normals(text: str) -> list[Normal]:
    """Return the statements of a cleaned, folded reply that nothing is wrong, in order."""
    found = []
    for sentence in sentences(text):
        for clause in clauses(sentence) or [sentence]:
            match = _NORMAL.search(clause.text)
            if match is None or _NOT_NORMAL.search(clause.text) or REFUSAL.search(sentence.text):
                continue
            whole = _WHOLE_PICTURE.search(clause.text) or everywhere(clause.text)
            named = [] if whole else places(clause.text, clause.start)
            found.append(Normal(named[0] if named else None, clause.start + match.start(), clause.start + match.end()))
    return found
