"""The standard capabilities as requests: what is handed to a player, and how its answer is kept.

========= ================================== =====================================================================
ask       arguments                          kept
========= ================================== =====================================================================
ground    image, findings                    ``scores``, ``probabilities`` (C,), ``map/<j>``; geometry, absent, origin
match     image, captions                    ``raw`` (K,), ``texts`` (K,); scale, kind
reply     conversation, options              the reply's record; its outcome
choose    conversation, choices              ``logp`` (K,)
logits    images (n, H, W, 3), questions     ``logits`` (n, A); answers
masks     image                              ``mask/<anatomy>``
========= ================================== =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from medground.benchmarks.requests import Answer
from medground.errors import ModelError
from medground.models.base import Reply, require

Arguments = Sequence[Mapping[str, Any]]


class Players:
    """Who plays which role, asked in the standard ways.

    Args:
        players: role -> built component.
        needs: role -> capabilities that it must have.
        by: the benchmark, for messages.

    Raises:
        ModelError: a player lacks a capability.
    """

    def __init__(
        self, players: Mapping[str, Any], needs: Mapping[str, Sequence[str]] | None = None, by: str = "the benchmark"
    ) -> None:
        self.players = dict(players)
        for role, capabilities in (needs or {}).items():
            require(self.players[role], set(capabilities), by=by)

    def answer(self, role: str, capability: str, arguments: Arguments) -> Sequence[Answer]:
        """Answer a batch of requests; see :class:`medground.benchmarks.base.Stages`."""
        if role not in self.players:
            raise ModelError("nobody plays this role", where=role, expected=", ".join(self.players))
        if capability not in _HANDLERS:
            raise ModelError("unknown capability", got=capability, expected=", ".join(_HANDLERS))
        return _HANDLERS[capability](self.players[role], arguments)


def _match(player: Any, asked: Arguments) -> list[Answer]:
    answers: list[Answer] = []
    # One call takes captions of one number an image.
    for start, stop in _runs([len(a["captions"]) for a in asked]):
        part = asked[start:stop]
        scores = player.match([a["image"] for a in part], [list(a["captions"]) for a in part])
        raw = np.asarray(scores.raw, dtype=np.float64)
        if raw.shape != (len(part), len(part[0]["captions"])):
            raise ModelError(
                f"{player.name}: match() returns a wrong shape",
                expected=(len(part), len(part[0]["captions"])),
                got=raw.shape,
            )
        arrays = [{"raw": row} for row in raw]
        if scores.texts is not None:
            arrays = [held | {"texts": own} for held, own in zip(arrays, np.asarray(scores.texts), strict=True)]
        answers += [Answer({"scale": float(scores.scale), "kind": scores.kind}, held) for held in arrays]
    return answers


def _runs(values: Sequence[int]) -> list[tuple[int, int]]:
    """Return (start, stop) of the runs of equal values."""
    edges = [0, *(i for i in range(1, len(values)) if values[i] != values[i - 1]), len(values)]
    return list(pairwise(edges))


def _reply(player: Any, asked: Arguments) -> list[Answer]:
    answers: list[Answer] = []
    options = [a.get("options") for a in asked]
    for start, stop in _runs([options.index(one) for one in options]):
        replies = player.reply([a["conversation"] for a in asked[start:stop]], options[start])
        answers += [kept_reply(reply) for reply in replies]
    return answers


def kept_reply(reply: Reply) -> Answer:
    """Return a reply as it is kept; ``Reply.of(answer.values)`` is the way back."""
    return Answer(reply.record(), {}, reply.outcome, reply.reason)


def _choose(player: Any, asked: Arguments) -> list[Answer]:
    rows = player.choose([a["conversation"] for a in asked], [list(a["choices"]) for a in asked])
    return [Answer({}, {"logp": np.asarray(row, dtype=np.float64)}) for row in rows]


def _logits(player: Any, asked: Arguments) -> list[Answer]:
    images = np.concatenate([a["images"] for a in asked])
    questions = [question for a in asked for question in a["questions"]]
    logits = np.asarray(player.logits(images, questions), dtype=np.float64)
    edges = np.cumsum([len(a["questions"]) for a in asked])[:-1]
    return [Answer({"answers": list(player.answers)}, {"logits": part}) for part in np.split(logits, edges)]


def _masks(player: Any, asked: Arguments) -> list[Answer]:
    return [
        Answer(
            {}, {f"mask/{name}": np.asarray(mask, dtype=np.bool_) for name, mask in player.masks(a["image"]).items()}
        )
        for a in asked
    ]


_HANDLERS: Mapping[str, Callable[[Any, Arguments], Sequence[Answer]]] = {
    "match": _match,
    "reply": _reply,
    "choose": _choose,
    "logits": _logits,
    "masks": _masks,
}
"""``ground`` is XBench's own, because findings of one call are asked together."""
