"""Words, fields, boxes and JSON that answer a question of yes or no by themselves."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import Any

from medground.readers.base import Reading
from medground.readers.lexicon import Term

YES = (
    "yes", "yeah", "yep", "yup", "true", "correct", "affirmative", "positive", "present", "indeed", "definitely",
    "absolutely", "certainly", "y", "oui", "ja", "si", "s\u00ed", "sim", "\u662f", "\u6709",
)  # fmt: skip
NO = (
    "no", "nope", "nah", "false", "incorrect", "negative", "absent", "none", "n", "non", "nein", "nee", "n\u00e3o",
    "nil", "not present", "not seen", "not visible", "not there", "\u5426", "\u65e0",
)  # fmt: skip
UNCERTAIN = ("uncertain", "unsure", "unclear", "maybe", "possibly", "perhaps", "equivocal", "indeterminate")
_VALUES = {**dict.fromkeys(YES, "yes"), **dict.fromkeys(NO, "no"), **dict.fromkeys(UNCERTAIN, "uncertain")}
_WORDS = "|".join(sorted(map(re.escape, _VALUES), key=len, reverse=True))
# A word answers where nothing hangs on it: "no" before a noun is a denial of that noun alone.
_AFTER = r"(?=\W*\Z|\s*[.,;:!?)\]}<\"'\n]|\s+-|\s+\(|"
_AFTER += r"\s+(?:there|it|this|the|i|we|because|since|as|but|and|in|on|he|she|you)\b)"
_LEAD = re.compile(rf"\A[\s\"'(\[>-]*(?:\d+[.)]\s*)?({_WORDS})\b{_AFTER}")
_BARE_YES = re.compile(r"\A[\s\"'(\[>-]*(yes)\b(?!\W*(?:/|or\b))")
_LETTER = re.compile(r"\A\W*([yn])\W*\Z")
_RUN = re.compile(r"\A\W*(?:yes\W+(?:and\W+|or\W+|/\W*)?no|no\W+(?:and\W+|or\W+|/\W*)?yes)(?:\W+(?:yes|no))*\W*\Z")
_SHORT = (
    ("yes", r"(?:i (?:think|believe|suppose) so|(?:most )?(?:probably|likely)(?: yes| so)?|probably yes|it is|there is"
            r"|(?:that|this) is (?:right|correct|true))"),
    ("no", r"(?:(?:i (?:don't|do not) (?:think|believe) so)|(?:probably|likely|most likely|definitely|certainly) not"
           r"|not (?:really|at all|likely)|unlikely|it is not|it isn't|there is not|there isn't)"),
    ("uncertain", r"(?:(?:i am |i'm )?not (?:sure|certain)|maybe(?: so| not)?|perhaps|possibly|hard to say|unclear"
                  r"|i (?:don't|do not) know|(?:i )?can(?:'t|not) (?:tell|say))"),
)  # fmt: skip
ANSWER_FIELDS = re.compile(
    r"(?:\b(?:my |the |so the |final |short |correct )*(?:answer|verdict|conclusion|impression|diagnosis|result)\b"
    r"\s*(?:is|would be|=|:|-)+\s*:?\s*(?:therefore |clearly |a |an )?"
    r"|(?:\A|\n)\s*a:\s*|<answer>\s*|\\boxed\{\s*(?:\\text\{)?)"
    r"(?=[\s\"'(\[]*\w)"
)
_KEYS = ("answer", "final_answer", "present", "prediction", "label", "response", "verdict", "result", "value", "output")


@dataclass(frozen=True)
class Word:
    """A word of answer: ``yes``, ``no`` or ``uncertain``, and where it stands."""

    value: str
    start: int
    end: int


def leading_word(text: str) -> Word | None:
    """Return the word of answer that a folded text opens with, blanks aside."""
    offset = len(text) - len(text.lstrip())
    match = _LETTER.match(text) or _LEAD.match(text[offset:]) or _BARE_YES.match(text[offset:])
    if match is None or (
        match.re is not _LETTER and match[1] in ("y", "n") and text[offset:].strip(" .!\"'()") != match[1]
    ):
        return None
    if match.re is _LETTER:
        offset = 0
    return Word(_VALUES[match[1]], offset + match.start(1), offset + match.end(1))


def short_answer(text: str) -> Reading | None:
    """Return the reading of a reply that is one of the usual short answers, or both words."""
    both = _RUN.match(text)
    if both:
        return Reading(None, "two words", "unreadable", both.span(), "it says both yes and no")
    opening = text.strip()
    for value, pattern in _SHORT:
        match = re.match(rf"\W*({pattern})(?=\W*\Z|\s*[.,;!])", opening)
        if match is None:
            continue
        start = text.find(match[1])
        span = (start, start + len(match[1]))
        if value == "uncertain":
            return Reading(None, "short answer", "uncertain", span, "it does not commit itself")
        return Reading(value, "short answer", span=span)
    return None


def structured(text: str, finding: str) -> Reading | None:
    """Return the reading of a reply that is one JSON object or value; None: it is none.

    A reply that opens like an object and cannot be parsed was cut off, and holds no answer.
    """
    body = re.sub(r"\A\s*```(?:json)?\s*|\s*```\s*\Z", "", text).strip()
    if not body.startswith("{"):
        return None
    data = _parsed(body)
    if not isinstance(data, dict):
        return Reading(None, "broken JSON", "unreadable", reason="it opens an object that cannot be parsed")
    wanted = finding.strip().casefold()
    keys = [key for key in data if str(key).casefold() == wanted] if wanted else []
    keys += [key for key in data if str(key).casefold().replace(" ", "_") in _KEYS]
    if not keys:
        return Reading(None, "JSON without an answer", "unreadable", reason="no field of it is an answer")
    value = _value(data[keys[0]])
    if value == "uncertain":
        return Reading(None, "JSON field", "uncertain", reason=f"its field {keys[0]!r} does not commit itself")
    if value is None:
        return Reading(None, "JSON field", "unreadable", reason=f"its field {keys[0]!r} is neither yes nor no")
    return Reading(value, "JSON field")


def _parsed(body: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(body) if len(body) < 10_000 else None
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _value(value: Any) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        word = leading_word(value.casefold())
        return word.value if word else None
    return None


def boxes_and_tables(text: str, finding: Term | None) -> Reading | None:
    """Return the reading of ticked boxes ("- [x] Yes"), or of a table's row about the finding.

    None: there is neither.
    """
    boxes = re.findall(rf"^[ ]*(?:[-*][ ]*)?\[([ x\u2713])\][ ]*({_WORDS})\b", text, re.MULTILINE)
    if boxes:
        ticked = {_VALUES[word] for mark, word in boxes if mark != " "}
        if len(ticked) == 1 and "uncertain" not in ticked:
            return Reading(ticked.pop(), "ticked box")
        if ticked == {"uncertain"}:
            return Reading(None, "ticked box", "uncertain", reason="the box of an uncertain answer is ticked")
        reason = "several boxes are ticked" if ticked else "no box is ticked"
        return Reading(None, "ticked box", "unreadable", reason=reason)
    for line in re.finditer(r"^[ ]*\|(.+)\|[ ]*$", text, re.MULTILINE):
        cells = [cell.strip(" *") for cell in line[1].split("|")]
        words = {_VALUES[cell] for cell in cells[1:] if cell in _VALUES}
        if finding is not None and len(words) == 1 and finding.pattern.search(cells[0]):
            value = words.pop()
            if value != "uncertain":
                return Reading(value, "table row", span=line.span(1))
    return None
