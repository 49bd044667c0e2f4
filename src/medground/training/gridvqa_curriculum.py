"""What the pair is trained on, step after step, as tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.models.networks.gridvqa import tokens
from medground.worlds.gridvqa.board import Draws
from medground.worlds.gridvqa.drawing import EMPTY, class_of
from medground.worlds.gridvqa.generate import Variant
from medground.worlds.gridvqa.spurious import spurious_scene
from medground.worlds.gridvqa.strict import strict_scene
from medground.worlds.gridvqa.world import Bucket, Scene, buckets

if TYPE_CHECKING:
    from torch import Tensor

Mixture = Sequence[tuple[Bucket, float]]
"""Buckets with cumulative weights."""


class Batch(NamedTuple):
    """Scenes as tensors of int64.

    Attributes:
        classes: ``(N, cells)`` class of every cell, ``drawing.EMPTY`` for none.
        roles: ``(N, cells)`` positions in ``network.ROLES``.
        codes: ``(N, words, 3)`` as ``tokens.batch`` gives them.
        forms: ``(N,)`` positions in ``network.FORMS``.
        answers: ``(N,)`` positions in ``network.ANSWERS``.
    """

    classes: Tensor
    roles: Tensor
    codes: Tensor
    forms: Tensor
    answers: Tensor


def batch(made: Sequence[Scene]) -> Batch:
    """Return scenes on the network's grid as tensors."""
    import torch

    from medground.models.networks.gridvqa.network import FORMS, GRID, MOST

    classes = np.full((len(made), GRID * GRID), EMPTY, np.int64)
    roles = np.zeros((len(made), GRID * GRID), np.int64)
    answers = np.zeros(len(made), np.int64)
    for i, scene in enumerate(made):
        anchors, first = scene.question.anchors, scene.question.clauses[0].target
        for thing in scene.things:
            cell = thing.y * GRID + thing.x
            classes[i, cell] = class_of(thing.colour, thing.shape)
            if thing.role == "anchor":
                roles[i, cell] = 3 + next(
                    k for k, kind in enumerate(anchors) if kind.matches(thing.colour, thing.shape)
                )
            elif thing.role == "target":
                roles[i, cell] = 1 if first.matches(thing.colour, thing.shape) else 2
        reply = scene.answer
        answers[i] = min(reply, MOST) if isinstance(reply, int) else MOST + 1 + (reply == "no")
    forms = np.array([FORMS.index(scene.question.form) for scene in made], np.int64)
    codes = tokens.batch([scene.question.text for scene in made])
    return Batch(*map(torch.from_numpy, (classes, roles, codes, forms, answers)))


def mixture(progress: float) -> Mixture:
    """Return what is drawn at this share of the training: depth 1, then 2 as well, then mostly 3."""
    share = {1: 1.0, 2: 0.0, 3: 0.0} if progress < 0.1 else {1: 0.4, 2: 0.6, 3: 0.0}
    if progress >= 0.25:
        share = {1: 0.13, 2: 0.22, 3: 0.65}
    chosen = [bucket for bucket in buckets() if share[bucket.depth]]
    weight = {b: 2.0 if b.type == "CMP" else 1.0 for b in chosen}
    total = {d: sum(weight[b] for b in chosen if b.depth == d) for d in share}
    parts = accumulate(share[b.depth] * weight[b] / total[b.depth] for b in chosen)
    return list(zip(chosen, parts, strict=True))


def draw(variant: Variant, mix: Mixture, n: int, seed: str, grid: int = 5) -> list[Scene]:
    """Draw n scenes of a mixture."""
    draws = Draws(seed)
    make = strict_scene if variant == "pure" else spurious_scene
    made = []
    for _ in range(n):
        coin = draws.random() * mix[-1][1]
        bucket = next((b for b, upto in mix if coin < upto), mix[-1][0])
        made.append(make(draws, bucket, grid, ""))
    return made


def answer_weights(variant: Variant, seed: int, n: int = 6000) -> NDArray[np.float32]:
    """Return one weight an answer: against its frequency within its form, at most tenfold, mean 1 a form."""
    from medground.models.networks.gridvqa.network import ANSWERS, MOST

    seen = Counter(batch(draw(variant, mixture(1.0), n, f"weights/{seed}/{variant}")).answers.tolist())
    weights = np.ones(len(ANSWERS))
    for part in (range(MOST + 1), range(MOST + 1, len(ANSWERS))):
        given = [a for a in part if seen[a]]
        total = sum(seen[a] for a in given)
        raw = {a: min(10.0, total / len(given) / seen[a]) for a in given}
        mean = sum(raw[a] * seen[a] for a in given) / total
        weights[list(part)] = [raw.get(a, 10.0) / mean for a in part]
    return weights.astype(np.float32)
