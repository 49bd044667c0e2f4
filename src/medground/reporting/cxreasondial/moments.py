"""The best and the worst moment of a dialogue: a covered, faithful reply, and one that contradicts the evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from medground.reporting.moments import Moment


def moments(
    dialogues: Mapping[str, Sequence[Mapping[str, Any]]], picture: Callable[[Mapping[str, Any]], str]
) -> Iterator[Moment]:
    """Yield a faithful turn and an unfaithful one, a model; where a model has but one kind, that one.

    Args:
        dialogues: ``model / dialogues`` -> turns that the summary keeps.
        picture: of a turn, as a data address; empty where none may be shown.
    """
    told: set[tuple[str, bool]] = set()
    for who, turns in dialogues.items():
        model = who.partition(" / ")[0]
        for faithful in (1, 0):
            chosen = next((turn for turn in turns if turn["faithfulness"] == faithful and turn["reply"]), None)
            if chosen is not None and (model, bool(faithful)) not in told:
                told.add((model, bool(faithful)))
                yield _moment(model, chosen, picture, best=bool(faithful))


def _moment(model: str, turn: Mapping[str, Any], picture: Callable[[Mapping[str, Any]], str], *, best: bool) -> Moment:
    lines = (("asked", turn["query"]), ("said", turn["reply"]), ("measured", turn["evidence"]))
    words = "agrees with what was measured" if best else turn["reason"] or "does not agree with what was measured"
    kept = tuple((who, str(what)) for who, what in lines if what)
    return Moment(
        "dialogue", model, best, f"{turn['dialogue']}, turn {turn['turn'] + 1}", words, picture(turn), lines=kept
    )
