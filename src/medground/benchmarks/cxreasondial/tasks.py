"""One model on one set of dialogues: turns in, replies out, rows from replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from medground.benchmarks.base import Entry, Item, Measured, TaskDefaults
from medground.benchmarks.cxreasondial.build import Builder
from medground.benchmarks.cxreasondial.canaries import CANARIES, attacked, changed_rulings, drawn
from medground.benchmarks.cxreasondial.contract import Dialogue, read_dialogues
from medground.benchmarks.cxreasondial.histories import History, Skipped, applicable
from medground.benchmarks.cxreasondial.holding import Said, Stages, held, reply_of
from medground.benchmarks.cxreasondial.imports import import_dialogues
from medground.benchmarks.cxreasondial.phantoms import Phantoms
from medground.benchmarks.cxreasondial.rows import SCHEMA, lost, overlays_of, row
from medground.benchmarks.cxreasondial.simulator import VERSION as SIMULATOR
from medground.benchmarks.cxreasondial.users import VERSION as USER
from medground.benchmarks.players import Players
from medground.benchmarks.requests import Answer, Ask, Conversation, Transcript
from medground.identity import file_hash, fingerprint_of
from medground.imaging.reading import Radiograph, read_radiograph
from medground.judges.base import Query, Ruling
from medground.judges.evidence import Evidence
from medground.judges.hybrid import Hybrid
from medground.judges.llm import Llm, panel
from medground.models.base import capabilities_of
from medground.tools import TASKS

JudgeName = Literal["evidence", "llm", "hybrid"]


@dataclass(frozen=True)
class Source:
    """Where dialogues come from: a JSONL file, or phantoms.

    Attributes:
        path: of the file; None: phantoms are measured and asked about.
        count: phantoms.
        seed: of phantoms and dialogues.
        size: width of the phantoms' pictures.
        fields: our field -> that of the file, for files of another layout; as pairs, so that a source can be compared.
    """

    path: Path | None = None
    count: int = 40
    seed: int = 0
    size: int = 256
    fields: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """How tables call it."""
        return "phantoms" if self.path is None else self.path.stem

    def identity(self) -> str:
        """What the dialogues depend on."""
        if self.path is not None:
            return file_hash(self.path) if not self.fields else fingerprint_of(file_hash(self.path), self.fields)
        return fingerprint_of("phantom dialogues/1", self.count, self.seed, self.size)

    def dialogues(self) -> Sequence[Dialogue]:
        """Read or build them, once a process."""
        return _dialogues(self)[0]

    def dropped(self) -> tuple[int, int] | None:
        """Measurements that quality control dropped, and of how many; None where a file does not tell."""
        return _dialogues(self)[1]

    def picture(self, dialogue: Dialogue) -> Radiograph:
        """The picture of a dialogue."""
        if self.path is not None:
            image = dialogue.image
            case = image.dicom_id or dialogue.id
            return read_radiograph(self.path.parent / image.path, case_id=case, patient_id=dialogue.patient_id)
        from medground.worlds.phantom.drawing import draw

        world = Phantoms(self.seed, self.size)
        pixels = np.asarray(draw(world.scene(dialogue.image.dicom_id), self.size).pixels, dtype=np.float32)
        scaled = (pixels / np.float32(255 if pixels.max() > 1 else 1)).astype(np.float32)
        return Radiograph(scaled, dialogue.image.dicom_id, dialogue.patient_id)

    def files(self, dialogue: Dialogue) -> tuple[Path, ...]:
        """The picture's file, where there is one."""
        return () if self.path is None else (self.path.parent / dialogue.image.path,)


@lru_cache(maxsize=8)
def _dialogues(source: Source) -> tuple[tuple[Dialogue, ...], tuple[int, int] | None]:
    if source.path is not None:
        given = import_dialogues(source.path, dict(source.fields)) if source.fields else read_dialogues(source.path)
        return tuple(given), None
    builder = Builder(source.seed, source="phantoms of medground", license_note="drawn; no patient")
    built = tuple(builder.build(Phantoms(source.seed, source.size).cases(source.count)))
    return built, (sum(builder.report.dropped.values()), source.count * len(TASKS))


@dataclass(frozen=True)
class Options:
    """How dialogues are held and judged.

    Attributes:
        history: which replies stand in the history.
        skipped: what own history keeps of turns that are not asked.
        pictures: whether the model is shown the picture; without, it is its own blind twin.
        max_new_tokens: of a reply.
        judge: who judges.
        audit: share of turns that the hybrid judge has a model judge too.
        canaries: share of turns on which attacks on the judge are tried.
        seed: of the model's sampling, and of the judge's fences.
    """

    history: History = "without_gt"
    skipped: Skipped = "drop"
    pictures: bool = True
    max_new_tokens: int = 256
    judge: JudgeName = "evidence"
    audit: float = 0.1
    canaries: float = 0.05
    seed: int = 0


class Rules:
    """Makes rows with the evidence judge: pure."""

    def __init__(self, task: DialogueTask) -> None:
        self._options = task.options
        self._judge = Evidence()
        self._agent = task.agent

    def measure(self, item: Item, transcript: Transcript) -> Measured:
        """Judge every turn of one dialogue."""
        dialogue: Dialogue = item.payload
        rows = []
        for place, said in enumerate(held(dialogue, transcript, self._options.history)):
            query = dialogue.query(said.turn, draws=self._agent)
            ruling = self.ruling(query, said)
            tried = (0, 0)
            if said.reply.outcome == "ok" and said.turn.requests:
                key, overlays = f"{dialogue.id} {place}", overlays_of(said.reply)
                tried = attacked(self._judge, query, said.reply.text, overlays, ruling, key, self._options.canaries)
            rows.append(self._row(dialogue, said, place, ruling, canaries=tried))
        return Measured(rows)

    def ruling(self, query: Query, said: Said) -> Ruling:
        """The rules' verdict; a reply that never came has none."""
        if said.reply.outcome != "ok":
            return Ruling(None, None, "api_error", f"no reply: {said.reply.outcome}", (), Evidence.name)
        return self._judge.judge(query, said.reply.text, overlays_of(said.reply))

    def _row(self, dialogue: Dialogue, said: Said, place: int, ruling: Ruling, **more: Any) -> dict[str, Any]:
        made = row(
            dialogue,
            said.turn,
            said.reply,
            history=self._options.history,
            agent=self._agent,
            ruling=ruling,
            shown=said.shown,
            asked_by=said.asked_by,
            **more,
        )
        return {**made, "turn": place if self._options.history == "simulator" else said.turn.index}

    def failed(self, item: Item, reason: str) -> Measured:
        """Rows that say why nothing was said."""
        dialogue: Dialogue = item.payload
        asked = [turn for turn in dialogue.turns if applicable(turn, agent=self._agent)]
        history = self._options.history
        return Measured([lost(dialogue, turn, reason, history=history, agent=self._agent) for turn in asked])


class Asking(Rules):
    """Makes rows with a chat model as judge, alone, as a panel, or behind the rules."""

    def __init__(self, task: DialogueTask, players: Mapping[str, Any]) -> None:
        super().__init__(task)
        self._players = Players(players, dict.fromkeys(players, ("reply",)), "the judge of cxreasondial")
        self._labels = {f"judge_{i}": entry.label for i, entry in enumerate(task.judges)}
        self._llm = Llm(seed=task.options.seed)
        self._hybrid = Hybrid(task.options.audit, seed=task.options.seed) if task.options.judge == "hybrid" else None

    def read(self, item: Item, transcript: Transcript) -> Conversation[Measured]:
        """Judge every turn of one dialogue in one round."""
        dialogue: Dialogue = item.payload
        turns = held(dialogue, transcript, self._options.history)
        rules = [self.ruling(dialogue.query(said.turn, draws=self._agent), said) for said in turns]
        chosen = [i for i, said in enumerate(turns) if self._asks(dialogue, i, said, rules[i])]
        attacked_turns = [i for i in chosen if drawn(f"{dialogue.id} {i}", self._options.canaries)]
        texts = [(i, turns[i].reply.text) for i in chosen]
        texts += [(i, f"{turns[i].reply.text}\n{canary}") for i in attacked_turns for canary in CANARIES]
        queries = {i: dialogue.query(turns[i].turn, draws=self._agent) for i in chosen}
        asks = [ask for i, text in texts for ask in self._asked(queries[i], text, i)]
        answers = (yield asks) if asks else []
        rulings = iter([self._llm.interpret(reply_of(answer)) for answer in answers])
        count = len(self._labels)
        told = {i: list(islice(rulings, count)) for i in chosen}
        canaries = {i: changed_rulings(told[i], list(islice(rulings, count * len(CANARIES)))) for i in attacked_turns}
        return Measured(
            [
                self._judged(dialogue, said, i, rules[i], told.get(i, []), canaries.get(i, (0, 0)))
                for i, said in enumerate(turns)
            ]
        )

    def _asked(self, query: Query, text: str, place: int) -> list[Ask]:
        """Return what every judging model is asked about a text of a turn."""
        conversation, options = self._llm.ask(query, text)
        asked = {"conversation": tuple(conversation), "options": options}
        return [Ask(role, "reply", asked, {"turn": place}) for role in self._labels]

    def _asks(self, dialogue: Dialogue, place: int, said: Said, rules: Ruling) -> bool:
        if rules.status in ("skipped", "api_error") or said.turn.visual:
            return False
        return self._hybrid is None or self._hybrid.asks(f"{dialogue.id} {place}", rules)

    def _judged(
        self,
        dialogue: Dialogue,
        said: Said,
        place: int,
        rules: Ruling,
        told: Sequence[Ruling],
        canaries: tuple[int, int],
    ) -> dict[str, Any]:
        if not told:
            return self._row(dialogue, said, place, rules)
        model = panel(told)
        final = model if self._hybrid is None else self._hybrid.decide(rules, model)
        by_judge = {Evidence.name: rules, **dict(zip(self._labels.values(), told, strict=True))}
        return self._row(dialogue, said, place, final, by_judge=by_judge, canaries=canaries)

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Ask the judges."""
        return self._players.answer(role, capability, arguments)


@dataclass(frozen=True)
class DialogueTask(TaskDefaults):
    """One model on one set of dialogues.

    Attributes:
        model: who answers.
        source: the dialogues.
        options: how they are held and judged.
        judges: chat models that judge, where the judge is one.
        simulator: a chat model that plays the user; None: rules do, where the history asks for one.
        batch_size: conversations a call of the model.
    """

    model: Entry
    source: Source
    options: Options
    judges: tuple[Entry, ...] = ()
    simulator: Entry | None = None
    batch_size: int = 8
    expensive: bool = True

    @property
    def path(self) -> tuple[str, ...]:
        """(model, dialogues)."""
        return (self.model.label, f"{self.source.label}, {self.options.history}")

    @property
    def schema(self) -> pl.Schema:
        """Columns of a row."""
        return SCHEMA

    @property
    def agent(self) -> bool:
        """Whether the model plans and draws."""
        return "draws" in capabilities_of(self.model.cls)

    @property
    def roles(self) -> Mapping[str, Entry]:
        """The model, and who plays the user."""
        return {"model": self.model} | ({"simulator": self.simulator} if self.simulator is not None else {})

    @property
    def reading_roles(self) -> Mapping[str, Entry]:
        """The judging models."""
        if self.options.judge == "evidence":
            return {}
        return {f"judge_{i}": entry for i, entry in enumerate(self.judges)}

    def items(self) -> Sequence[Item]:
        """One item a dialogue."""
        return [Item(d.id, d, self.source.files(d)) for d in self.source.dialogues()]

    def fingerprint(self) -> str:
        """What the replies depend on."""
        held_so = (self.options.history, self.options.skipped, self.options.pictures, self.options.max_new_tokens)
        user = SIMULATOR if self.simulator is None else (USER, self.simulator.identity())
        return fingerprint_of(self.model.identity(), self.source.identity(), held_so, self.options.seed, user)

    def reading(self) -> str:
        """What the verdicts depend on beyond the replies."""
        judges = [entry.identity() for entry in self.judges] if self.options.judge != "evidence" else []
        return fingerprint_of(judge_identity(self.options), judges, self.options.canaries)

    def open(self, players: Mapping[str, Any]) -> Stages:
        """See :class:`medground.benchmarks.base.Task`."""
        return Stages(self, players)

    def measurer(self) -> Rules:
        """The evidence judge."""
        return Rules(self)

    def open_reading(self, players: Mapping[str, Any]) -> Asking:
        """The judging models."""
        return Asking(self, players)


def judge_identity(options: Options) -> str:
    """Name of the judge with the version of its rules and prompt."""
    if options.judge == "evidence":
        return Evidence().fingerprint()
    return (
        Llm(seed=options.seed) if options.judge == "llm" else Hybrid(options.audit, seed=options.seed)
    ).fingerprint()
