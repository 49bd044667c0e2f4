"""Conversations in lockstep: who is asked what, in which batches, and what one failure costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from medground.benchmarks.requests import Answer, Ask, Conversation, Transcript, answer_all, in_lockstep


def counting(item: int, rounds: int) -> Conversation[dict[str, Any]]:
    heard = []
    for turn in range(rounds):
        answers = yield [Ask("model", "reply", {"item": item, "turn": turn}, {"turn": turn})]
        heard += [answer.values["text"] for answer in answers]
    return {"heard": heard}


class Echo:
    def __init__(self, poison: int | None = None) -> None:
        self.batches: list[list[tuple[int, int]]] = []
        self.poison = poison

    def __call__(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> list[Answer]:
        self.batches.append([(a["item"], a["turn"]) for a in arguments])
        if any(a["item"] == self.poison for a in arguments):
            raise ValueError("poison")
        return [Answer({"text": f"{a['item']}:{a['turn']}"}) for a in arguments]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9), st.integers(1, 5))
def test_rounds_are_gathered_in_item_order_and_cut_by_batch_size(lengths: list[int], size: int) -> None:
    echo = Echo()
    outcomes = in_lockstep([counting(i, n) for i, n in enumerate(lengths)], echo, lambda _: size)
    expected: list[list[tuple[int, int]]] = []
    for turn in range(max(lengths)):
        alive = [(i, turn) for i, n in enumerate(lengths) if n > turn]
        expected += [alive[at : at + size] for at in range(0, len(alive), size)]
    assert echo.batches == expected
    for i, (outcome, n) in enumerate(zip(outcomes, lengths, strict=True)):
        assert outcome.error is None
        assert outcome.result == {"heard": [f"{i}:{turn}" for turn in range(n)]}
        assert [e.key for e in outcome.exchanges] == [{"turn": turn} for turn in range(n)]


def test_an_error_of_the_model_ends_the_conversations_that_cause_it_and_no_other() -> None:
    echo = Echo(poison=1)
    outcomes = in_lockstep([counting(i, 2) for i in range(4)], echo, lambda _: 4)
    assert [type(o.error) for o in outcomes] == [type(None), ValueError, type(None), type(None)]
    assert outcomes[3].result == {"heard": ["3:0", "3:1"]}
    # The batch, then each alone, then the rest of the next round together.
    assert echo.batches == [
        [(0, 0), (1, 0), (2, 0), (3, 0)],
        [(0, 0)],
        [(1, 0)],
        [(2, 0)],
        [(3, 0)],
        [(0, 1), (2, 1), (3, 1)],
    ]


def test_an_error_of_a_conversation_is_its_own() -> None:
    def broken() -> Conversation[None]:
        yield [Ask("model", "reply", {"item": 9, "turn": 0})]
        raise RuntimeError("mine")

    outcomes = in_lockstep([broken(), counting(1, 1)], Echo(), lambda _: None)
    assert isinstance(outcomes[0].error, RuntimeError)
    assert outcomes[1].result == {"heard": ["1:0"]}
    with pytest.raises(RuntimeError, match="mine"):
        answer_all(broken(), Echo())


def test_a_wrong_number_of_answers_is_an_error() -> None:
    (outcome,) = in_lockstep([counting(0, 1)], lambda *_: [], lambda _: None)
    assert "0 answers to 1 requests" in str(outcome.error)


def test_roles_are_batched_apart_and_answers_come_back_in_the_order_asked() -> None:
    def both() -> Conversation[list[str]]:
        answers = yield [
            Ask("judge", "reply", {"n": 0}),
            Ask("model", "reply", {"n": 1}),
            Ask("judge", "reply", {"n": 2}),
        ]
        return [str(a.values["by"]) + str(a.values["n"]) for a in answers]

    def by(role: str, _: str, arguments: Sequence[Mapping[str, Any]]) -> Iterator[Answer] | list[Answer]:
        return [Answer({"by": role[0], "n": a["n"]}) for a in arguments]

    result, exchanges = answer_all(both(), by)  # type: ignore[arg-type]
    assert result == ["j0", "m1", "j2"]
    assert [a.values["n"] for a in Transcript("x", exchanges).answers("judge")] == [0, 2]
