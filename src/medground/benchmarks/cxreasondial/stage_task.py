"""CXReasonBench as a protocol of the benchmark: one model, one diagnostic question a case and task."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from medground.benchmarks.base import Entry, Item, Measured, TaskDefaults
from medground.benchmarks.cxreasondial.contract import Dialogue
from medground.benchmarks.cxreasondial.scores import Share
from medground.benchmarks.cxreasondial.specs import STAGES
from medground.benchmarks.cxreasondial.stages import Path, StageScores, Walk, guided_next, macro, score, walk
from medground.benchmarks.cxreasondial.tasks import Options, Source
from medground.benchmarks.players import Players
from medground.benchmarks.requests import Answer, Ask, Conversation, Transcript
from medground.benchmarks.results import Cell, ModelFacts, Summary
from medground.identity import fingerprint_of
from medground.imaging.reading import Radiograph
from medground.judges.base import Request
from medground.models.base import GenerationOptions, Message, Reply
from medground.tools import RULES

#: Raised whenever a question, an option or the way that a choice is read changes.
VERSION = "stages/1"
_COLUMNS: dict[str, Any] = {
    "case": pl.String,
    "task": pl.String,
    "kind": pl.String,
    "path": pl.String,
    "passed": pl.List(pl.String),
    "codes": pl.String,
    "completed": pl.Boolean,
    "aligned": pl.Boolean,
    "stated": pl.Float64,
    "failed": pl.String,
}
SCHEMA = pl.Schema(_COLUMNS)


@dataclass(frozen=True)
class Asked:
    """A case with one of its requests."""

    dialogue: Dialogue
    request: Request


class Stages:
    """An opened task: the model is walked through the stages."""

    def __init__(self, task: StageTask, players: Mapping[str, Any]) -> None:
        self._task = task
        self._players = Players(players, {"model": ("reply",)}, "the benchmark cxreasondial")

    def load(self, item: Item) -> Radiograph | None:
        """Decode the picture, where the model is shown one."""
        return self._task.source.picture(item.payload.dialogue) if self._task.options.pictures else None

    def converse(self, item: Item, loaded: Radiograph | None) -> Conversation[Mapping[str, Any]]:
        """Walk the direct path, and the guided one where it leads there."""
        asked: Asked = item.payload
        paths: list[dict[str, Any]] = []
        direct = yield from self._walk(asked.request, "direct", loaded, paths)
        if direct is not None and guided_next(direct):
            yield from self._walk(asked.request, "guided", loaded, paths)
        return {"paths": paths}

    def _walk(
        self, request: Request, path: Path, picture: Radiograph | None, paths: list[dict[str, Any]]
    ) -> Generator[Sequence[Ask], Sequence[Answer], Walk | None]:
        options = GenerationOptions(self._task.options.max_new_tokens, seed=self._task.options.seed)
        going, said, stages = walk(request, path, self._task.options.seed), list[Message](), 0
        prompt = next(going)
        while True:
            said.append(Message("user", prompt, (picture,) if picture is not None and not said else ()))
            (answer,) = yield [Ask("model", "reply", {"conversation": tuple(said), "options": options}, {"path": path})]
            stages += 1
            if answer.outcome != "ok":
                paths.append({"path": path, "stages": stages, "failed": answer.outcome})
                return None
            text = Reply.of(answer.values).text
            said.append(Message("assistant", text))
            try:
                prompt = going.send(text)
            except StopIteration as stop:
                paths.append({"path": path, "stages": stages, "failed": ""})
                done: Walk = stop.value
                return done

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Ask the model about one batch."""
        return self._players.answer(role, capability, arguments)


class Walked:
    """Makes rows of what was said: pure."""

    def __init__(self, task: StageTask) -> None:
        self._seed = task.options.seed

    def measure(self, item: Item, transcript: Transcript) -> Measured:
        """Walk again with the kept replies."""
        asked: Asked = item.payload
        replies = [Reply.of(a.values).text if a.values else "" for a in transcript.answers("model", "reply")]
        rows, at = [], 0
        for note in transcript.notes["paths"]:
            own = replies[at : at + note["stages"]]
            at += note["stages"]
            done = None if note["failed"] else self._again(asked.request, note["path"], own)
            rows.append(_row(asked, note["path"], done, note["failed"]))
        return Measured(rows)

    def _again(self, request: Request, path: Path, replies: Sequence[str]) -> Walk | None:
        going = walk(request, path, self._seed)
        next(going)
        for reply in replies:
            try:
                going.send(reply)
            except StopIteration as stop:
                done: Walk = stop.value
                return done
        return None

    def failed(self, item: Item, reason: str) -> Measured:
        """A row that says why nothing was said."""
        return Measured([_row(item.payload, "direct", None, reason)])


def _row(asked: Asked, path: str, done: Walk | None, failed: str) -> dict[str, Any]:
    task = asked.request.task
    return {
        "case": asked.dialogue.id,
        "task": task,
        "kind": RULES[task].kind,
        "path": path,
        "passed": list(done.passed) if done else [],
        "codes": json.dumps(done.codes) if done else "[]",
        "completed": done.completed if done else None,
        "aligned": done.aligned if done else None,
        "stated": done.stated if done else None,
        "failed": failed,
    }


@dataclass(frozen=True)
class StageTask(TaskDefaults):
    """One model on the first diagnostic request of every case and task.

    Attributes:
        model: who answers.
        source: the dialogues whose evidence is asked about.
        options: pictures, tokens and seed.
        batch_size: conversations a call of the model.
    """

    model: Entry
    source: Source
    options: Options
    batch_size: int = 8
    expensive: bool = True

    @property
    def path(self) -> tuple[str, ...]:
        """(model, dialogues)."""
        return (self.model.label, f"{self.source.label}, cxreasonbench")

    @property
    def schema(self) -> pl.Schema:
        """Columns of a row."""
        return SCHEMA

    @property
    def roles(self) -> Mapping[str, Entry]:
        """The model."""
        return {"model": self.model}

    def items(self) -> Sequence[Item]:
        """One item a case and task whose label is known."""
        out: dict[str, Item] = {}
        for dialogue in self.source.dialogues():
            for turn in dialogue.turns:
                for request in turn.requests:
                    key = f"{dialogue.id} {request.task}"
                    if request.evidence.conclusion.polarity is not None and key not in out:
                        out[key] = Item(key, Asked(dialogue, request), self.source.files(dialogue))
        return list(out.values())

    def fingerprint(self) -> str:
        """What the replies depend on: the way also decides which stage is asked next."""
        held_so = (self.options.pictures, self.options.max_new_tokens, self.options.seed)
        return fingerprint_of(self.model.identity(), self.source.identity(), held_so, VERSION)

    def reading(self) -> str:
        """The way that choices are read."""
        return VERSION

    def open(self, players: Mapping[str, Any]) -> Stages:
        """See :class:`medground.benchmarks.base.Task`."""
        return Stages(self, players)

    def measurer(self) -> Walked:
        """Walks again."""
        return Walked(self)


def summarise_stages(
    rows: Mapping[tuple[str, ...], pl.DataFrame], models: Sequence[ModelFacts], notes: Sequence[str]
) -> Summary:
    """Scores by path: macro over tasks, perception and measurement apart, and every task by itself."""
    cells: list[Cell] = []
    lines = []
    for (model, dataset), frame in rows.items():
        for path in ("direct", "guided"):
            own = frame.filter((pl.col("path") == path) & (pl.col("failed") == ""))
            by_task = {task: score(_walks(own.filter(pl.col("task") == task))) for task in sorted(set(own["task"]))}
            lost = frame.filter((pl.col("path") == path) & (pl.col("failed") != "")).height
            for kind in ("", "measurement", "perception"):
                chosen = [s for task, s in by_task.items() if not kind or RULES[task].kind == kind]
                for name, value, n in _macro(chosen):
                    group = path if not kind else f"{path}, {kind}"
                    cells.append(_cell(model, dataset, name, "path", group, value, n, lost))
            specs = {spec.name: spec for spec in STAGES}
            line = {
                specs[name].title: None if value is None else round(value * specs[name].scale, 2)
                for name, value, _ in _macro(list(by_task.values()))
            }
            lines.append({"Model": model, "Path": path, "Walks": own.height, **line})
    table = pl.DataFrame(lines, infer_schema_length=None)
    return Summary(
        cells, (), {"stages": table}, {"dialogues": {}, "canaries": {}}, "cxreasondial", "cxreasonbench", tuple(models),
        STAGES, notes=tuple(notes),
    )  # fmt: skip


def _walks(frame: pl.DataFrame) -> list[Walk]:
    """Walks as far as scores need them."""
    out = []
    for row in frame.iter_rows(named=True):
        codes = tuple((str(stage), int(code)) for stage, code in json.loads(row["codes"]))
        chosen = None if row["aligned"] is None else ((0.0, 0.0) if row["aligned"] else (1.0, 1.0))
        out.append(Walk(row["task"], row["path"], tuple(row["passed"]), codes, 0.0, chosen))
    return out


def _macro(scores: Sequence[StageScores]) -> list[tuple[str, float | None, int]]:
    def share(parts: Sequence[Share]) -> tuple[float | None, int]:
        return macro([part.value for part in parts]), sum(part.used for part in parts)

    walks = sum(s.completion.used for s in scores)
    return [
        ("completion", *share([s.completion for s in scores])),
        ("depth", macro([s.depth for s in scores]), walks),
        ("consistency", *share([s.consistency for s in scores])),
        ("alignment", *share([s.alignment for s in scores])),
    ]


def _cell(
    model: str, dataset: str, metric: str, scope: str, group: str, value: float | None, n: int, failed: int
) -> Cell:
    return Cell(
        benchmark="cxreasondial",
        model=model,
        metric=metric,
        reading="cxreasonbench",
        dataset=dataset,
        scope=scope,
        group=group,
        value=value,
        n=n,
        failed=failed,
        reason=None if value is not None else "no walk to which it applies",
    )
