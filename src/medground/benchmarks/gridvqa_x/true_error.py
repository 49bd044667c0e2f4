"""How far an explainer is from the true explanation, and why.

::

    from medground.benchmarks.gridvqa_x.true_error import true_error
    for row in true_error(MultiShap(), PureNet(), scenes("pure", [bucket], 8)):
        print(row.scene_id, row.image.total, row.image.noise, row.image.off_manifold, row.image.method)

Maps are compared as shares of their absolute mass, since methods differ in their unit. The exact model is
``gridvqa_rule``, or ``gridvqa_counter`` for a model that takes the shortcut: on every coalition both give the answers
that the truth is made of.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.benchmarks.gridvqa_x.rows import by_cell
from medground.explainers.base import Asker, Attribution, Example, Pool
from medground.metrics.error_split import ErrorSplit, error_split
from medground.models.answerers.gridvqa_counter import WordCounter
from medground.models.answerers.gridvqa_rule import RuleExecutor
from medground.models.base import QuestionAnswerer
from medground.worlds.gridvqa.build import picture_of
from medground.worlds.gridvqa.shapley import Players, TrueValues, true_values
from medground.worlds.gridvqa.world import Scene

Truth = Literal["values", "interactions"]


@dataclass(frozen=True)
class TrueError:
    """The split error of one scene's explanations.

    Attributes:
        scene_id: of the scene.
        image: of the map of cells; None where there is none, for the method, or because the truth is nothing at all.
        text: likewise of the map of words.
    """

    scene_id: str
    image: ErrorSplit | None
    text: ErrorSplit | None


def true_error(
    explainer: Any,
    model: QuestionAnswerer,
    scenes: Sequence[Scene],
    *,
    relations: bool = True,
    truth: Truth = "values",
    players: Players = "phrases",
    repeats: int = 4,
    cell: int = 16,
) -> list[TrueError]:
    """Explain every scene several times, under the model and under the exact one, and split the error.

    Args:
        explainer: a local explainer; its ``seed`` is raised by one for every repeat.
        model: whose answers are explained.
        scenes: on one grid; the pool of the explainer.
        relations: True holds the model against the executor, False against the counter.
        truth: Shapley ``values``, or the sums of absolute ``interactions`` of a cell with all words and of a word with
            all cells, which is what MultiSHAP and DIME are after.
        players: of the truth, see :func:`~medground.worlds.gridvqa.shapley.true_values`; ``objects`` leaves words out.
        repeats: seeds.
        cell: pixels a side of a cell.
    """
    grid = scenes[0].grid
    exact = RuleExecutor(grid) if relations else WordCounter(grid)
    examples = [
        Example(s.scene_id, (picture_of(s, cell) / np.float32(255)).astype(np.float32), s.question.text) for s in scenes
    ]
    pools = [Pool(examples, Asker(asked), grid) for asked in (model, exact)]
    methods = [_reseeded(explainer, r) for r in range(repeats)]
    rows = []
    for i, scene in enumerate(scenes):
        given, ideal = ([method.explain(pool, i) for method in methods] for pool in pools)
        text = scene.question.text
        known = true_values(scene.things, text, grid, relations=relations, players=players)
        image, words = _true_maps(known, truth, len(text.split()))
        rows.append(
            TrueError(
                scene.scene_id,
                _split([_cells(a, grid) for a in given], [_cells(a, grid) for a in ideal], image.ravel()),
                _split([a.text for a in given], [a.text for a in ideal], words) if players != "objects" else None,
            )
        )
    return rows


def _true_maps(known: TrueValues, truth: Truth, words: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if truth == "values":
        return known.image, known.text(words)
    spoken = np.zeros(words)
    for group, value in zip(known.words, np.abs(known.across).sum(0), strict=True):
        spoken[list(group)] += value / len(group)
    return known.synergy, spoken


def _split(given: Sequence[ArrayLike | None], ideal: Sequence[ArrayLike | None], truth: ArrayLike) -> ErrorSplit | None:
    maps = [_shares(values) for values in (*given, *ideal, truth)]
    if any(values is None for values in maps):
        return None
    return error_split(np.array(maps[: len(given)]), np.array(maps[len(given) : -1]), np.array(maps[-1]))


def _shares(values: ArrayLike | None) -> NDArray[np.float64] | None:
    """Return absolute values as shares of their sum; None for no map, or one of zeros."""
    size = np.abs(np.asarray(values, np.float64)).ravel() if values is not None else np.zeros(0)
    return size / size.sum() if size.sum() > 0 else None


def _cells(attribution: Attribution, grid: int) -> NDArray[np.float64] | None:
    return None if attribution.image is None else by_cell(np.abs(attribution.image), grid)


def _reseeded(explainer: Any, by: int) -> Any:
    other = copy.copy(explainer)
    if isinstance(getattr(explainer, "seed", None), int):
        object.__setattr__(other, "seed", explainer.seed + by)
    return other
