"""Captions, as a chat model reads them: sentence by sentence, each a question with yes or no as the answer.

A caption fits as well as it is likely that all its sentences are true. Prompts that offer captions on lines of their
own (``Caption A: ...``, ``Caption B: ...``) are read the same way: each caption by itself, so that no place has an
advantage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from medground.models.base import Message

_LINE: Final = re.compile(r"^\s*Caption ([A-Z]): *(.+?)\s*$", re.MULTILINE)


def sentences(caption: str) -> list[str]:
    """Return the sentences of a caption without their full stops.

    Example:
        >>> sentences("Chest film. No mass. Effusion on the left.")
        ['Chest film', 'No mass', 'Effusion on the left']
    """
    return [part.strip() for part in re.split(r"\.(?:\s+|$)", caption) if part.strip()]


def offered(conversation: Sequence[Message]) -> dict[str, str]:
    r"""Return the captions that the last turn offers: "Caption A" -> its text; none: an empty mapping.

    Example:
        >>> offered([Message("user", "Which fits?\nCaption A: No mass.\nCaption B: A mass.")])
        {'Caption A': 'No mass.', 'Caption B': 'A mass.'}
    """
    if not conversation or conversation[-1].role != "user":
        return {}
    captions = {f"Caption {letter}": text for letter, text in _LINE.findall(conversation[-1].text)}
    return captions if len(captions) > 1 else {}


def log_probability(margins: Sequence[float]) -> float:
    """Return the log-probability that all sentences are true, from the log odds of each; NaN stays NaN."""
    odds = np.asarray(margins, np.float64)
    return float("nan") if np.isnan(odds).any() else -float(np.logaddexp(0, -odds).sum())


def logit(log_p: float) -> float:
    """Return the log odds of a log-probability."""
    return log_p - float(np.log(-np.expm1(min(log_p, -1e-12)))) if np.isfinite(log_p) else log_p


def shares(scores: Mapping[str, float]) -> dict[str, float]:
    """Return log-probabilities that sum to one of log scores."""
    held = np.array(list(scores.values()))
    total = float("nan") if np.isnan(held).any() else float(np.logaddexp.reduce(held))
    return {name: score - total for name, score in scores.items()}
