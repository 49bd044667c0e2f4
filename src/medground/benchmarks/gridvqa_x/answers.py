"""What an explainer says, as it is kept and as it is read again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.benchmarks.requests import Answer
from medground.explainers.base import Attribution, Scores

_EXTRA = "extra/"


def kept_attribution(explanation: Attribution) -> Answer:
    """Return an attribution as it is kept; maps that are none become a reason, whoever made them."""
    reason = explanation.reason
    maps: dict[str, NDArray[Any]] = {}
    for name, values in (("image", explanation.image), ("text", explanation.text)):
        if values is None:
            continue
        problem = _problem(values, 2 if name == "image" else 1)
        if problem is None:
            maps[name] = np.asarray(values, dtype=np.float64)
        else:
            reason = f"the {name} map {problem}"
    record = {"target": int(explanation.target), "calls": int(explanation.calls), "reason": reason}
    return Answer(record, maps | _figures(explanation.extras))


def _problem(values: Any, axes: int) -> str | None:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        return f"holds {array.dtype.name} values"
    if array.ndim != axes or not array.size:
        return f"has the shape {array.shape}"
    if not np.isfinite(array).all():
        return "holds NaN or infinite values"
    return None


ADDED = "added"
"""Extra map of an explainer: the cells where something added would change the answer."""


def _figures(extras: Any) -> dict[str, NDArray[Any]]:
    # As arrays, not as JSON: a figure may be NaN.
    return {
        _EXTRA + name: np.array(value, np.float64)
        for name, value in extras.items()
        if isinstance(value, float) or name == ADDED
    }


def attribution(answer: Answer) -> Attribution:
    """Return a kept attribution."""
    return Attribution(
        _map(answer, "image"),
        _map(answer, "text"),
        answer.values["target"],
        answer.values["calls"],
        answer.values["reason"],
        _extras(answer),
    )


def _map(answer: Answer, name: str) -> NDArray[np.float64] | None:
    return np.asarray(answer.arrays[name], np.float64) if name in answer.arrays else None


def _extras(answer: Answer) -> dict[str, Any]:
    extras = {n.removeprefix(_EXTRA): v for n, v in answer.arrays.items() if n.startswith(_EXTRA)}
    return {name: float(v) if np.ndim(v) == 0 else np.asarray(v, np.float64) for name, v in extras.items()}


def kept_scores(synergy: Scores) -> Answer:
    """Return the scores of a pool as they are kept."""
    arrays: dict[str, NDArray[Any]] = {
        "each": np.asarray(synergy.each, np.float64),
        "overall": np.array(synergy.overall, np.float64),
    }
    if "projected_answer" in synergy.extras:
        arrays["projected_answer"] = np.asarray(synergy.extras["projected_answer"], np.int64)
    return Answer({}, arrays | _figures(synergy.extras))


def scores(answer: Answer) -> Scores:
    """Return kept scores."""
    arrays = answer.arrays
    more = {"projected_answer": arrays["projected_answer"]} if "projected_answer" in arrays else {}
    return Scores(np.asarray(arrays["each"], np.float64), float(arrays["overall"]), _extras(answer) | more)
