"""The work of a run: one model on one bucket. A scene is an item; the pool of all of them is one item more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from medground.benchmarks.base import Entry, Item, Measured, TaskDefaults
from medground.benchmarks.gridvqa_x.answers import attribution, kept_attribution, kept_scores, scores
from medground.benchmarks.gridvqa_x.protocol import CAUSES, Protocol
from medground.benchmarks.gridvqa_x.rows import MODEL, SCHEMA, blank, local_row
from medground.benchmarks.requests import Answer, Ask, Conversation, Transcript
from medground.errors import ModelError
from medground.explainers.base import Asker, Attribution, Example, Pool, Scores
from medground.explainers.retest import explained
from medground.identity import fingerprint_of
from medground.models.base import QuestionAnswerer, require
from medground.worlds.gridvqa.build import picture_of
from medground.worlds.gridvqa.records import neutral
from medground.worlds.gridvqa.sources import Source
from medground.worlds.gridvqa.world import Bucket, Scene

EXPLAINER = "explainer:"
POOL = "pool"


def is_local(explainer: type[Any]) -> bool:
    """Return whether an explainer explains single answers; a global one scores pools."""
    return callable(getattr(explainer, "explain", None))


class PoolStages:
    """An opened task: the scenes of a bucket, the model, and the explainers around it."""

    def __init__(self, players: Mapping[str, Any], task: PoolTask) -> None:
        self._players, self._task = players, task
        self._model: QuestionAnswerer = players["model"]

    @cached_property
    def _pool(self) -> Pool:
        """Every scene drawn, and the matrix of any text about any image, which several methods need."""
        pool = Pool(self._task.examples(), Asker(self._model, self._task.pairs), self._task.scenes[0].grid)
        if self._task.explainers:
            _ = pool.logits
        return pool

    def load(self, item: Item) -> None:
        """Nothing: scenes are drawn together, since any text may be asked about any image."""

    def converse(self, item: Item, loaded: None) -> Conversation[Mapping[str, Any]]:  # noqa: ARG002  # the contract
        """Ask the model, then have every explainer of the item's kind explain or score, in one round."""
        index: int | None = item.payload
        capability = "score" if index is None else "explain"
        methods = [e for e in self._task.explainers if is_local(e.cls) == (index is not None)]
        yield [
            Ask("model", "logits", {"index": index}),
            *(Ask(EXPLAINER + e.label, capability, {"index": index}, {"method": e.label}) for e in methods),
        ]
        return {}

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Answer for the model or an explainer; one that fails is a state of its scene."""
        if role == "model":
            own = self._pool.own
            answers = {"answers": list(self._model.answers)}
            return [Answer(answers, {"logits": own if a["index"] is None else own[a["index"]]}) for a in arguments]
        explainer = self._players[role]
        if capability == "score":
            return [kept_scores(explainer.score(self._pool)) for _ in arguments]
        return [self._explained(explainer, a["index"]) for a in arguments]

    def _explained(self, explainer: Any, index: int) -> Answer:
        try:
            return kept_attribution(explained(explainer, self._pool, index))
        except ModelError as error:
            # What a method needs and a model lacks (gradients, say) is a result, not a failure of the run.
            reason = error.what
        except Exception as error:
            reason = f"the explainer raised {type(error).__name__}"
        return kept_attribution(Attribution(None, None, self._pool.predicted(index), reason=reason))


class PoolMeasurer:
    """Makes rows of what model and explainers said."""

    def __init__(self, task: PoolTask) -> None:
        self._task = task

    def measure(self, item: Item, transcript: Transcript) -> Measured:
        """Return one row a method, for a scene or for every scene of the pool."""
        (own,) = transcript.answers("model")
        answers, logits = own.values["answers"], own.arrays["logits"]
        methods = {e.key["method"]: e.answer for e in transcript.exchanges if e.role.startswith(EXPLAINER)}
        if item.payload is not None:
            return Measured(self._scene_rows(item.payload, logits, answers, methods))
        rows = []
        for i, scene in enumerate(self._task.scenes):
            heard = _heard(scene, logits[i], answers)
            for label, answer in methods.items():
                rows.append(blank(scene, label, "global") | heard | _score(scores(answer), i, scene, answers))
        return Measured(rows)

    def _scene_rows(
        self, index: int, logits: Any, answers: Sequence[str], methods: Mapping[str, Answer]
    ) -> list[Mapping[str, Any]]:
        scene = self._task.scenes[index]
        heard = _heard(scene, logits, answers)
        shown = json.dumps(neutral(scene)) if index < self._task.pictures else None
        read = self._task.protocol
        local = [local_row(scene, label, attribution(answer), heard, read) for label, answer in methods.items()]
        return [blank(scene, MODEL, "model") | heard | {"scene": shown}, *local]

    def failed(self, item: Item, reason: str) -> Measured:
        """Return a row that says why an item has none."""
        bucket = self._task.bucket
        row = dict.fromkeys(SCHEMA.names()) | {
            "scene_id": item.item_id,
            "depth": bucket.depth,
            "type": bucket.type,
            "form": bucket.form,
            "density": bucket.density,
            "method": MODEL,
            "scope": "model",
            "reason": reason,
        }
        return Measured([row])


@dataclass(frozen=True)
class PoolTask(TaskDefaults):
    """One model on one bucket of one data set.

    Attributes:
        model: who is asked.
        data: name of the data set.
        source: where the scenes come from.
        bucket: which of its buckets.
        explainers: the methods.
        cell: pixels a side of a cell.
        pictures: scenes a bucket that the report may draw.
        pairs: of an image and a text that a model is given at once; None: as many as it likes.
        protocol: how attributions are read.
    """

    model: Entry
    data: str
    source: Source
    bucket: Bucket
    explainers: tuple[Entry, ...]
    cell: int
    pictures: int
    pairs: int | None = None
    protocol: Protocol = CAUSES

    batch_size = 1
    """A scene at a time: its coalitions fill the model's batches."""
    cohort = 1
    expensive = True
    processes = True

    @property
    def path(self) -> tuple[str, ...]:
        """(model, data set, bucket)."""
        return (self.model.label, self.data, self.bucket.key)

    @property
    def schema(self) -> pl.Schema:
        """Columns of a row."""
        return SCHEMA

    @property
    def roles(self) -> Mapping[str, Entry]:
        """The model, and an explainer a method."""
        return {"model": self.model} | {EXPLAINER + e.label: e for e in self.explainers}

    @cached_property
    def scenes(self) -> Sequence[Scene]:
        """The scenes of the bucket."""
        return self.source.scenes(self.bucket)

    def examples(self) -> list[Example]:
        """Return the scenes drawn."""
        return [
            Example(s.scene_id, (picture_of(s, self.cell) / np.float32(255)).astype(np.float32), s.question.text)
            for s in self.scenes
        ]

    def items(self) -> Sequence[Item]:
        """Every scene, then the pool of all of them for the methods that score pools."""
        items = [Item(scene.scene_id, i) for i, scene in enumerate(self.scenes)]
        return [*items, Item(POOL)] if any(not is_local(e.cls) for e in self.explainers) else items

    def fingerprint(self) -> str:
        """A hash over model, scenes, explainers and the size of the pictures."""
        methods = [(e.label, e.identity()) for e in self.explainers]
        batches = [] if self.pairs is None else [self.pairs]
        return fingerprint_of(
            self.model.identity(), self.source.fingerprint(self.bucket), self.bucket.key, methods, self.cell, *batches
        )

    def reading(self) -> str:
        """A hash over what rows add: the protocol, and scenes for the report."""
        changed = [] if self.protocol.choices == CAUSES.choices else [dict(self.protocol.choices)]
        return fingerprint_of("causes", self.pictures, *changed)

    def open(self, players: Mapping[str, Any]) -> PoolStages:
        """Check the model and return the stages."""
        require(players["model"], ["logits"], by="the benchmark gridvqa_x")
        return PoolStages(players, self)

    def measurer(self) -> PoolMeasurer:
        """Return what makes rows."""
        return PoolMeasurer(self)


def _heard(scene: Scene, logits: Any, answers: Sequence[str]) -> dict[str, Any]:
    given = answers[int(np.asarray(logits).argmax())]
    return {"said": given, "right": given == spelt(scene, answers), "target": given}


def spelt(scene: Scene, answers: Sequence[str]) -> str:
    """Return the right answer as a model's list of answers spells it: a count beyond it is ``17+``."""
    text = str(scene.answer)
    if text in answers or not isinstance(scene.answer, int):
        return text
    return next((a for a in answers if a.endswith("+") and scene.answer >= int(a[:-1])), text)


def _score(scores: Scores, i: int, scene: Scene, answers: Sequence[str]) -> dict[str, Any]:
    figures = {name: value for name, value in scores.extras.items() if isinstance(value, float)}
    if "projected_answer" in scores.extras:
        figures["projected_right"] = float(answers[int(scores.extras["projected_answer"][i])] == spelt(scene, answers))
    return {
        "score": float(scores.each[i]) if np.isfinite(scores.each[i]) else None,
        "pool_score": float(scores.overall) if np.isfinite(scores.overall) else None,
        "extra": json.dumps(figures, sort_keys=True) if figures else None,
    }
