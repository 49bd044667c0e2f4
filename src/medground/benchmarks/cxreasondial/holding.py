"""Holding a dialogue: one model is asked turn after turn, by the dialogue itself or by a user who reacts to it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from medground.benchmarks.base import Item
from medground.benchmarks.cxreasondial import users
from medground.benchmarks.cxreasondial.contract import Dialogue, Turn
from medground.benchmarks.cxreasondial.histories import Line, applicable, messages as history_of
from medground.benchmarks.cxreasondial.simulator import next_turns
from medground.benchmarks.players import Players
from medground.benchmarks.requests import Answer, Ask, Conversation, Transcript
from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message, Reply, capabilities_of

if TYPE_CHECKING:
    from medground.benchmarks.cxreasondial.tasks import DialogueTask

Going = Generator[Sequence[Ask], Sequence[Answer], Reply]


class Stages:
    """An opened task: the model answers turn after turn."""

    def __init__(self, task: DialogueTask, players: Mapping[str, Any]) -> None:
        self._task = task
        self._players = Players(players, dict.fromkeys(players, ("reply",)), "the benchmark cxreasondial")
        self._agent = "draws" in capabilities_of(players["model"])

    def load(self, item: Item) -> Radiograph | None:
        """Decode the picture, where the model is shown one."""
        return self._task.source.picture(item.payload) if self._task.options.pictures else None

    def converse(self, item: Item, loaded: Radiograph | None) -> Conversation[Mapping[str, Any]]:
        """Hold the dialogue; the notes say what was asked at every turn, in order."""
        options, dialogue = self._task.options, item.payload
        turns = [turn for turn in dialogue.turns if applicable(turn, agent=self._agent)]
        if options.history == "simulator":
            held = _Simulated(dialogue, lambda said, turn: self._ask(said, loaded, turn), options.seed)
            going = held.by_rules(turns) if self._task.simulator is None else held.by_model(turns)
            return {"turns": (yield from going), "agent": self._agent}
        notes: list[dict[str, Any]] = []
        replies: dict[int, str] = {}
        for turn in turns:
            lines = history_of(
                dialogue, turn.index, replies, options.history, agent=self._agent, skipped=options.skipped
            )
            reply = yield from self._ask(lines or [], loaded, turn.index)
            replies[turn.index] = reply.text
            notes.append({"turn": turn.index, "query": turn.query, "kind": turn.kind})
        return {"turns": notes, "agent": self._agent}

    def _ask(self, lines: Sequence[Line], picture: Radiograph | None, turn: int) -> Going:
        options = GenerationOptions(self._task.options.max_new_tokens, seed=self._task.options.seed)
        images = (picture,) if picture is not None else ()
        conversation = tuple(Message(role, text, images if i == 0 else ()) for i, (role, text) in enumerate(lines))
        asked = {"conversation": conversation, "options": options}
        (answer,) = yield [Ask("model", "reply", asked, {"turn": turn})]
        return reply_of(answer)

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Ask the model, or the simulator, about one batch."""
        return self._players.answer(role, capability, arguments)


class _Simulated:
    """A dialogue with a user who reacts: every turn of it at most twice, so it ends."""

    def __init__(self, dialogue: Dialogue, model: Any, seed: int) -> None:
        self._dialogue, self._model, self._seed = dialogue, model, seed
        self._said: list[Line] = []
        self._notes: list[dict[str, Any]] = []

    def by_rules(self, turns: Sequence[Turn]) -> Conversation[list[dict[str, Any]]]:
        """Carry on with the user of :mod:`simulator`."""
        for turn in turns:
            reply = yield from self._exchange(turn)
            for again in next_turns(self._dialogue, turn, reply.text, asked_again=False):
                yield from self._exchange(again)
        return self._notes

    def by_model(self, turns: Sequence[Turn]) -> Conversation[list[dict[str, Any]]]:
        """Carry on with the user of :mod:`users`: the first query stands, the others are its own."""
        coming, last = list(turns), None
        current, by = (coming.pop(0) if coming else None), {"by": "planned", "set_aside": ""}
        again = False
        while current is not None:
            reply = yield from self._exchange(current, by)
            last, follows = current, coming[0] if coming else None
            may: tuple[users.Action, ...] = () if again else users.may_provoke(last, reply.text)
            chosen = yield from self._move(last, follows, (*(("next",) if follows else ()), *may))
            again = chosen is not None and chosen.action != "next"
            if chosen is None:
                break
            current = users.provoked(last, chosen) if again else replace(coming.pop(0), query=chosen.query)
            by = {"by": chosen.by, "set_aside": chosen.reason}
        return self._notes

    def _move(
        self, last: Turn, coming: Turn | None, open_to: tuple[users.Action, ...]
    ) -> Generator[Sequence[Ask], Sequence[Answer], users.Move | None]:
        if not open_to:
            return None
        asked = users.ask(self._said, coming, open_to, self._seed)
        (answer,) = yield [Ask("simulator", "reply", asked, {"after": last.index})]
        return users.move(reply_of(answer), last, coming, open_to)

    def _exchange(self, turn: Turn, by: Mapping[str, str] | None = None) -> Going:
        self._said.append(("user", turn.query))
        reply: Reply = yield from self._model(tuple(self._said), turn.index)
        self._said.append(("assistant", reply.text))
        note = {"turn": turn.index, "query": turn.query, "kind": turn.kind}
        asked = [list(request.asked) for request in turn.requests]
        self._notes.append({**note, "asked": asked, **(by or {"by": "rules", "set_aside": ""})})
        return reply


def reply_of(answer: Answer) -> Reply:
    """The reply that an answer holds; a state where it holds none."""
    return Reply.of(answer.values) if answer.values else Reply("", answer.outcome, answer.reason)


@dataclass(frozen=True)
class Said:
    """One turn as it was held.

    Attributes:
        turn: as it was asked.
        reply: to it.
        shown: assistant turns that stood in the history.
        asked_by: whose words the query is: ``dialogue``, ``rules``, ``model``, or ``planned`` with why a simulating
            model's words were set aside.
    """

    turn: Turn
    reply: Reply
    shown: tuple[str, ...]
    asked_by: str = "dialogue"


def held(dialogue: Dialogue, transcript: Transcript, history: str) -> list[Said]:
    """Put the answers beside the turns that they answer."""
    out: list[Said] = []
    answers = transcript.answers("model", "reply")
    for note, answer in zip(transcript.notes["turns"], answers, strict=True):
        turn, asked_by = dialogue.turns[note["turn"]], "dialogue"
        if "asked" in note:
            pairs = zip(turn.requests, note["asked"], strict=True)
            requests = tuple(replace(request, asked=tuple(asked)) for request, asked in pairs)
            doubted = note["kind"] == "doubted" or turn.answer_in_history
            turn = replace(turn, query=note["query"], kind=note["kind"], requests=requests, answer_in_history=doubted)
            asked_by = f"{note['by']}: {note['set_aside']}" if note.get("set_aside") else note["by"]
        own = [s.reply.text for s in out]
        references = [t.reference_reply or "" for t in dialogue.turns[: turn.index]]
        shown = tuple(references if history == "with_gt" else own)
        out.append(Said(turn, reply_of(answer), shown, asked_by))
    return out
