"""What items ask and what they are told: plain values, so that answers can be kept and read again.

A conversation is a generator. It yields a *round* (a sequence of :class:`Ask`), is sent the round's answers in the
same order, and returns notes to keep beside them::

    def converse(item, loaded):
        (answer,) = yield [Ask("model", "reply", {"conversation": first(item, loaded)})]
        (second,) = yield [Ask("model", "reply", {"conversation": then(item, loaded, answer)})]
        return {"pictures": loaded.facts}

Many conversations go on side by side, in lockstep: each round's requests are gathered in item order and cut into
batches, so what a model is given depends on the items alone, never on threads.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

Outcome = Literal["ok", "refusal", "timeout", "unreadable", "error"]
"""What became of a request; all but ``ok`` are states that are counted, never values."""


@dataclass(frozen=True)
class Ask:
    """One request.

    Attributes:
        role: who is asked: ``model``, ``judge``, ``simulator``, ``segmenter``, ...
        capability: what for: ``ground``, ``match``, ``reply``, ``choose``, ``logits``, ``masks``, ...
        arguments: by name; pictures and conversations as objects, everything else plain.
        key: what was sent, where a reader wants to know it later: a JSON-like value kept beside the answer (never a
            picture).
    """

    role: str
    capability: str
    arguments: Mapping[str, Any]
    key: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What was said to one request, as it is kept.

    Attributes:
        values: JSON-like.
        arrays: name -> array, kept bit by bit.
        outcome: ``ok``, or the state that took the place of an answer.
        reason: why, where it is not ``ok``; without a path, so that it can be counted.
        passing: arrays for measuring at once that are not kept, because they can be had again (maps read from files).
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    outcome: Outcome = "ok"
    reason: str = ""
    passing: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)


@dataclass(frozen=True)
class Exchange:
    """One request without its arguments, and what was said to it."""

    role: str
    capability: str
    key: Mapping[str, Any]
    answer: Answer


@dataclass(frozen=True)
class Transcript:
    """Everything that was said about one item, in the order asked, and the notes that its conversation returned."""

    item_id: str
    exchanges: tuple[Exchange, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)

    def answers(self, role: str | None = None, capability: str | None = None) -> list[Answer]:
        """Return the answers of one role or capability, in the order asked."""
        return [
            e.answer
            for e in self.exchanges
            if (role is None or e.role == role) and (capability is None or e.capability == capability)
        ]


T = TypeVar("T")
Conversation = Generator[Sequence[Ask], Sequence[Answer], T]
"""Yields rounds of requests, is sent their answers, returns a result."""

Answerer = Callable[[str, str, Sequence[Mapping[str, Any]]], Sequence[Answer]]
"""(role, capability, arguments of a batch) -> one answer each, in order."""


@dataclass
class _Going:
    """A conversation on its way."""

    conversation: Conversation[Any]
    round: Sequence[Ask] = ()
    exchanges: list[Exchange] = field(default_factory=list)
    result: Any = None
    error: Exception | None = None
    ended: bool = False

    def step(self, answers: Sequence[Answer] | None) -> None:
        """Send answers (None starts it) and take the next round; an error ends this conversation alone."""
        try:
            self.round = next(self.conversation) if answers is None else self.conversation.send(answers)
        except StopIteration as stop:
            self.result, self.ended, self.round = stop.value, True, ()
        except Exception as error:
            self.error, self.ended, self.round = error, True, ()

    def fail(self, error: Exception) -> None:
        self.error, self.ended, self.round = error, True, ()
        self.conversation.close()


@dataclass(frozen=True)
class Outcomes:
    """How one conversation ended: its result and exchanges, or the error that ended it."""

    result: Any
    exchanges: tuple[Exchange, ...]
    error: Exception | None = None


def in_lockstep(
    conversations: Sequence[Conversation[Any]],
    answer: Answerer,
    batch_size: Callable[[str], int | None],
) -> list[Outcomes]:
    """Carry on conversations side by side until all have ended.

    Args:
        conversations: in item order.
        answer: gives a batch of one role and capability. If it raises, the batch is asked again one by one, and those
            that raise again end their own conversation with that error; with a batch of one the error is final.
        batch_size: role -> requests a call; None: all of a round at once (who answers limits itself).

    Returns:
        One outcome each, in order.
    """
    going = [_Going(conversation) for conversation in conversations]
    for one in going:
        one.step(None)
    while any(not one.ended for one in going):
        _round([one for one in going if not one.ended], answer, batch_size)
    return [Outcomes(one.result, tuple(one.exchanges), one.error) for one in going]


def _round(going: Sequence[_Going], answer: Answerer, batch_size: Callable[[str], int | None]) -> None:
    asked = [(one, place, ask) for one in going for place, ask in enumerate(one.round)]
    answers: dict[tuple[int, int], Answer] = {}
    for role, capability in dict.fromkeys((ask.role, ask.capability) for _, _, ask in asked):
        same = [entry for entry in asked if (entry[2].role, entry[2].capability) == (role, capability)]
        size = batch_size(role) or len(same)
        for start in range(0, len(same), size):
            _batch(same[start : start + size], answer, answers)
    for one in going:
        if not one.ended:
            given = [answers[id(one), place] for place in range(len(one.round))]
            one.exchanges += [
                Exchange(ask.role, ask.capability, ask.key, got) for ask, got in zip(one.round, given, strict=True)
            ]
            one.step(given)


def _batch(
    entries: Sequence[tuple[_Going, int, Ask]], answer: Answerer, answers: dict[tuple[int, int], Answer]
) -> None:
    live = [entry for entry in entries if not entry[0].ended]
    if not live:
        return
    first = live[0][2]
    try:
        given = answer(first.role, first.capability, [ask.arguments for _, _, ask in live])
        if len(given) != len(live):
            raise _MiscountError(f"{len(given)} answers to {len(live)} requests of {first.role}.{first.capability}")
    except Exception as error:
        if len(live) == 1:
            live[0][0].fail(error)
            return
        for entry in live:
            _batch([entry], answer, answers)
        return
    for (one, place, _), got in zip(live, given, strict=True):
        answers[id(one), place] = got


class _MiscountError(RuntimeError):
    """Somebody did not answer once a request."""


def answer_all(
    conversation: Conversation[T], answer: Answerer, batch_size: int | None = None
) -> tuple[T, tuple[Exchange, ...]]:
    """Carry on one conversation alone, as tests and small tools do; raises what it raises."""
    (outcome,) = in_lockstep([conversation], answer, lambda _: batch_size)
    if outcome.error is not None:
        raise outcome.error
    return outcome.result, outcome.exchanges
