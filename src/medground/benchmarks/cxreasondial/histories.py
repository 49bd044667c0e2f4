"""What a model is shown at a turn: the three history modes, and what becomes of turns that it cannot answer.

``without_gt`` shows the model's own replies: realistic, errors propagate. ``with_gt`` shows reference replies: every
turn stands alone, and evidence can be copied. ``simulator`` shows own replies to queries that a user simulator makes
from them. A visual turn is not asked of a model that cannot draw; with reference replies it stays in the history, with
own replies it leaves no trace (``drop``) or a fixed text (``placeholder``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from medground.benchmarks.cxreasondial.contract import Dialogue, Turn

History = Literal["without_gt", "with_gt", "simulator"]
HISTORIES: tuple[History, ...] = get_args(History)
Skipped = Literal["drop", "placeholder"]
PLACEHOLDER = "[visual turn, not asked]"

#: Role and text.
Line = tuple[Literal["user", "assistant"], str]


def applicable(turn: Turn, *, agent: bool) -> bool:
    """Whether a turn is asked: chatter always, a picture only of an agent."""
    return agent or not turn.visual


def messages(
    dialogue: Dialogue,
    turn: int,
    replies: Mapping[int, str],
    history: History = "without_gt",
    *,
    agent: bool = False,
    skipped: Skipped = "drop",
) -> list[Line] | None:
    """Return what is shown at a turn, or None where the turn is not asked.

    Args:
        dialogue: whose turns have gone before.
        turn: place of the turn that is asked now.
        replies: turn -> the candidate's own reply, of the turns before.
        history: which replies stand in the history.
        agent: whether the candidate can draw.
        skipped: what own history keeps of a turn that was not asked.
    """
    if not applicable(dialogue.turns[turn], agent=agent):
        return None
    out: list[Line] = []
    for earlier in dialogue.turns[:turn]:
        out += _pair(earlier, replies, history, agent=agent, skipped=skipped)
    return [*out, ("user", dialogue.turns[turn].query)]


def _pair(turn: Turn, replies: Mapping[int, str], history: History, *, agent: bool, skipped: Skipped) -> Sequence[Line]:
    asked = applicable(turn, agent=agent)
    if history == "with_gt":
        return [("user", turn.query), ("assistant", turn.reference_reply or "")]
    if asked:
        return [("user", turn.query), ("assistant", replies.get(turn.index, ""))]
    return [("user", turn.query), ("assistant", PLACEHOLDER)] if skipped == "placeholder" else []
