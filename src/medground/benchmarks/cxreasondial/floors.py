"""What can be had without looking: scripted repliers on the same dialogues, judged by the same rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medground.benchmarks.cxreasondial.baselines import AllNormal, Parrot, Refuser
from medground.benchmarks.cxreasondial.contract import Dialogue, Turn
from medground.benchmarks.cxreasondial.histories import applicable, messages
from medground.benchmarks.cxreasondial.rows import applicable as metrics_of
from medground.benchmarks.cxreasondial.scores import Judged
from medground.judges.evidence import Evidence
from medground.models.base import Message

#: Name -> replier; the parrot is shown reference replies.
REPLIERS: Mapping[str, Any] = {"all normal": AllNormal, "parrot": Parrot, "refuser": Refuser}


def floors(dialogues: Sequence[Dialogue]) -> dict[str, list[Judged]]:
    """Judge every scripted replier on the turns that a model without pictures of its own is asked."""
    return {name: judged(dialogues, replier()) for name, replier in REPLIERS.items()}


def judged(dialogues: Sequence[Dialogue], replier: Any) -> list[Judged]:
    """Judge one replier with reference history."""
    judge, out = Evidence(), []
    for dialogue in dialogues:
        for turn in dialogue.turns:
            if not applicable(turn, agent=False):
                continue
            text = reply_of(replier, dialogue, turn)
            metrics = metrics_of(turn, agent=False)
            ruling = judge.judge(dialogue.query(turn, draws=False), text)
            verdicts = {"coverage": ruling.coverage, "faithfulness": ruling.faithfulness}
            out.append(Judged(dialogue.id, turn.index, metrics, verdicts))
    return out


def reply_of(replier: Any, dialogue: Dialogue, turn: Turn) -> str:
    """What a replier says at a turn when it is shown reference replies."""
    lines = messages(dialogue, turn.index, {}, "with_gt") or []
    (reply,) = replier.reply([[Message(role, text) for role, text in lines]])
    return str(reply.text)
