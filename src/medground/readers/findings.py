"""The set of findings that a free reply asserts, for an asked region.

A hedge with a direction (likely, suggests) counts as asserted; an even one (may, possible, cannot be excluded) goes to
``uncertain`` and counts neither as stated nor as denied. A statement without a place counts for the asked region. A
finding that lies on the heart or the aorta by its nature does not count for a lung where the reply gives its other
findings places of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from medground.readers._assertion import SOURCES
from medground.readers._claims import REFUSAL, Claim, Normal, claims, normals
from medground.readers._places import Place, region_of
from medground.readers._text import fold, overlong, without_frame, without_markup
from medground.readers.base import Question, Reading, fingerprint_of
from medground.readers.lexicon import CONCEPTS, LEXICON_VERSION, Term, known, term

_EMPTY_LIST = re.compile(r"\A\s*(?:```(?:json)?)?\s*(?:\[\s*\]|\{\s*\"?\w+\"?\s*:\s*\[\s*\]\s*\})\s*(?:```)?\s*\Z")


class Findings:
    """The rule-based reader of findings; it needs no model.

    The value is the sorted tuple of findings asserted in the asked region. ``details`` hold ``anywhere``,
    ``uncertain``, ``denied`` (sorted lists), ``states_normal`` and ``states_normal_in_region``: it says that there is
    nothing.
    An empty set without such a statement is unreadable: a refusal, a cut-off reply, another topic.
    """

    name: ClassVar[str] = "findings"
    version: ClassVar[str] = "1"

    def fingerprint(self) -> str:
        """See :class:`medground.readers.base.Reader`."""
        lexicon = [(concept.key, concept.names, concept.pattern) for concept in CONCEPTS]
        return fingerprint_of(self.name, self.version, LEXICON_VERSION, lexicon, SOURCES)

    def read(self, question: Question, reply: str) -> Reading:
        """Return the findings that a reply asserts in the question's region, by their names in its vocabulary."""
        framed = without_frame(fold(reply))
        if overlong(framed):
            return Reading(None, "overlong", "unreadable", reason="the reply is too long to be an answer")
        text = _plain(framed)
        terms = [term(name) for name in question.vocabulary or known()]
        told = [claim for claim in claims(text, terms, _others(terms)) if claim.polarity != "none"]
        fine = normals(text)
        nothing = _EMPTY_LIST.match(reply) is not None
        target = region_of(question.region)
        here = [claim for claim in told if _in(claim, target, told)]
        anywhere, inside = _asserted(told), _asserted(here)
        normal = not anywhere and (nothing or bool(fine) or _denied(told))
        fine_here = [statement for statement in fine if _holds(statement, target)]
        normal_here = not inside and (nothing or bool(fine_here) or _denied(here))
        details = {
            "anywhere": anywhere,
            "uncertain": sorted({c.finding for c in here if c.polarity == "open"} - set(inside)),
            "denied": sorted({c.finding for c in here if c.polarity == "denied"} - set(inside)),
            "states_normal": normal,
            "states_normal_in_region": normal_here,
        }
        return _reading(inside, here, fine_here, details, text)


def _plain(text: str) -> str:
    """Return the text without Markdown; a JSON list of findings becomes lines, in the same places."""
    stripped = without_markup(text)
    body = stripped.strip()
    if body[:1] in "[{" and body:
        try:
            json.loads(body)
        except (ValueError, RecursionError):
            return stripped
        return re.sub(r"[\[\]{}\",:]", lambda mark: "\n" if mark[0] in ",:" else " ", stripped)
    return re.sub(r"(?<=[a-z]) ?/ ?(?=[a-z])", lambda mark: mark[0].replace("/", ","), stripped)


def _others(terms: Sequence[Term]) -> list[Term]:
    have = {one.name.casefold() for one in terms}
    return [term(name) for name in known() if name not in have]


def _in(claim: Claim, target: Place | None, told: Sequence[Claim]) -> bool:
    if target is None:
        return True
    if claim.place is not None:
        return not claim.place.excludes(target)
    away = claim.home and target.organ and claim.home != target.organ
    placed = any(other.place is not None and len(other.place.sides) == 1 for other in told)
    return not (away and placed)


def _holds(statement: Normal, target: Place | None) -> bool:
    return statement.place is None or target is None or not statement.place.excludes(target)


def _asserted(told: Sequence[Claim]) -> list[str]:
    """Return the findings whose last firm statement asserts them."""
    last = {claim.finding: claim.polarity for claim in told if claim.polarity in ("asserted", "denied")}
    return sorted(finding for finding, polarity in last.items() if polarity == "asserted")


def _denied(told: Sequence[Claim]) -> bool:
    return any(claim.polarity == "denied" for claim in told)


def _reading(
    inside: list[str], here: Sequence[Claim], fine: Sequence[Normal], details: dict[str, Any], text: str
) -> Reading:
    if inside:
        stated = [claim for claim in here if claim.polarity == "asserted"]
        return Reading(tuple(inside), "statements", span=(stated[0].start, stated[-1].end), details=details)
    if details["states_normal_in_region"]:
        span = (fine[-1].start, fine[-1].end) if fine else None
        return Reading((), "normal" if fine else "denials", span=span, details=details)
    if details["uncertain"]:
        return Reading(None, "hedge", "uncertain", reason="it leaves its findings open", details=details)
    refused = REFUSAL.search(text)
    if refused:
        return Reading(None, "refusal", "refusal", refused.span(), "it declines the task", details)
    if details["anywhere"]:
        return Reading((), "elsewhere", details=details, reason="it states findings in other regions alone")
    return Reading(
        None, "no rule", "unreadable", reason="it names no finding and does not call it normal", details=details
    )
