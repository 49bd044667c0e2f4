"""One step of the small chat model's training: pictures, packed questions, losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from medground.models.networks.chat.network import ChatNet
from medground.models.networks.chat.tokens import FIRST
from medground.models.networks.reference import checkpoint as reference
from medground.models.networks.reference.vocabulary import CONCEPTS
from medground.training.chat import losses
from medground.training.chat.packing import BUDGET, Packed, blocks, pack
from medground.training.chat.sampling import Sampler, Turn
from medground.training.chat.scenes import LUNGS, Scenes


@dataclass(frozen=True)
class Recipe:
    """Every choice of a training beside its schedule.

    Attributes:
        pictures: drawn to learn from.
        phantom_seed: of those pictures.
        batch: pictures a step.
        shortcut: answers ignore the region: the twin.
        grounded: share of region questions that are answered with the place first.
        follow: share of questions that go on with a conversation.
        masks: weight of the mask loss.
        concepts: weight of the concept loss.
        tower: learning rate of the vision tower beside the rest.
        bfloat16: autocast; halves the time where the processor has avx512_bf16.
    """

    pictures: int = 5000
    phantom_seed: int = 20_261_114
    batch: int = 8
    shortcut: bool = False
    grounded: float = 0.3
    follow: float = 0.15
    masks: float = 0.5
    concepts: float = 1.0
    tower: float = 0.3
    bfloat16: bool = True


class Material(NamedTuple):
    """What one step learns from.

    Attributes:
        images: ``(N, 224, 224)`` grey values.
        masks: ``(N, 16, 28, 28)``, see :class:`Scenes`.
        lists: the blocks of questions of every picture.
        budget: tokens of questions a picture.
    """

    images: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    lists: list[list[list[Turn]]]
    budget: int = BUDGET


def dealt(step: int, count: int, batch: int, seed: Sequence[int]) -> NDArray[np.int64]:
    """Return the numbers of a step's pictures: all in a new order every pass."""
    place = np.arange(step * batch, (step + 1) * batch)
    decks = {int(d): np.random.default_rng([*seed, int(d)]).permutation(count) for d in np.unique(place // count)}
    return np.array([decks[int(at // count)][at % count] for at in place])


class ChatLearner:
    """Trains :class:`ChatNet` on phantoms; the vision tower starts from the reference model.

    Args:
        scenes: pictures with their truth.
        recipe: every choice.
        seed: of weights, order, questions and brightness.
        start: what it goes on with; None: fresh weights, and the reference model's tower.
    """

    def __init__(self, scenes: Scenes, recipe: Recipe, seed: int = 0, start: ChatNet | None = None) -> None:
        torch.manual_seed(seed)
        self.chat = start or ChatNet(FIRST)
        self.network: nn.Module = self.chat
        if start is None:
            self.chat.tower.take(reference.load().network)
        self.chat.llava.set_attn_implementation({"text_config": "eager"})  # the faster one on a CPU with these masks
        self.chat.tower.to(memory_format=torch.channels_last)
        self.network.train()
        self.chat.tower.eval()  # its batch norms keep the reference's statistics
        self._scenes, self._recipe, self._seed = scenes, recipe, seed
        self._sampler = Sampler(scenes, shortcut=recipe.shortcut, grounded=recipe.grounded)

    def pace(self, name: str) -> float:
        """Return the factor of a parameter's learning rate."""
        inherited = name.startswith("llava.model.vision_tower.") and ".concepts." not in name
        return self._recipe.tower if inherited else 1.0

    def loss(self, step: int) -> tuple[Tensor, Mapping[str, float]]:
        """Return the loss of a step; pictures come in a new order every pass."""
        rng = np.random.default_rng([self._seed, 1, step])
        given = self._material(step, rng)
        packed = pack(given.lists, given.budget)
        pixels = self._pixels(given.images, rng)
        with torch.autocast("cpu", torch.bfloat16, enabled=self._recipe.bfloat16):
            seen = self.chat.encode(pixels)
            mask = torch.zeros(packed.mask.shape).masked_fill(~packed.mask, -1e30)
            hidden = self.chat.hidden(seen.features, packed.ids, mask, packed.positions)
            rows, places = torch.nonzero(packed.labels >= 0, as_tuple=True)
            logits = self.chat.words(hidden[rows, places - 1])
            masks = self.chat.masks(hidden[packed.seg[:, 0], packed.seg[:, 1]], seen.cells[packed.seg[:, 0]])
        words = losses.word_loss(logits, packed.labels[rows, places], packed.questions)
        target = torch.from_numpy(given.masks.astype(np.float32) / 255)
        place = losses.mask_loss(masks, self._targets(target, packed))
        concepts = losses.concept_loss(seen.concepts, losses.raised(target.flatten(0, 1)).view_as(target))
        total = words + self._recipe.masks * place + self._recipe.concepts * concepts
        return total, {"words": words.item(), "masks": place.item(), "concepts": concepts.item()}

    def _material(self, step: int, rng: np.random.Generator) -> Material:
        """Return the pictures of a step with their questions."""
        cases = dealt(step, len(self._scenes), self._recipe.batch, [self._seed, 2])
        lists = [blocks(self._sampler.turns(int(case), rng), rng, self._recipe.follow) for case in cases]
        return Material(self._scenes.images[cases], self._scenes.masks[cases], lists)

    def _pixels(self, images: NDArray[np.uint8], rng: np.random.Generator) -> Tensor:
        """Return pictures with brightness and contrast changed; no flips, for sides are asked about."""
        grey = (torch.from_numpy(images).unsqueeze(1).float() / 255 - 0.5) / 0.25
        contrast = torch.from_numpy(rng.uniform(0.85, 1.15, (len(images), 1, 1, 1)).astype(np.float32))
        bright = torch.from_numpy(rng.uniform(-0.3, 0.3, (len(images), 1, 1, 1)).astype(np.float32))
        return grey * contrast + bright

    def _targets(self, target: Tensor, packed: Packed) -> Tensor:
        """Return the masks that the packed ``<SEG>`` stand for, ``(M, 28, 28)``, each with maximum 1."""
        rows, numbers = packed.seg[:, 0], packed.seg[:, 2]
        lungs = [target[:, [CONCEPTS.index(third) for third in thirds]].sum(1) for thirds in LUNGS.values()]
        whole = torch.cat([target, torch.stack(lungs, 1).clamp_max(1)], 1)
        return losses.raised(whole[rows, numbers])
