"""What the numbers of a sentence stand for, explained by the evidence first and by the words around them second."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from medground.judges._evidence.numbers import Number, numbers
from medground.judges.base import Evidence, Quantity

#: Words before a number that make it a limit, whatever it equals.
_LIMIT_BEFORE = re.compile(
    r"(?:\b(?:limits?|thresholds?|cut-?\s?offs?|criteri(?:on|a)|minimum|maximum|required?|needs?|needed|needing|requirements?|"
    r"allowed|accept\w*|ceiling|mark|normal|hits?|(?:starts?|begins?|kicks? in|sets? in)(?: at| from)?|once|normal range|reference(?: interval| range)?|interval|range|at least|up to|anything|from|bound|"
    r"rule|no less than|or|standard)\b|>=|<=)[^\d.;]{0,28}$",
    re.I,
)
_LIMIT_AFTER = re.compile(
    r"^\s*(?:,\s*the\s+(?=limit|threshold|cut)|\)?\s*)(?:degrees?|deg|tracheal? widths?|tracheas?|ribs?|for (?:PA|AP)|\(?(?:PA|AP)\)?|on (?:PA|AP))?\s*(?:is|was|are|as|would be|being|of)?\s*(?:the|our|my|a|its)?\s*"
    r"(?:upper |lower |usual )?(?:limits?|thresholds?|cut-?\s?offs?|minimum|maximum|requirement|required|needed|allowed|"
    r"or (?:more|above|higher|less|fewer|greater)|and (?:above|more|up)|upwards?|on\b(?! the| a)|onwards?|rule|mark|ceiling|bound|"
    r"range is|is (?:adequate|fine|normal)|are required|used for)",
    re.I,
)
#: A limit's own words may stand further off: "the limit of the cardiothoracic ratio is 0.50".
_LIMIT_FAR = re.compile(
    r"\b(?:limit|threshold|cut-?\s?off|normal range|ceiling|minimum)s? (?:of|for) (?:the )?[a-z -]{3,40} (?:is|are|of|=|:)\s*(?:from )?$",
    re.I,
)
#: Words before a number that compare a value with it.
_COMPARED = re.compile(
    r"(?:\b(?:below|under|above|over|exceed\w*|beyond|less than|more than|greater than|higher than|lower than|reach\w*|against|outside|"
    r"within|short of|meets?|to call|called|enlarged from|than)\b|[<>])[^\d.;]{0,24}$",
    re.I,
)
#: What others said, or what is denied: "I disagree with 95", "not 0.61", "your 0.61".
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:isn't|is not|wasn't|was not|not|rather than|instead of|disagree with|as opposed to|contrary to|unlike|nowhere near|different from|"
    r"(?:(?:do|does|did|could)(?:n't| not)|can't|cannot|can not|unable to) (?:get|see|find|read|obtain|measure|confirm|reproduce|support|match|agree with)|"
    r"(?:your|his|her|their|colleague'?s?|(?:stated|suggested|quoted|proposed|claimed|mentioned)(?= (?:value|ratio|figure|number|angle|of)|\s*$))"
    r"(?: (?:value|ratio|figure|number|reading|angle|estimate|measurement|result|colleague'?s?))?|"
    r"(?:you|he|she|they|colleague)(?:'ve| have| has)? (?:get|gets|got|reads?|sa(?:y|ys|id)|measured?|suggest\w*|quot\w+|stat\w+|mention\w*|propos\w+|claim\w*|"
    r"report\w*|cit\w+))\s+(?:(?:of|that|value|a|an|the|rib|ratio|angle)\s+)*)$",
    re.I,
)
_DENIED_AFTER = re.compile(
    r"^[\s,]*(?:(?:degrees?|tracheal widths?)\s+)?(?:(?:isn't|is not|does(?:n't| not)|cannot|can't|can not) (?:be )?(?:right|correct|match|agree|what|supported|"
    r"confirm\w*|reproduc\w*|fit|the (?:value|number|figure))|is (?:wrong|incorrect|not (?:right|correct)|too (?:high|low)|a mistake|off)|"
    r"was (?:wrong|a mistake|incorrect)|(?:that )?(?:you|your colleague|he|she|they) (?:read|report|mention|suggest|got|get|quote|state|propose)\w*)",
    re.I,
)
#: An interval of at least so many degrees is a range of normal, not an uncertain value.
_WIDE = 25
_NAMED_BEFORE = re.compile(
    r"\b(?:limit|threshold|cut-?\s?off|ceiling|minimum|criterion)\b(?: (?:of|is|was|at|for (?:PA|AP)))*[\s:=>]*$|"
    r"\b(?:require|need|demand|want|ask for)s? (?:at least|a minimum of|no (?:less|fewer) than) $|"
    r"\b(?:called|counts? as|considered|labelled|enlarged|abnormal|tortuous|widened|rotated) (?:\w+ )?(?:from|once|at|above|when) $|"
    r"\b(?:once|when|if) (?:the|its) [a-z]+ (?:hits|reaches|passes|exceeds|is)(?: at least)? $",
    re.I,
)
_NAMED_AFTER = re.compile(
    r"^\s*(?:(?:on both sides|or more|tracheal widths|of overlap) )?(?:the \w+(?: \w+)? )?(?:indicates?|means?|counts? as|(?:is|are) called|speaks? for)\b|"
    r"^\s*(?:(?:ribs?|degrees?|tracheal widths?)\s+)?(?:are|is) (?:needed|required|necessary)|"
    r"^\s*(?:(?:is|as|was)|,) (?:the|our) (?:upper |lower |usual )?(?:limit|threshold|cut-?\s?off|ceiling|minimum|bound)",
    re.I,
)
#: The value is said to equal the threshold.
_ON_LIMIT = re.compile(
    r"\b(?:right|exactly|just|precisely|sits|lies|is|equals?|equal to|squarely)(?: right| exactly| just)? (?:at|on|to)? ?(?:the |our )?(?:very )?"
    r"(?:limit|threshold|cut-?\s?off|boundary|borderline|edge|border)",
    re.I,
)
_DIFFERENCE = re.compile(
    r"^\s*(?:degrees?\s+)?(?:(?:of|from|away from|off) the (?:limit|threshold|cut|border|boundary)|(?:above|below|short of|over|under|more|less|beyond|past)\s+(?:than\s+)?(?:the|our|its)?\s*(?:upper|lower|normal)?\s*"
    r"(?:limit|threshold|range|cut|required|needed|\d))",
    re.I,
)
_INTERVAL = re.compile(r"(?<![\d.])(\d*\.?\d+)\s*(?:%|degrees?)?\s*(?:to|-|up to)\s*(\d*\.?\d+)", re.I)
_RANGE = re.compile(r"\bbetween\s+([\d.]+)\s+and\s+([\d.]+)", re.I)
_NOUN = re.compile(r"^\s+(?!degrees?\b|percent\b|on\b|for\b|and\b|or\b|is\b|to\b|of\b|at\b|in\b|with\b)[a-z]{3,}", re.I)
_SIDE = re.compile(r"\b([Rr]ight|[Ll]eft|R|L)\b(?! (?:in|on|at|away)\b)")
_SIDE_ANY = re.compile(r"\b(right|left)\b", re.I)
_PARTS = re.compile(
    r"\b(?:(apex|apical|apices|top|tops|above|upper)|(sides?|lateral\w*|sideways|beside)|(bottom|basal|inferior|below|costophrenic|sulci|lower))\b",
    re.I,
)
_NOTHING = re.compile(
    r"\b(?:none|nothing|no (?:part|portion|share|pixels?)|not any)\b(?=[^.;]*\b(?:beyond|past|cross\w*|outside|over|project\w*|get)\b)",
    re.I,
)
_HYPOTHETICAL = re.compile(r"\b(?:if|is normal|as normal|normal\b.*\bnone|would be)\b", re.I)


@dataclass
class Bound:
    """What was read of a request's numbers.

    Attributes:
        values: names of the measured quantities (with side or part) for which a value was stated, right or wrong.
        right: how many claims agree.
        wrong: one line for each that does not.
        limits: thresholds that were named, rightly.
        limit_stated: a threshold was named, rightly or wrongly.
        pairs: (stated value, place, sentence) of values, for comparing with thresholds.
        unread: numbers that could not be explained.
    """

    values: set[str] = field(default_factory=set)
    right: int = 0
    wrong: list[str] = field(default_factory=list)
    limits: set[float] = field(default_factory=set)
    limit_stated: bool = False
    unread: int = 0
    deferred: list[tuple[float, str]] = field(default_factory=list)
    value_clauses: set[str] = field(default_factory=set)


def thresholds(evidence: Evidence) -> list[float]:
    """Every number of the criterion."""
    return list(_flat(evidence.criterion.thresholds))


def _flat(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for part in value.values():
            yield from _flat(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _flat(part)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)


class Binder:
    """Explains the numbers of one request's sentences."""

    def __init__(self, task: str, evidence: Evidence, asked: Sequence[str] = ("measurement",)) -> None:
        self.task = task
        self.asks_value = "measurement" in asked
        numeric = [
            q for q in evidence.measurements if isinstance(q.value, (int, float)) and not isinstance(q.value, bool)
        ]
        self.pixels = [q for q in numeric if q.unit == "px"]
        self.quantities = [q for q in numeric if q.unit != "px"]
        self.limits = thresholds(evidence)
        self.sided = sum(q.side is not None for q in self.quantities) > 1
        self.bound = Bound()
        self._on_limit = False

    def read(self, sentence: str) -> None:
        """Explain one sentence's numbers."""
        found = numbers(sentence)
        self._on_limit = self._on_limit or _ON_LIMIT.search(sentence) is not None
        if self.task == "ascending_aorta_enlargement" and (match := _NOTHING.search(sentence)):
            clause = re.split(r"[;.,]\s", sentence[match.start() :])[0]
            if not _HYPOTHETICAL.search(sentence[: match.start()][-12:] + clause):
                self._value(sentence, 0.0, 0.005)
        if not found:
            return
        spans = [match.span() for match in _RANGE.finditer(sentence)]
        intervals = self._intervals(sentence)
        values: list[tuple[Number, float]] = []
        inherited = False
        for i, number in enumerate(found):
            before = sentence[found[i - 1].end if i else 0 : number.start]
            after = sentence[number.end : found[i + 1].start if i + 1 < len(found) else len(sentence)]
            role = self._role(number, before, after, inherited, any(a <= number.start < b for a, b in spans))
            if role in ("value", "bare limit") and any(a <= number.start < b for a, b in intervals):
                role = "limit" if self._is_limit(self._scaled(number)) else "wrong limit"
            inherited = role in ("limit", "wrong limit") and len(self.limits) > 1
            if role == "limit":
                self.bound.limits.add(self._nearest_limit(self._scaled(number)))
                self.bound.limit_stated = True
            elif role == "wrong limit":
                self.bound.limit_stated = True
                self.bound.wrong.append(
                    f"criterion: {sentence[number.start : number.end].strip()} is not the threshold"
                )
            elif role == "bare limit":
                self.bound.deferred.append((self._scaled(number), sentence))
            elif role == "unread":
                self.bound.unread += 1
            elif role in ("value", "distance"):
                values.append((number, self._scaled(number)))
        self._assign(sentence, values)

    def finish(self) -> Bound:
        """Decide what thresholds without a word around them were: thresholds beside a value, values without one."""
        for value, sentence in self.bound.deferred:
            if (
                self.task == "inclusion"
                and 0 < len(self.bound.values) < len(self.quantities)
                and sentence in self.bound.value_clauses
            ):
                self._margins(sentence, [(Number(value, "", 3, 0, 0), value)])
            elif self.bound.values or not self.asks_value:
                self.bound.limits.add(value)
                self.bound.limit_stated = True
            else:
                self._value(sentence, value, 0.0)
        if self._on_limit and self.asks_value and not self.bound.values and len(self.quantities) == 1:
            (quantity,) = self.quantities
            for limit in [limit for limit in self.bound.limits if _within(limit, quantity, 0.0)][:1]:
                self._value("", limit, 0.0)
        return self.bound

    def _is_limit(self, value: float) -> bool:
        return any(abs(value - limit) <= 1e-9 for limit in self.limits)

    def _nearest_limit(self, value: float) -> float:
        return min(self.limits, key=lambda limit: abs(limit - value))

    def _intervals(self, sentence: str) -> list[tuple[int, int]]:
        """Places of "0.1 to 0.3" where the criterion is an interval and one end of it is right."""
        if self.task not in ("carina_angle", "ascending_aorta_enlargement"):
            return []
        scale = 0.01 if "%" in sentence else 1.0
        return [
            match.span()
            for match in _INTERVAL.finditer(sentence)
            if any(self._is_limit(float(end)) or self._is_limit(float(end) * scale) for end in match.groups())
            or (self.task == "carina_angle" and float(match[2]) - float(match[1]) >= _WIDE)
        ]

    def _scaled(self, number: Number) -> float:
        if number.unit == "%" and self.task not in ("carina_angle", "inspiration"):
            return number.value / 100
        return number.value

    def _role(self, number: Number, before: str, after: str, inherited: bool, in_range: bool) -> str:
        """Say what a number stands for: value, limit, wrong limit, bare limit, distance, unread or skip."""
        value = self._scaled(number)
        if _DENIED_BEFORE.search(before) or _DENIED_AFTER.match(after) or number.unit == "count":
            return "skip"
        if number.unit == "mm":
            return "value" if self._agrees(number, number.value) else "skip"
        if number.unit == "px":
            return "distance" if self.pixels else "skip"
        return self._explain(number, value, before, after, inherited, in_range)

    def _explain(self, number: Number, value: float, before: str, after: str, inherited: bool, in_range: bool) -> str:
        """A number on the scale of the measurement: the evidence first, the words around it second."""
        near = self._agrees(number, value) and not self._wrong_unit(number)
        is_limit = self._is_limit(value)
        if not near and not is_limit and _DIFFERENCE.match(after):
            return "skip"
        strong = (
            _LIMIT_BEFORE.search(before) is not None
            or _LIMIT_FAR.search(before) is not None
            or _LIMIT_AFTER.match(after) is not None
        )
        measured = self._own_value_first(before)
        cued = strong or (not measured and _COMPARED.search(before) is not None)
        if in_range and not is_limit:
            return "skip"
        if near and value == 0 and "if" not in before and "normal" not in after:
            return "value"
        if in_range or cued:
            return self._cued(near, is_limit, strong and measured, _strictly_limit(before, after), strong)
        if inherited and (is_limit or not near):
            return "limit" if is_limit else "wrong limit"
        return self._bare(number, near, is_limit, after)

    def _cued(self, near: bool, is_limit: bool, measured: bool, strictly: bool, strong: bool) -> str:
        """A number that the words around it make a limit."""
        if is_limit:
            return "limit"
        if (near and not strictly) or measured:
            return "value"
        return "wrong limit" if self.limits or strong else "unread"

    def _bare(self, number: Number, near: bool, is_limit: bool, after: str) -> str:
        """A number without such words."""
        if near:
            return "value"
        if is_limit:
            return "bare limit"
        return "value" if self._plausible(number, after) else "unread"

    @staticmethod
    def _own_value_first(before: str) -> bool:
        """A measuring word between the limit's word and the number: "limit, measured 0.57"."""
        return (
            re.search(r"\b(?:measur\w+|i get|i find|comes? to|works? out|counted|my)\b[^\d]*$", before, re.I)
            is not None
        )

    def _wrong_unit(self, number: Number) -> bool:
        return number.unit == "mm" or (self.task in ("carina_angle", "inspiration") and number.unit in ("rad", "%"))

    def _agrees(self, number: Number, value: float) -> bool:
        return any(_within(value, q, number.rounding * (0.01 if number.unit == "%" else 1)) for q in self.quantities)

    def _plausible(self, number: Number, after: str) -> bool:
        if not self.quantities:
            return False
        whole = number.decimals == 0 and number.unit == ""
        if self.task == "inspiration":
            return whole and 1 <= number.value <= 13
        if whole and _NOUN.match(after):
            return False
        if self.task == "carina_angle":
            return number.value <= 180
        if self.task == "descending_aorta_tortuous":
            return not whole
        return True

    def _assign(self, sentence: str, values: Sequence[tuple[Number, float]]) -> None:
        distances = [(n, v) for n, v in values if n.unit == "px"]
        if distances:
            self._sides(sentence, distances, self.pixels, required=False)
        rest = [(n, v) for n, v in values if n.unit != "px"]
        if not rest:
            return
        self.bound.value_clauses.add(sentence)
        if self.sided:
            self._sides(sentence, rest, self.quantities, required=True)
        elif self.task == "inclusion":
            self._margins(sentence, rest)
        else:
            for number, value in rest:
                self._value(
                    sentence,
                    float("nan") if self._wrong_unit(number) else value,
                    number.rounding * (0.01 if number.unit == "%" else 1),
                )

    def _value(self, sentence: str, value: float, rounding: float) -> None:
        quantity = self.quantities[0] if self.quantities else None
        if quantity is None:
            return
        self.bound.values.add(quantity.name)
        self.bound.value_clauses.add(sentence)
        if _within(value, quantity, rounding):
            self.bound.right += 1
        else:
            self.bound.wrong.append(f"{quantity.name}: {value:g} against {quantity.value}")

    def _sides(
        self, sentence: str, values: Sequence[tuple[Number, float]], quantities: Sequence[Quantity], *, required: bool
    ) -> None:
        by_side = {q.side: q for q in quantities}
        for (number, value), side in zip(values, _sides_of(sentence, [n for n, _ in values]), strict=True):
            quantity = by_side.get(side)
            rounding = number.rounding * (0.01 if number.unit == "%" else 1)
            if quantity is None:
                if required and not any(_within(value, q, rounding) for q in quantities):
                    self.bound.wrong.append(f"{quantities[0].name}: {value:g} agrees with neither side")
                elif required:
                    self.bound.unread += 1
                continue
            if required:
                self.bound.values.add(f"{quantity.name} {side}")
            if _within(value, quantity, rounding):
                self.bound.right += 1
            else:
                self.bound.wrong.append(f"{quantity.name} {side}: {value:g} against {quantity.value}")

    def _margins(self, sentence: str, values: Sequence[tuple[Number, float]]) -> None:
        names = [quantity.name for quantity in self.quantities]
        named = [next(i for i, g in enumerate(m.groups()) if g) for m in _PARTS.finditer(sentence)]
        parts = [part for i, part in enumerate(named) if i == 0 or named[i - 1] != part]
        for k, (number, value) in enumerate(values):
            rounding = max(number.rounding * (0.01 if number.unit == "%" else 1), 5e-4)
            hits = [q.name for q in self.quantities if _within(value, q, rounding)]
            if len(parts) == len(values):
                part = names[min(parts[k], len(names) - 1)]
                hits = [name for name in hits if name == part]
            else:
                part = names[min(len(self.bound.values), len(names) - 1)]
            if hits:
                self.bound.values.add(next((h for h in hits if h not in self.bound.values), hits[0]))
                self.bound.right += 1
            else:
                self.bound.values.add(part)
                self.bound.wrong.append(f"{part}: {value:g} disagrees")


def _strictly_limit(before: str, after: str) -> bool:
    """Words that name the number itself a limit: "the limit of 3.04", "where 3.04 is the limit"."""
    named = (_NAMED_BEFORE.search(before), _LIMIT_FAR.search(before), _NAMED_AFTER.match(after))
    return any(match is not None for match in named)


def _within(value: float, quantity: Quantity, rounding: float) -> bool:
    reference = quantity.value
    if not isinstance(reference, (int, float)):
        return False
    if quantity.unit == "px":
        tolerance = max(1.0, 0.15 * abs(reference))
    elif quantity.tolerance is not None:
        tolerance = quantity.tolerance
    else:
        tolerance = max(min(rounding, 0.005), 5e-4)
    return round(abs(value - reference), 9) <= round(tolerance, 9)


def _sides_of(sentence: str, found: Sequence[Number]) -> list[str | None]:
    """The side of each number: in order where as many sides as numbers are named, else the nearest in its clause."""
    text = sentence
    matches = [*_SIDE.finditer(text)] or [*_SIDE_ANY.finditer(text)]
    sides = [(m.start(), "right" if m[1].lower().startswith("r") else "left") for m in matches]
    if len(sides) == len(found):
        return [side for _, side in sides]
    if not sides:
        return [None] * len(found)
    if len(sides) > len(found):
        return _alternating(sides, found)
    return [_nearest_side(sides, number) for number in found]


def _nearest_side(sides: list[tuple[int, str]], number: Number) -> str:
    return min(sides, key=lambda side: abs(side[0] - number.start))[1]


def _alternating(sides: list[tuple[int, str]], found: Sequence[Number]) -> list[str | None]:
    leading = sides[0][0] < found[0].start
    out: list[str | None] = []
    for number in found:
        before = [side for at, side in sides if at < number.start]
        after = [side for at, side in sides if at > number.start]
        out.append((before[-1] if before else None) if leading else (after[0] if after else None))
    return out
