"""The second stage: sentences of captions, and pictures with a region pasted over, on top of what was learnt.

It goes on from the first stage's weights with some fifty more words. The questions of the first stage are asked all the
way, or they would be forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from medground.models.networks.chat import tokens
from medground.models.networks.chat.network import ChatNet
from medground.training.chat import pastes
from medground.training.chat.claims import Claims, held
from medground.training.chat.learner import ChatLearner, Material, Recipe, dealt
from medground.training.chat.packing import blocks
from medground.training.chat.pastes import Pasted, joined, one_paste
from medground.training.chat.sampling import Turn
from medground.training.chat.scenes import SIZE, Scenes, findings_of, join, one
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.facts import facts
from medground.worlds.phantom.scene import make_scene

_DEVICES: Final = ("tube", "line", "pacemaker")
_VIEWS: Final = ("PA", "AP")

KIN: Final = {
    "air": "pneumothorax",
    "collapse": "atelectasis",
    "consolidation": "pneumonia",
    "fluid": "effusion",
    "infiltrate": "infiltration",
    "middle": "mid",
    "true": "does",
    "visible": "seen",
    "zone": "lung",
}
"""New words that begin as another word; the others begin at random."""


@dataclass(frozen=True)
class SecondRecipe:
    """Every choice of the second stage beside its schedule.

    Attributes:
        pictures: drawn to learn from, with devices and both views.
        pastes: pictures with a region pasted over.
        phantom_seed: of the pictures; pasted ones have the next.
        batch: pictures a step.
        pasted: of these with a region pasted over.
        before: tokens of the first stage's questions a picture.
        claims: tokens of sentences a picture.
        grounded: as in the first stage.
        follow: as in the first stage.
        masks: as in the first stage.
        concepts: as in the first stage.
        tower: as in the first stage.
        bfloat16: autocast; off, so that no processor takes long.
    """

    pictures: int = 2400
    pastes: int = 1000
    phantom_seed: int = 20_261_117
    batch: int = 8
    pasted: int = 2
    before: int = 84
    claims: int = 130
    grounded: float = 0.3
    follow: float = 0.15
    masks: float = 0.5
    concepts: float = 1.0
    tower: float = 0.3
    bfloat16: bool = False


@dataclass(frozen=True)
class Lessons:
    """What the second stage learns from.

    Attributes:
        scenes: pictures with their truth.
        table: ``(N, S)``: what sentences are true of each, see :func:`medground.training.chat.claims.held`.
        pasted: pictures with a region pasted over.
    """

    scenes: Scenes
    table: NDArray[np.int8]
    pasted: Pasted


def draw_lessons(recipe: SecondRecipe, workers: int = 1) -> Lessons:
    """Draw all pictures of the second stage; the same for any number of workers."""
    plain, pasted = partial(_plain, recipe.phantom_seed), partial(one_paste, recipe.phantom_seed + 1)
    if workers == 1:
        drawn, changed = [plain(case) for case in range(recipe.pictures)], [pasted(c) for c in range(recipe.pastes)]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            drawn = list(pool.map(plain, range(recipe.pictures), chunksize=50))
            changed = list(pool.map(pasted, range(recipe.pastes), chunksize=25))
    return Lessons(join([scene for scene, _ in drawn]), np.stack([row for _, row in drawn]), joined(changed))


def _plain(seed: int, case: int) -> tuple[Scenes, NDArray[np.int8]]:
    """Draw one picture: views alike often, words and leads telling nothing of them, devices in half of them."""
    rng = np.random.default_rng([seed, case, 16])
    view, devices = _VIEWS[int(rng.integers(2))], None
    if rng.random() < 0.5:
        few = rng.permutation(len(_DEVICES))[: 1 + int(rng.random() < 0.25)]
        devices = [_DEVICES[i] for i in sorted(few.tolist())] + (["lead"] if rng.random() < 0.4 else [])
    scene = make_scene(seed, case, findings_of(seed, case), view=view, devices=devices)
    return one(draw(scene, SIZE)), held(facts(scene))


def grown(first: ChatNet, words: int = tokens.SIZE) -> ChatNet:
    """Return a network with the first one's weights and rows for more words, the same every time.

    A new word begins as its kin (:data:`KIN`) or at random in the spread of the others; as an answer it begins as
    unlikely as the unknown word.
    """
    network = ChatNet(words)
    state = dict(first.state_dict())
    for name in ("llava.model.language_model.embed_tokens.weight", "llava.lm_head.weight"):
        old = state[name]
        rng = torch.Generator().manual_seed(words)
        more = torch.randn(words - len(old), old.shape[1], generator=rng) * old.std()
        if name.startswith("llava.lm_head"):
            more = old[tokens.UNKNOWN].expand_as(more)
        rows = torch.cat([old, more])
        if not name.startswith("llava.lm_head"):
            for word, kin in KIN.items():
                rows[tokens.encode(word)[0]] = old[tokens.encode(kin)[0]]
        state[name] = rows
    network.load_state_dict(state)
    return network.eval()


class SecondLearner(ChatLearner):
    """Goes on with a trained network.

    Args:
        lessons: pictures, sentences and pastes.
        recipe: every choice.
        start: the first stage's network.
        seed: of order, questions and brightness.
    """

    def __init__(self, lessons: Lessons, recipe: SecondRecipe, start: ChatNet, seed: int = 0) -> None:
        shared = Recipe(
            batch=recipe.batch - recipe.pasted,
            grounded=recipe.grounded,
            follow=recipe.follow,
            masks=recipe.masks,
            concepts=recipe.concepts,
            tower=recipe.tower,
            bfloat16=recipe.bfloat16,
        )
        super().__init__(lessons.scenes, shared, seed, grown(start))
        self.chat.llava.set_attn_implementation({"text_config": "sdpa"})  # the faster one in float32
        self._lessons, self._second = lessons, recipe
        self._claims = Claims(lessons.table)

    def _material(self, step: int, rng: np.random.Generator) -> Material:
        """Return the pictures of a step: the first stage's questions with sentences, and pasted ones."""
        recipe, scenes, pasted = self._second, self._lessons.scenes, self._lessons.pasted
        cases = dealt(step, len(scenes), recipe.batch - recipe.pasted, [self._seed, 3])
        others = dealt(step, len(pasted), recipe.pasted, [self._seed, 4])
        lists = []
        for case in cases.tolist():
            asked = cut(blocks(self._sampler.turns(case, rng), rng, recipe.follow), recipe.before)
            lists.append(asked + cut([[one] for one in self._claims.turns(case, rng)], recipe.claims))
        lists += [[[one] for one in pastes.turns(pasted, case, rng)] for case in others.tolist()]
        return Material(
            np.concatenate([scenes.images[cases], pasted.images[others]]),
            np.concatenate([scenes.masks[cases], pasted.masks[others]]),
            lists,
            recipe.before + recipe.claims,
        )


def cut(groups: Sequence[list[Turn]], budget: int) -> list[list[Turn]]:
    """Return the blocks that fit into so many tokens together, in their order."""
    kept: list[list[Turn]] = []
    for group in groups:
        size = sum(len(one.prompt) + len(one.answer) for one in group)
        if size <= budget:
            kept.append(group)
            budget -= size
    return kept
