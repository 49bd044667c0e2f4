"""The work of a run: one model on one bucket, all of whose scenes make a pool."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.base import Item, Measured
from medground.benchmarks.gridvqa_x.rows import MODEL, SCHEMA, blank, local_row
from medground.errors import ModelError
from medground.explainers.base import Asker, Attribution, Example, Pool, Scores
from medground.identity import fingerprint_of
from medground.models.base import QuestionAnswerer
from medground.worlds.gridvqa.build import picture_of
from medground.worlds.gridvqa.records import neutral
from medground.worlds.gridvqa.sources import Source
from medground.worlds.gridvqa.world import Bucket, Scene

log = logging.getLogger("medground")


@dataclass(frozen=True)
class Method:
    """An explainer of the run: its label and the object; local ones explain, global ones score."""

    label: str
    explainer: Any

    @property
    def is_local(self) -> bool:
        """Whether it explains single answers."""
        return hasattr(self.explainer, "explain")

    def fingerprint(self) -> str:
        """A hash of class and parameters."""
        cls = type(self.explainer)
        return fingerprint_of(
            cls.__module__, cls.__qualname__, sorted((k, repr(v)) for k, v in vars(self.explainer).items())
        )


@dataclass(frozen=True)
class Loaded:
    """The scenes of a pool and their pictures."""

    scenes: Sequence[Scene]
    examples: Sequence[Example]


@dataclass(frozen=True)
class Explained:
    """What model and explainers say about a pool."""

    answers: Sequence[str]
    own: NDArray[np.float64]
    local: Mapping[str, Sequence[Attribution]]
    scores: Mapping[str, Scores]
    calls: int


class PoolStages:
    """An opened task: draw, ask and explain, measure."""

    def __init__(self, model: QuestionAnswerer, methods: Sequence[Method], task: PoolTask) -> None:
        self._model, self._methods, self._task = model, methods, task

    def load(self, item: Item) -> Loaded:
        """Make the scenes of a bucket and draw them."""
        scenes = self._task.source.scenes(item.payload)
        cell = self._task.cell
        examples = [
            Example(s.scene_id, (picture_of(s, cell) / np.float32(255)).astype(np.float32), s.question.text)
            for s in scenes
        ]
        return Loaded(scenes, examples)

    def infer(self, batch: Sequence[Loaded]) -> list[Explained]:
        """Ask and explain, pool after pool."""
        return [self._pool(loaded) for loaded in batch]

    def _pool(self, loaded: Loaded) -> Explained:
        asker = Asker(self._model)
        pool = Pool(loaded.examples, asker, loaded.scenes[0].grid)
        if self._methods:
            _ = pool.logits
        local, scores = {}, {}
        for method in self._methods:
            if method.is_local:
                local[method.label] = [_explain(method, pool, i) for i in range(len(pool))]
            else:
                scores[method.label] = method.explainer.score(pool)
            log.info("%s: %s, %d model calls so far", "/".join(self._task.path), method.label, asker.calls)
        return Explained(list(self._model.answers), pool.own, local, scores, asker.calls)

    def measure(self, item: Item, loaded: Loaded, inferred: Explained) -> Measured:  # noqa: ARG002  # the contract
        """Return one row a scene and method."""
        rows = []
        said = [inferred.answers[int(row.argmax())] for row in inferred.own]
        for i, scene in enumerate(loaded.scenes):
            right = said[i] == spelt(scene, inferred.answers)
            heard = {"said": said[i], "right": right, "target": said[i]}
            shown = json.dumps(neutral(scene)) if i < self._task.pictures else None
            rows.append(blank(scene, MODEL, "model") | heard | {"scene": shown})
            rows += [local_row(scene, label, found[i], heard) for label, found in inferred.local.items()]
            for label, scores in inferred.scores.items():
                rows.append(blank(scene, label, "global") | heard | _score(scores, i, scene, inferred.answers))
        return Measured(rows, _pixel_maps(inferred, loaded, self._task.pictures))

    def failed(self, item: Item, reason: str) -> Measured:
        """Return a row that says why a bucket has none."""
        bucket: Bucket = item.payload
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


class PoolTask:
    """One model on one bucket of one data set.

    Args:
        labels: model and data set.
        model: builds the model.
        source: where the scenes come from.
        bucket: which of its buckets.
        methods: the explainers.
        cell: pixels a side of a cell.
        pictures: scenes a bucket whose objects and pixel maps are kept for the report.
    """

    def __init__(
        self,
        labels: tuple[str, str],
        model: Callable[[], QuestionAnswerer],
        source: Source,
        bucket: Bucket,
        methods: Sequence[Method],
        *,
        cell: int,
        pictures: int,
    ) -> None:
        self._labels, self._model, self._bucket, self._methods = labels, model, bucket, methods
        self.source, self.cell, self.pictures = source, cell, pictures

    @property
    def path(self) -> tuple[str, ...]:
        """(model, data set, bucket)."""
        return (*self._labels, self._bucket.key)

    @property
    def schema(self) -> pl.Schema:
        """Columns of a row."""
        return SCHEMA

    @property
    def batch_size(self) -> int:
        """One pool at a time."""
        return 1

    def items(self) -> Sequence[Item]:
        """The pool: its scenes need each other, as any text is asked about any image."""
        return [Item("/".join(self.path[1:]), self._bucket)]

    def fingerprint(self) -> str:
        """A hash over model, scenes, explainers and the size of the pictures."""
        model = self._model()
        return fingerprint_of(
            model.name,
            model.fingerprint(),
            self.source.fingerprint(),
            self._bucket.key,
            [(m.label, m.fingerprint()) for m in self._methods],
            self.cell,
            self.pictures,
        )

    def open(self) -> PoolStages:
        """Build the model and return the stages."""
        return PoolStages(self._model(), self._methods, self)


def spelt(scene: Scene, answers: Sequence[str]) -> str:
    """Return the right answer as a model's list of answers spells it: a count beyond it is ``17+``."""
    text = str(scene.answer)
    if text in answers or not isinstance(scene.answer, int):
        return text
    return next((a for a in answers if a.endswith("+") and scene.answer >= int(a[:-1])), text)


def _explain(method: Method, pool: Pool, index: int) -> Attribution:
    try:
        found: Attribution = method.explainer.explain(pool, index)
    except ModelError as error:
        # What a method needs and a model lacks (gradients, say) is a result, not a failure of the run.
        return Attribution(None, None, pool.predicted(index), reason=error.what)
    return found


def _score(scores: Scores, i: int, scene: Scene, answers: Sequence[str]) -> dict[str, Any]:
    figures = {name: value for name, value in scores.extras.items() if isinstance(value, float)}
    if "projected_answer" in scores.extras:
        figures["projected_right"] = float(answers[int(scores.extras["projected_answer"][i])] == spelt(scene, answers))
    return {
        "score": float(scores.each[i]) if np.isfinite(scores.each[i]) else None,
        "pool_score": float(scores.overall) if np.isfinite(scores.overall) else None,
        "extra": json.dumps(figures, sort_keys=True) if figures else None,
    }


def _pixel_maps(inferred: Explained, loaded: Loaded, n: int) -> dict[str, NDArray[np.generic]]:
    """Return the maps that have one value a pixel, of the first n scenes."""
    grid = loaded.scenes[0].grid
    kept: dict[str, NDArray[np.generic]] = {}
    for label, found in inferred.local.items():
        maps = [f.image for f in found[:n] if f.image is not None and f.image.shape != (grid, grid)]
        if maps:
            kept[f"{label}_pixels"] = np.stack(maps).astype(np.float32)
    return kept
