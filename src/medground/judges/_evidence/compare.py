"""Comparisons between the stated value and the threshold, and the view that a threshold belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from medground.judges._evidence.lexicon import NEGATION
from medground.judges._evidence.numbers import numbers

_BELOW = re.compile(r"\b(?:below|under|less than|lower than|short of|smaller than|fewer than)\b|<(?!=)", re.I)
_ABOVE = re.compile(r"\b(?:above|over|exceed\w*|more than|greater than|higher than|larger than|beyond)\b|>(?!=)", re.I)
_INSIDE = re.compile(r"\b(?:within|inside|in(?= the (?:range|\d)))\b", re.I)
_RULE = re.compile(
    r"\b(?:anything|everything|should|must|if|when|at least|up to|from|counts?|means|indicates|accept\w*|only|need\w*|would|limit (?:is|of)|"
    r"where|called?|normal (?:is|range)|ceiling|or)\b",
    re.I,
)


def false_comparisons(sentences: Sequence[str], limits: Sequence[float]) -> list[str]:
    """Return comparisons of a stated value with the threshold that do not hold: "0.81, well under the required 0.4"."""
    out = []
    for i, sentence in enumerate(sentences):
        stated = [
            (n, n.value / 100 if n.unit == "%" else n.value) for n in numbers(sentence) if n.unit not in ("count", "px")
        ]
        carried = (
            _carried(sentences[i - 1], limits) if i and stated and re.match(r"that is\b", sentence, re.I) else None
        )
        for k, (number, limit) in enumerate(stated):
            if not any(abs(limit - t) <= 1e-9 for t in limits):
                continue
            if k:
                before, value = sentence[stated[k - 1][0].end : number.start], stated[k - 1][1]
                if any(abs(value - t) <= 1e-9 for t in limits) and len(limits) == 2:
                    continue
            elif carried is not None:
                before, value = sentence[: number.start], carried
            else:
                continue
            if _RULE.search(before.replace("required", "")) or ";" in before or ". " in before:
                continue
            held = _holds(before, value, limit, limits)
            if held is False:
                out.append(f"comparison: {value:g} and {limit:g} do not compare so")
    return out


def _carried(sentence: str, limits: Sequence[float]) -> float | None:
    stated = [n.value / 100 if n.unit == "%" else n.value for n in numbers(sentence) if n.unit not in ("count", "px")]
    stated = [v for v in stated if all(abs(v - t) > 1e-9 for t in limits)]
    return stated[-1] if len(stated) == 1 else None


def _holds(between: str, value: float, limit: float, limits: Sequence[float]) -> bool | None:
    negated = sum(1 for _ in NEGATION.finditer(between)) % 2 == 1
    if len(limits) == 2 and _INSIDE.search(between):
        return (min(limits) <= value <= max(limits)) != negated
    if len(limits) == 2:
        return None
    if _BELOW.search(between):
        return (value < limit) != negated
    if _ABOVE.search(between):
        return (value >= limit) != negated
    return None


def wrong_view(sentences: Sequence[str], view: str, limits: Sequence[float]) -> list[str]:
    """Return a line where the threshold is given for the other view alone."""
    other = "AP" if view == "PA" else "PA"
    for sentence in sentences:
        has_limit = any(abs(n.value - t) <= 1e-9 for n in numbers(sentence) for t in limits)
        if has_limit and re.search(rf"\b{other}\b", sentence) and not re.search(rf"\b{view}\b", sentence):
            return [f"criterion: given for {other}, the view is {view}"]
    return []
