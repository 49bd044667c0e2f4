"""A user who answers what was said: the next query follows from the last reply, by rules.

The dialogue's own requests are asked in their order. After a reply that leaves out a number that was asked for, the
user asks for it once more; after one that states a number, the user may doubt that very number. Both are decided from
the text alone, so judging again later changes nothing of what was asked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

from medground.benchmarks.cxreasondial.contract import Dialogue, Turn
from medground.benchmarks.cxreasondial.wording import WORDS

VERSION = "rules/1"
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")


def next_turns(dialogue: Dialogue, turn: Turn, reply: str, asked_again: bool) -> Iterator[Turn]:
    """Return the turns that a reply provokes before the dialogue goes on; at most one.

    Args:
        dialogue: in which it happens.
        turn: that was answered.
        reply: to it.
        asked_again: whether ``turn`` was itself provoked.
    """
    diagnostic = [request for request in turn.requests if request.evidence_type == "diagnostic"]
    if asked_again or len(diagnostic) != 1 or len(turn.requests) != 1:
        return
    (request,) = diagnostic
    numbers = _NUMBER.findall(reply)
    if "measurement" in request.asked and not numbers and request.task != "trachea_deviation":
        query = f"You did not tell me {WORDS[request.task].values[0]}. What is it?"
        yield replace(
            turn, query=query, requests=(replace(request, asked=("measurement",)),), kind="asked_again", facts={}
        )
    elif numbers and _coin(dialogue.id, turn.index) and turn.kind in ("plain", "premise"):
        query = f"You say {numbers[0]}. Are you sure about {WORDS[request.task].topics[0]}?"
        wanted = (replace(request, asked=("measurement", "conclusion")),)
        yield replace(turn, query=query, requests=wanted, kind="doubted", answer_in_history=True, facts={})


def _coin(dialogue: str, turn: int) -> bool:
    return hashlib.sha256(f"{dialogue}\0{turn}".encode()).digest()[0] < 77  # three in ten
