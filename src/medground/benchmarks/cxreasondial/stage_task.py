"""CXReasonBench as a protocol of the benchmark: one model, one diagnostic question a case and task."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from medground.benchmarks.base import Entry, Item, Measured, TaskDefaults
from medground.benchmarks.cxreasondial.contract import Dialogue
from medground.benchmarks.cxreasondial.scores import Share
from medground.benchmarks.cxreasondial.specs import STAGES
from medground.benchmarks.cxreasondial.stages import (
    PATHS,
    Path,
    StageScores,
    Walk,
    guided_next,
    macro,
    printed_score,
    score,
    seed_of,
    walk,
)
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
VERSION = "stages/2"
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
    """A case with one of its requests.

    Attributes:
        other: another case with a request of the same task, for whoever was guided through this one.
    """

    dialogue: Dialogue
    request: Request
    other: Asked | None = None


@dataclass(frozen=True)
class Pictures:
    """What a model may be shown: the case, the case with its points drawn, and the other case."""

    own: Radiograph | None = None
    drawn: Radiograph | None = None
    other: Radiograph | None = None


class Stages:
    """An opened task: the model is walked through the stages."""

    def __init__(self, task: StageTask, players: Mapping[str, Any]) -> None:
        self._task = task
        self._players = Players(players, {"model": ("reply",)}, "the benchmark cxreasondial")

    def load(self, item: Item) -> Pictures:
        """Decode the pictures, where the model is shown any."""
        asked: Asked = item.payload
        if not self._task.options.pictures:
            return Pictures()
        own = self._task.source.picture(asked.dialogue)
        other = None if asked.other is None else self._task.source.picture(asked.other.dialogue)
        return Pictures(own, with_points(own, asked.request, asked.dialogue), other)

    def converse(self, item: Item, loaded: Pictures) -> Conversation[Mapping[str, Any]]:
        """Walk the direct path, the guided one where it leads there, and another case after a guided path."""
        asked: Asked = item.payload
        paths: list[dict[str, Any]] = []
        direct, _ = yield from self._walk(asked, "direct", loaded, paths)
        if direct is not None and guided_next(direct):
            guided, said = yield from self._walk(asked, "guided", loaded, paths)
            if guided is not None and guided.completed and asked.other is not None:
                yield from self._walk(asked.other, "again", Pictures(loaded.other), paths, said)
        return {"paths": paths}

    def _walk(
        self,
        asked: Asked,
        path: Path,
        pictures: Pictures,
        paths: list[dict[str, Any]],
        before: Sequence[Message] = (),
    ) -> Generator[Sequence[Ask], Sequence[Answer], tuple[Walk | None, list[Message]]]:
        options = GenerationOptions(self._task.options.max_new_tokens, seed=self._task.options.seed)
        going, stages = walk(asked.request, path, seed_of(asked.dialogue.id, self._task.options.seed)), 0
        said = [Message(message.role, message.text) for message in before]
        shown = pictures.own
        prompt = next(going)
        while True:
            said.append(Message("user", prompt))
            if path == "guided" and stages == 1:
                shown = pictures.drawn
            conversation = _showing(said, shown, len(before))
            (answer,) = yield [
                Ask("model", "reply", {"conversation": conversation, "options": options}, {"path": path})
            ]
            stages += 1
            if answer.outcome != "ok":
                paths.append({"path": path, "stages": stages, "failed": answer.outcome})
                return None, said
            text = Reply.of(answer.values).text
            said.append(Message("assistant", text))
            try:
                prompt = going.send(text)
            except StopIteration as stop:
                paths.append({"path": path, "stages": stages, "failed": ""})
                return stop.value, said

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
            about = asked.other if note["path"] == "again" and asked.other is not None else asked
            done = None if note["failed"] else self._repeat(about, note["path"], own)
            rows.append(_row(asked, note["path"], done, note["failed"]))
        return Measured(rows)

    def _repeat(self, asked: Asked, path: Path, replies: Sequence[str]) -> Walk | None:
        going = walk(asked.request, path, seed_of(asked.dialogue.id, self._seed))
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


def _showing(said: Sequence[Message], picture: Radiograph | None, at: int) -> tuple[Message, ...]:
    """The conversation with one picture, at the first message of this path."""
    if picture is None:
        return tuple(said)
    return tuple(Message(m.role, m.text, (picture,)) if i == at else m for i, m in enumerate(said))


def with_points(picture: Radiograph, request: Request, dialogue: Dialogue) -> Radiograph:
    """Draw the points that a task is measured from, as crosses with a dark rim; a new picture."""
    pixels = picture.pixels.copy()
    height, width = pixels.shape
    across, down = width / (dialogue.image.width or width), height / (dialogue.image.height or height)
    arm = max(2, round(0.012 * max(pixels.shape)))
    points = [(round(point.x * across), round(point.y * down)) for point in request.evidence.landmarks]
    for reach, tone in ((1, 0.0), (0, 1.0)):
        for x, y in points:
            for dx, dy in ((arm, 0), (0, arm)):
                rows = slice(max(y - dy - reach, 0), max(y + dy + reach + 1, 0))
                pixels[rows, max(x - dx - reach, 0) : max(x + dx + reach + 1, 0)] = tone
    return replace(picture, pixels=pixels, colour=None, steps=(*picture.steps, "points drawn"))


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
        """One item a case and task whose label is known, with the next case of that task beside it."""
        by_task: dict[str, dict[str, Asked]] = {}
        for dialogue in self.source.dialogues():
            for turn in dialogue.turns:
                for request in turn.requests:
                    if request.evidence.conclusion.polarity is not None:
                        by_task.setdefault(request.task, {}).setdefault(dialogue.id, Asked(dialogue, request))
        return [item for cases in by_task.values() for item in self._of_task(list(cases.values()))]

    def _of_task(self, cases: Sequence[Asked]) -> list[Item]:
        out = []
        for asked, other in zip(cases, [*cases[1:], *cases[:1]], strict=True):
            beside = None if other is asked else other
            files = self.source.files(asked.dialogue) + (() if beside is None else self.source.files(beside.dialogue))
            key = f"{asked.dialogue.id} {asked.request.task}"
            out.append(Item(key, replace(asked, other=beside), tuple(dict.fromkeys(files))))
        return out

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
        for path in PATHS:
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
        ("printed", macro([printed_score(s.completion.ones, s.completion.used) for s in scores]), walks),
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
