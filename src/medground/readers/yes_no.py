"""Yes or no about one finding in one place, from a free reply.

What counts is where the reply stands at its end on this finding in this region. The order of the rules: reasoning,
chat tokens and location sentences are no answer; then structured answers, explicit answer fields, a leading or closing
word, statements about the finding, statements that the region is normal, refusals, hedges. Two answers that exclude
each other are unreadable. Nothing is ever taken for a yes, or a no, because no rule applies.
"""

from __future__ import annotations

import re
from typing import ClassVar

from medground.readers._answers import ANSWER_FIELDS, Word, boxes_and_tables, leading_word, short_answer, structured
from medground.readers._assertion import SOURCES
from medground.readers._claims import REFUSAL, Claim, claims, normals
from medground.readers._places import Place, region_of
from medground.readers._text import fold, overlong, without_frame, without_markup
from medground.readers.base import Question, Reading, fingerprint_of
from medground.readers.lexicon import CONCEPTS, LEXICON_VERSION, Term, known, term

_CORRECTION = re.compile(
    r"\b(?:wait|correction|final answer|on (?:second|closer) (?:thought|look|inspection)|actually|i was wrong"
    r"|let me correct"
    r"|scratch that|to correct myself|looking again)\b"
)
_NO_ANSWER_LEAD = re.compile(
    r"^\W*(?:yes|sure|okay|ok|certainly|of course)\W+(?:i|we)\s+(?:understand|can see (?:the|that|your)"
    r"|see (?:the|your) "
    r"(?:image|picture|question)|know|get|can help|will help|would be happy)|^\W*no\W*(?:problem|worries|issue"
    r"|trouble)\b"
)
_UNCERTAIN = re.compile(
    r"\b(?:unclear|uncertain|unsure|not (?:entirely |quite |completely )?(?:sure|certain|clear)|equivocal|indeterminate"
    r"|inconclusive|borderline|undetermined|50/50|fifty-fifty)\b"
    r"|\b(?:cannot|can't|can not|could not|couldn't|unable to|not able to|difficult to|hard to|not possible to"
    r"|impossible to|insufficient to|inadequate to|too [a-z]+ to)\s+(?:\w+ly\s+)?(?:be\s+)?(?:determine|tell|say|assess"
    r"|judge|evaluate|answer|exclude|rule out|confirm|decide|be sure|be certain|distinguish|conclude|know)"
    r"|\b(?:further|additional) (?:evaluation|imaging|views?|information|studies|investigation)\b"
    r"|\b(?:not|n't)\s+(?:\w+\s+)?(?:enough|sufficient)\b|\bwould need\b|\bneeds? to be (?:confirmed|checked)\b"
    r"|\binsufficient (?:information|evidence|quality)|\b(?:might|may|could|possibly|perhaps|maybe)\b"
    r"|\bneither .* nor\b"
)
# The question said again before the answer.
_ECHO = re.compile(r"\A\s*(?:question:?\s*)?(?:is|are|does|do|can|has|have|which|what)\b[^.?!\n]*\?(?=.*\w)", re.DOTALL)
_ONLY_THERE = re.compile(r"\b(?:only|confined to|limited to|restricted to|solely|exclusively|isolated to)\b")


class YesNo:
    """The rule-based reader of yes and no; it needs no model."""

    name: ClassVar[str] = "yes_no"
    version: ClassVar[str] = "1"

    def fingerprint(self) -> str:
        """See :class:`medground.readers.base.Reader`."""
        lexicon = [(concept.key, concept.names, concept.pattern) for concept in CONCEPTS]
        return fingerprint_of(self.name, self.version, LEXICON_VERSION, lexicon, SOURCES, _UNCERTAIN.pattern)

    def read(self, question: Question, reply: str) -> Reading:
        """Return ``yes`` or ``no``, or why there is neither.

        Args:
            question: ``finding`` names what a statement must be about; ``region`` where, empty: anywhere.
            reply: as it came.
        """
        framed = without_frame(fold(reply))
        if overlong(framed) or not re.search(r"\w", framed):
            return Reading(None, "empty or overlong", "unreadable", reason="the reply holds no answer")
        own = structured(framed, question.finding)
        if own is not None:
            return own
        marked = boxes_and_tables(framed, term(question.finding) if question.finding else None)
        if marked is not None:
            return marked
        text = _ECHO.sub(lambda match: " " * len(match[0]), without_markup(framed))
        return self._field(question, text) or self._prose(question, text, 0)

    def _field(self, question: Question, text: str) -> Reading | None:
        """Read the last explicit answer: "Answer: no", "the answer is yes", "Conclusion: no effusion"."""
        for match in reversed(list(ANSWER_FIELDS.finditer(text))[-5:]):
            start = match.end()
            rest = " " * start + text[start:]
            word = leading_word(rest)
            if word is not None:
                return _answer(word, "answer field")
            line = rest[: rest.find("\n", start)] if "\n" in rest[start:] else rest
            reading = self._prose(question, line, start)
            if reading.outcome != "unreadable":
                return reading
        return None

    def _prose(self, question: Question, text: str, start: int) -> Reading:
        both = short_answer(text)
        if both is not None and both.rule == "two words":
            return both
        target = region_of(question.region)
        about = claims(text, [term(question.finding)], _others()) if question.finding else []
        lead = None if _NO_ANSWER_LEAD.match(text[start:]) else leading_word(text)
        if lead is not None:
            return self._led(lead, about, target, text)
        short = short_answer(text)
        if short is not None:
            return short
        return self._stated(about, target, text)

    def _led(self, lead: Word, about: list[Claim], target: Place | None, text: str) -> Reading:
        """Read a reply that opens with a word of answer: the rest may take it back or contradict it."""
        rest = " " * lead.end + text[lead.end :]
        again = leading_word(rest)
        if again is not None and again.value != lead.value and not _CORRECTION.search(text):
            return Reading(None, "two words", "unreadable", (lead.start, again.end), "it says both yes and no")
        here = [claim for claim in about if claim.start >= lead.end and not _elsewhere(claim, target)]
        told = {claim.polarity for claim in here} & {"asserted", "denied"}
        contrary = "denied" if lead.value == "yes" else "asserted"
        if told == {contrary}:
            if _CORRECTION.search(rest):
                return _of_claim(here[-1], "correction")
            span = (lead.start, here[-1].end)
            return Reading(
                None, "contradiction", "unreadable", span, f"it opens with {lead.value} and states the contrary"
            )
        first = text[lead.end : (text.find(". ", lead.end) + 1) or len(text)]
        if not told and REFUSAL.search(first):
            return Reading(None, "refusal", "refusal", reason="it declines the task after a word of courtesy")
        return _answer(lead, "leading word")

    def _stated(self, about: list[Claim], target: Place | None, text: str) -> Reading:
        here = [claim for claim in about if not _elsewhere(claim, target) and claim.polarity != "none"]
        there = [claim for claim in about if _elsewhere(claim, target) and claim.polarity == "asserted"]
        firm = [claim for claim in here if claim.polarity in ("asserted", "denied")]
        if firm:
            if len({claim.polarity for claim in firm}) == 1:
                return _closing(firm[-1], text) or _of_claim(firm[-1], "statement")
            if _CORRECTION.search(text, firm[0].end, firm[-1].start):
                return _of_claim(firm[-1], "correction")
            span = (firm[0].start, firm[-1].end)
            return Reading(None, "contradiction", "unreadable", span, "it states the finding and denies it")
        if here:
            reason = "it neither states nor denies the finding"
            return Reading(None, "hedge", "uncertain", (here[-1].start, here[-1].end), reason)
        return _indirect(there, target, text)


def _indirect(there: list[Claim], target: Place | None, text: str) -> Reading:
    """Read a reply that does not speak of the finding in the region."""
    if there and _only_there(there[-1], target, text):
        return Reading("no", "elsewhere only", span=(there[-1].start, there[-1].end))
    fine = [n for n in normals(text) if n.place is None or target is None or _covers(n.place, target)]
    if fine and not there:
        return Reading("no", "normal", span=(fine[-1].start, fine[-1].end))
    refused, unsure = REFUSAL.search(text), _UNCERTAIN.search(text)
    if refused:
        return Reading(None, "refusal", "refusal", refused.span(), "it declines the task")
    if unsure and not text.rstrip().endswith("?"):
        return Reading(None, "hedge", "uncertain", unsure.span(), "it does not commit itself")
    return Reading(None, "no rule", "unreadable", reason="nothing in it answers the question")


def _others() -> list[Term]:
    return [term(name) for name in known()]


def _elsewhere(claim: Claim, target: Place | None) -> bool:
    return bool(target is not None and claim.place is not None and claim.place.excludes(target))


def _covers(place: Place, target: Place) -> bool:
    """Whether a statement on a place holds for the whole of the target."""
    sides = not place.sides or (bool(target.sides) and target.sides <= place.sides) or not target.sides
    return not place.excludes(target) and sides and (not place.heights or target.heights <= place.heights)


def _only_there(claim: Claim, target: Place | None, text: str) -> bool:
    """Whether a finding elsewhere says that it is not here: "confined to the left", "..., not in the right"."""
    if _ONLY_THERE.search(text[max(0, claim.start - 60) : claim.end + 60]):
        return True
    sides = "|".join(sorted(target.sides)) if target is not None and target.sides else r"(?!)"
    denied = re.search(rf"\bnot\b[^.;]{{0,12}}\b(?:{sides})\b|\bnone\b[^.;]{{0,12}}\b(?:{sides})\b", text)
    fine = [n for n in normals(text) if n.place is not None and target is not None and _covers(n.place, target)]
    return bool(denied or fine)


def _answer(word: Word, rule: str) -> Reading:
    if word.value == "uncertain":
        return Reading(None, rule, "uncertain", (word.start, word.end), "it does not commit itself")
    return Reading(word.value, rule, span=(word.start, word.end))


def _of_claim(claim: Claim, rule: str) -> Reading:
    return Reading("yes" if claim.polarity == "asserted" else "no", rule, span=(claim.start, claim.end))


def _closing(claim: Claim, text: str) -> Reading | None:
    """Return unreadable where a bare word at the end contradicts what was stated before it."""
    match = re.search(r"(?:\A|[.!?\n])\s*(yes|no)\W*\Z", text)
    if match is None or (match[1] == "yes") == (claim.polarity == "asserted"):
        return None
    return Reading(
        None, "contradiction", "unreadable", (claim.start, match.end(1)), f"it closes with a bare {match[1]}"
    )
