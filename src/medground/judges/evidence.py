"""Judge by rules: what a reply claims is read from its text and held against what was measured.

No network, no model: the same reply always gets the same ruling. The reply is untrusted; whatever it says to a judge is
taken out before it is read. Where it cannot be read, the judge abstains with a reason rather than guess.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import ClassVar

from medground.judges._evidence.bind import Binder, thresholds
from medground.judges._evidence.clean import clean
from medground.judges._evidence.compare import false_comparisons, wrong_view
from medground.judges._evidence.conclude import Concluded, bare_answer, conclude, cut_off, directions, is_side_rule
from medground.judges._evidence.lexicon import NO_LABEL, REFUSAL, RULE
from medground.judges._evidence.numbers import spell
from medground.judges._evidence.split import by_task
from medground.judges.base import Overlay, Query, Request, Ruling

#: Raised whenever a rule or the lexicon changes what a reply is taken to say.
VERSION = "3"

_POINT = re.compile(r"([a-z][a-z0-9 _]{1,40}?) at \((-?\d+(?:\.\d+)?), ?(-?\d+(?:\.\d+)?)\)", re.I)


#: Coordinates of a marked point, which are no measurement.
_PLACE = re.compile(r"\bat \(-?\d+(?:\.\d+)?, ?-?\d+(?:\.\d+)?\)", re.I)
#: Of the chest, which is the limit of the heart on PA films.
_HALF = re.compile(r"\b(?:one )?half\b(?= (?:of )?(?:the|its|as|that|thorac\w+|chest))", re.I)


class Evidence:
    """Holds a reply against measured evidence by rules over words, numbers, units, sides and tolerances."""

    name: ClassVar[str] = "evidence"

    def fingerprint(self) -> str:
        """Name and version of the rules."""
        return f"evidence/{VERSION}"

    def judge(self, query: Query, reply: str, overlays: tuple[Overlay, ...] = ()) -> Ruling:
        """Judge one turn.

        Coverage asks whether everything that was asked for is given, right or wrong. Faithfulness asks whether every
        claim about it agrees: within tolerance, on the right side, without contradiction.
        """
        if not query.requests:
            return Ruling(None, None, "skipped", "nothing was asked", source=self.name)
        visual = [request for request in query.requests if request.evidence_type == "visual"]
        if visual and not query.draws:
            return Ruling(None, None, "skipped", "asks for a picture", source=self.name)
        readings: list[_Reading] = [_Drawing(request, overlays, query.size, reply) for request in visual]
        diagnostic = [request for request in query.requests if request.evidence_type != "visual"]
        if diagnostic:
            text = _PLACE.sub(" ", spell(clean(reply)))
            if any(request.task == "cardiomegaly" for request in diagnostic):
                text = _HALF.sub("0.5", text)
            split = by_task(text, [request.task for request in diagnostic])
            alone = len(diagnostic) == 1
            readings += [
                _Reading(request, split[request.task], query.text, text if alone else "") for request in diagnostic
            ]
        return _ruling(readings)


class _Reading:
    """What a reply says to one request."""

    def __init__(self, request: Request, sentences: Sequence[str], query: str, whole: str) -> None:
        self.request = request
        evidence = request.evidence
        binder = Binder(request.task, evidence, request.asked)
        for sentence in sentences:
            binder.read(sentence)
        self.bound = binder.finish()
        self.wrong = list(self.bound.wrong)
        self.claims = self.bound.right + len(self.wrong) + len(self.bound.limits)
        limits = thresholds(evidence)
        concluded = conclude(request.task, sentences, limits)
        if (
            not concluded.polarities
            and whole
            and (bare := bare_answer(whole, query, request.task)) is not None
            and (sentences or len(whole) < 12)
        ):
            concluded.polarities.append(bare)
        if not concluded.polarities and concluded.elliptic is not None:
            word = "yes" if concluded.elliptic else "no"
            concluded.polarities += [label for label in (bare_answer(word, query, request.task),) if label is not None]
        self.covered: set[str] = set()
        self._conclusion(concluded, sentences)
        self._words(sentences)
        self._criterion(sentences, limits)
        if self._measured():
            self.covered.add("measurement")
        self.wrong += false_comparisons(sentences, limits) if len(limits) in (1, 2) else []
        missing = [part for part in request.asked if part not in self.covered and part != "visual"]
        self.missing = missing
        unread = self.bound.unread if "measurement" in missing else 0
        unread += concluded.unread if "conclusion" in missing else 0
        self.unreadable = bool(missing) and unread > 0

    def _conclusion(self, concluded: Concluded, sentences: Sequence[str]) -> None:
        conclusion = self.request.evidence.conclusion
        if conclusion.polarity is None:
            if concluded.polarities:
                self.covered.add("conclusion")
                self.claims += 1
                self.wrong.append("conclusion: a label is given where the evidence has none")
            elif any(_withheld(sentence) for sentence in sentences):
                self.covered.add("conclusion")
                self.claims += 1
            return
        for polarity in dict.fromkeys(concluded.polarities):
            self.covered.add("conclusion")
            self.claims += 1
            if polarity not in conclusion.polarities:
                self.wrong.append(f"conclusion: label {polarity} against {conclusion.label!r}")
        if len(set(concluded.polarities)) > 1 and not any("conclusion" in line for line in self.wrong):
            self.wrong.append("conclusion: both labels are claimed")

    def _words(self, sentences: Sequence[str]) -> None:
        """Values that are words: the trachea's side, the part that is cut off."""
        for quantity in self.request.evidence.measurements:
            if quantity.name == "direction":
                for side in dict.fromkeys(directions(sentences)):
                    self.bound.values.add("direction")
                    self.claims += 1
                    if side != quantity.value:
                        self.wrong.append(f"direction: {side} against {quantity.value}")
            elif quantity.name == "cut_off_part":
                for side in cut_off(sentences):
                    self.claims += 1
                    if side not in str(quantity.value):
                        self.wrong.append(f"part cut off: {side} against {quantity.value}")

    def _criterion(self, sentences: Sequence[str], limits: Sequence[float]) -> None:
        criterion, bound = self.request.evidence.criterion, self.bound
        if criterion.thresholds is None:
            stated = any(is_side_rule(s) for s in sentences) if criterion.op == "all_beyond" else False
            stated = stated or (criterion.text is None and any(RULE.search(s) or _withheld(s) for s in sentences))
            if stated:
                self.covered.add("criterion")
                self.claims += criterion.op == "all_beyond"
            return
        needed = {limit for limit in limits if limit > 0 and not (criterion.op == "margins" and limit == 0.03)}
        if isinstance(criterion.thresholds, dict) and "bottom_ambiguous_from" in criterion.thresholds:
            needed.discard(float(criterion.thresholds["bottom_ambiguous_from"]))
        stated_wrong = any(line.startswith("criterion") for line in bound.wrong)
        if needed <= bound.limits or stated_wrong:
            self.covered.add("criterion")
        if criterion.view is not None and bound.limit_stated:
            self.wrong += wrong_view(sentences, criterion.view, limits)

    def _measured(self) -> bool:
        quantities = [q for q in self.request.evidence.measurements if q.unit not in ("px", "part")]
        names = {f"{q.name} {q.side}" if q.side else q.name for q in quantities}
        if not names:
            return False
        return names <= self.bound.values


def _withheld(sentence: str) -> bool:
    """Whether a sentence says that no label can be given, and is no refusal of the whole question."""
    return NO_LABEL.search(sentence) is not None and REFUSAL.search(sentence) is None


def _ruling(readings: Sequence[_Reading]) -> Ruling:
    wrong = tuple(f"{reading.request.task}: {line}" for reading in readings for line in reading.wrong)
    missing = [f"{reading.request.task} {part}" for reading in readings for part in reading.missing]
    claims = sum(reading.claims for reading in readings)
    if any(reading.unreadable for reading in readings):
        return Ruling(None, None, "abstained", "left unread: " + ", ".join(missing), wrong, Evidence.name)
    faithful = int(claims > 0 and not wrong)
    if wrong:
        reason = wrong[0]
    elif missing:
        reason = "missing: " + ", ".join(missing)
    else:
        reason = "everything asked for is given and agrees"
    return Ruling(int(not missing), faithful, "ok", reason, wrong, Evidence.name)


class _Drawing(_Reading):
    """Whether an agent drew what was asked, at the right place: within 5 px or 2 % of the diagonal.

    Points that the overlay names count, and points that the text gives as "name at (x, y)".
    """

    def __init__(self, request: Request, overlays: Sequence[Overlay], size: tuple[int, int], reply: str) -> None:
        self.request = request
        own = [overlay for overlay in overlays if overlay.task == request.task]
        self.missing = [] if own else ["visual"]
        self.claims = len(own)
        self.wrong = []
        self.unreadable = False
        allowed = max(5.0, 0.02 * math.hypot(*size))
        drawn = [(point.name, point.x, point.y) for overlay in own for point in overlay.landmarks]
        if own and request.evidence.landmarks:
            drawn += [
                (m[1].strip().lower().replace(" ", "_"), float(m[2]), float(m[3]))
                for m in _POINT.finditer(clean(reply))
            ]
        for landmark in request.evidence.landmarks:
            for name, x, y in drawn:
                off = math.hypot(x - landmark.x, y - landmark.y)
                if name == landmark.name and off > allowed:
                    self.wrong.append(f"visual: {landmark.name} is {off:.0f} px off")
