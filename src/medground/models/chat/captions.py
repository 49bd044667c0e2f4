"""Captions, as a chat model that knows questions about regions reads them: each sentence is a question with its answer.

"Pleural effusion on the left" is true where the model says that the left lung has effusion; "no lung mass" where it
says that there is no mass in the picture. Sentences are read by the grammar that phantoms' captions are written in
(``worlds.phantom.statements``). Devices and sizes are no questions about regions: a model that was taught whether
sentences are true is asked that. A sentence that cannot be asked, of views and landmarks too, adds nothing, so that two
captions that differ in nothing else come out equal: a tie.

Prompts that offer captions on lines of their own (``Caption A: ...``, ``Caption B: ...``) are read the same way: each
caption by itself, so that no place has an advantage.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from medground.models.base import Message
from medground.worlds.phantom.questions import CLAIM, CLOSED, PRESENT
from medground.worlds.phantom.statements import Statement, said

_LINE: Final = re.compile(r"^\s*Caption ([A-Z]): *(.+?)\s*$", re.MULTILINE)


_LEARNT: Final = ("device", "size")
"""What a model of the second stage is asked as a sentence: of views and landmarks it has learnt nothing."""


class Asked(NamedTuple):
    """A sentence as a question: the text, and whether "yes" makes the sentence true."""

    text: str
    yes: bool


def questions(caption: str, *, claims: bool = False) -> list[Asked]:
    """Return what a caption says, as questions, one a sentence that can be asked.

    Args:
        caption: the text.
        claims: whether the model was taught to say of a sentence whether it is true (the second stage of training):
            then devices and sizes are asked about too.

    Example:
        >>> questions("Chest film. Right-sided pneumothorax. No lung mass.")
        [Asked(text='Does the right lung have pneumothorax?', yes=True), Asked(text='Is there mass in the picture?', \
yes=False)]
    """
    asked = []
    for sentence in re.split(r"\.(?:\s+|$)", caption):
        for statement in said(f"{sentence}."):
            one = _question(statement)
            if one is None and claims and statement.kind in _LEARNT:
                one = Asked(CLAIM.format(sentence=sentence), True)
            asked += [] if one is None else [one]
    return asked


def _question(statement: Statement) -> Asked | None:
    finding = statement.finding.lower()
    if statement.kind in ("present", "absent"):
        return Asked(PRESENT.format(finding=finding), statement.kind == "present")
    if statement.kind in ("side", "third"):
        third = f" {statement.third}" if statement.third else ""
        return Asked(CLOSED[0].format(region=f"{statement.value}{third} lung", finding=finding), True)
    return None


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


def log_probability(asked: Sequence[Asked], odds: Mapping[str, float]) -> float:
    """Return the log-probability that all sentences are true; 0 where there is none.

    Args:
        asked: the sentences.
        odds: question -> log odds of "yes"; NaN where it is not answered, and NaN comes back.
    """
    signed = np.array([odds[one.text] if one.yes else -odds[one.text] for one in asked], np.float64)
    return float("nan") if np.isnan(signed).any() else 0.0 - float(np.logaddexp(0, -signed).sum())


def logit(log_p: float) -> float:
    """Return the log odds of a log-probability; of a certain one, those of 1 - 1e-12."""
    return log_p - float(np.log(-np.expm1(min(log_p, -1e-12)))) if np.isfinite(log_p) else log_p


def shares(scores: Mapping[str, float]) -> dict[str, float]:
    """Return log-probabilities that sum to one of log scores; NaN in one: NaN in all."""
    held = np.array(list(scores.values()))
    total = float("nan") if np.isnan(held).any() else float(np.logaddexp.reduce(held))
    return {name: score - total for name, score in scores.items()}
