"""What the second edition's pair is trained on: scenes and questions, whole and with parts taken away, step by step.

Every scene is shown four times: whole; as a coalition of objects and words; with words replaced by others of their
kind; with the question of another scene. The right answer is always the executor's for the reasoning model and the
counter's for the shortcut model (:mod:`medground.worlds.gridvqa.coalitions`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from medground.models.networks.gridvqa import slots
from medground.worlds.gridvqa.board import Draws
from medground.worlds.gridvqa.coalitions import fitting, masks_of, meaning, reply, targets
from medground.worlds.gridvqa.drawing import EMPTY, class_of, sprites
from medground.worlds.gridvqa.generate import Variant, fillable
from medground.worlds.gridvqa.language import COLOURS, DIRECTIONS, SHAPES, Kind, bare, read
from medground.worlds.gridvqa.second import second_scene
from medground.worlds.gridvqa.spurious import spurious_scene
from medground.worlds.gridvqa.world import Bucket, Scene, Thing, buckets

if TYPE_CHECKING:
    from torch import Tensor

GREY, BLACK = EMPTY + 1, EMPTY + 2
"""Cells that an explainer has painted over, beside the white :data:`~medground.worlds.gridvqa.drawing.EMPTY` one."""
GRIDS = (5, 5, 5, 6, 8)
_SHORT = tuple(direction.split()[0] for direction in DIRECTIONS)


@dataclass(frozen=True)
class View:
    """What is shown of a scene, and with which words.

    Attributes:
        things: the objects that are left.
        words: the words that are left.
        grid: cells a side.
        hidden: cells that are painted over, by their number.
        fill: what they look like: ``EMPTY``, ``GREY`` or ``BLACK``.
    """

    things: Sequence[Thing]
    words: tuple[str, ...]
    grid: int
    hidden: Sequence[int] = ()
    fill: int = EMPTY


class Batch(NamedTuple):
    """Views as tensors.

    Attributes:
        classes: ``(N, cells)`` which picture every cell shows, see :func:`pictures`.
        codes: ``(N, words, 3)`` as ``slots.batch`` gives them.
        fits: ``(N, slots, cells)`` 1 where the object fits the slot's description.
        known: ``(N, slots)`` 1 for targets and told relations: descriptions that can be learnt.
        inside: ``(N, sides, cells)`` 1 for what is counted.
        forms: ``(N,)`` positions in ``network.FORMS``.
        answers: ``(N,)`` positions in ``network.ANSWERS``.
    """

    classes: Tensor
    codes: Tensor
    fits: Tensor
    known: Tensor
    inside: Tensor
    forms: Tensor
    answers: Tensor


def pictures() -> Tensor:
    """Return what a cell can look like, ``(19, 3, 16, 16)`` in [0, 1]: the drawings, white, grey and black."""
    import torch

    drawn = sprites(16) / np.float32(255)
    plain = [np.full_like(drawn[:1], value) for value in (0.5, 0.0)]
    return torch.from_numpy(np.concatenate([drawn, *plain]).transpose(0, 3, 1, 2).copy())


def draw(variant: Variant, n: int, seed: str) -> list[View]:
    """Draw n scenes on one grid and return four views of each."""
    draws = Draws(seed)
    grid = draws.pick(GRIDS)
    chosen = fillable(buckets(), grid)[0]
    made = [_scene(draws, variant, _bucket(draws, chosen), grid) for _ in range(n)]
    views = []
    for i, scene in enumerate(made):
        words = tuple(scene.question.text.split())
        other = tuple(made[i - 1].question.text.split())
        views += [
            View(scene.things, words, grid),
            coalition(draws, View(scene.things, words, grid)),
            coalition(draws, View(scene.things, replaced(draws, words), grid), least=0.5),
            View(scene.things, replaced(draws, other) if draws.random() < 0.5 else other, grid),
        ]
    return views


def _bucket(draws: Draws, chosen: Sequence[Bucket]) -> Bucket:
    depth = draws.pick((1, 2, 3, 3))
    return draws.pick([bucket for bucket in chosen if bucket.depth == depth])


def _scene(draws: Draws, variant: Variant, bucket: Bucket, grid: int) -> Scene:
    return (second_scene if variant == "pure" else spurious_scene)(draws, bucket, grid, "")


def coalition(draws: Draws, whole: View, least: float = 0.0) -> View:
    """Take away a share of cells and words, each up to all of them and nothing with chance ``least``."""
    cells = draws.random() if draws.random() >= least else 0.0
    words = draws.random() if draws.random() >= least else 0.0
    hidden = [cell for cell in range(whole.grid**2) if draws.random() < cells]
    return shown(whole, hidden, [i for i in range(len(whole.words)) if draws.random() >= words], draws.pick(FILLS))


FILLS = (EMPTY, EMPTY, GREY, BLACK)


def shown(whole: View, hidden: Sequence[int], spoken: Iterable[int], fill: int) -> View:
    """Return a view without the ``hidden`` cells and with the ``spoken`` words alone."""
    gone = set(hidden)
    left = [thing for thing in whole.things if thing.y * whole.grid + thing.x not in gone]
    return View(left, tuple(whole.words[i] for i in spoken), whole.grid, hidden, fill)


def replaced(draws: Draws, words: Sequence[str]) -> tuple[str, ...]:
    """Return words of which some are replaced by others of their kind: a colour, a shape, the start of a direction."""
    share = draws.random()
    return tuple(_swap(draws, word) if draws.random() < share else word for word in words)


def _swap(draws: Draws, word: str) -> str:
    plain = bare(word)
    for kinds in (COLOURS, SHAPES, _SHORT):
        if plain in kinds:
            return word.replace(plain, draws.pick(kinds))
    return word


def batch(views: Sequence[View], *, relations: bool) -> Batch:
    """Return views on one grid as tensors, answered by the executor, or without ``relations`` by the counter."""
    import torch

    from medground.models.networks.gridvqa.network import ANSWERS, FORMS, MOST

    n, grid = len(views), views[0].grid
    classes = np.full((n, grid * grid), EMPTY, np.int64)
    fits = np.zeros((n, slots.SLOTS, grid * grid), np.float32)
    known = np.zeros((n, slots.SLOTS), np.float32)
    inside = np.zeros((n, slots.SIDES, grid * grid), np.float32)
    answers, forms = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for i, view in enumerate(views):
        classes[i, list(view.hidden)] = view.fill
        for thing in view.things:
            classes[i, thing.y * grid + thing.x] = class_of(thing.colour, thing.shape)
        masks, question = masks_of(view.things, grid), meaning(view.words, relations)
        for side, clause in enumerate(question.clauses):
            inside[i, side] = _bits(targets(clause, masks, grid), grid * grid)
        for side, clause in enumerate(read(view.words).clauses):
            for k, kind in enumerate((clause.target, *(relation.anchor for relation in clause.relations))):
                if k <= slots.RELATIONS and (k == 0 or kind != Kind()):
                    slot = side * (1 + slots.RELATIONS) + k
                    known[i, slot] = 1
                    fits[i, slot] = _bits(fitting(kind, masks), grid * grid)
        right, forms[i] = reply(question, masks, grid), FORMS.index(question.form)
        answers[i] = min(right, MOST) if isinstance(right, int) else ANSWERS.index(right)
    codes = slots.batch([" ".join(view.words) for view in views])
    return Batch(*map(torch.from_numpy, (classes, codes, fits, known, inside, forms, answers)))


def _bits(mask: int, cells: int) -> NDArray[np.float32]:
    packed = np.frombuffer(mask.to_bytes((cells + 7) // 8, "little"), np.uint8)
    return np.unpackbits(packed, bitorder="little")[:cells].astype(np.float32)
