"""The training loop: pure of datasets, seeded, one line of progress every few seconds."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from medground.models.networks.reference.network import ReferenceNet
from medground.models.networks.reference.text import padded
from medground.models.networks.reference.vocabulary import ANATOMIES, FINDINGS, SIDED, wording
from medground.training.reference import augment, losses
from medground.training.reference.examples import Examples


@dataclass(frozen=True)
class Recipe:
    """Every choice of a training.

    Attributes:
        steps: batches in all.
        batch: pictures a batch.
        rate: peak learning rate.
        warm_up: steps until the peak.
        floor: last rate as a share of the peak.
        decay: weight decay of matrices.
        average: of the weights that are kept, a step.
        real_share: share of real pictures at the first and at the last step, where there are real ones.
        anatomy_weight: of an anatomy's map beside a finding's.
        seed: of weights, order and augmentation.
    """

    steps: int = 2200
    batch: int = 32
    rate: float = 1.2e-3
    warm_up: int = 100
    floor: float = 0.02
    decay: float = 0.05
    average: float = 0.995
    real_share: tuple[float, float] = (0.6, 0.8)
    anatomy_weight: float = 0.3
    seed: int = 0


@dataclass
class Progress:
    """What is reported while training: running means of the losses."""

    step: int
    steps: int
    presence: float
    maps: float
    seconds: float


Report = Callable[[Progress], None]


@dataclass
class Average:
    """A running average of all floating-point weights and statistics."""

    network: nn.Module
    rate: float
    steps: int = 0
    copy: nn.Module = field(init=False)

    def __post_init__(self) -> None:
        self.copy = copy.deepcopy(self.network).eval()

    @torch.no_grad()
    def update(self) -> None:
        """Take in the network's present weights; early on the average follows fast."""
        self.steps += 1
        keep = min(self.rate, (1 + self.steps) / (10 + self.steps))
        for mine, theirs in zip(self.copy.state_dict().values(), self.network.state_dict().values(), strict=True):
            if mine.is_floating_point():
                mine.lerp_(theirs, 1 - keep)
            else:
                mine.copy_(theirs)


def _optimiser(network: nn.Module, recipe: Recipe) -> torch.optim.AdamW:
    matrices = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98))


def _rate(step: int, recipe: Recipe) -> float:
    """Return the share of the peak rate at a step: a warm-up, then a cosine."""
    if step < recipe.warm_up:
        return (step + 1) / recipe.warm_up
    done = (step - recipe.warm_up) / max(1, recipe.steps - recipe.warm_up)
    return recipe.floor + (1 - recipe.floor) * 0.5 * (1 + math.cos(math.pi * done))


class _Deck:
    """Indices in a random order without end; every index once before any comes again."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size, self.rng, self.left = size, rng, np.zeros(0, np.int64)

    def draw(self, count: int) -> NDArray[np.int64]:
        while len(self.left) < count:
            self.left = np.concatenate([self.left, self.rng.permutation(self.size)])
        taken, self.left = self.left[:count], self.left[count:]
        return taken


def _join(parts: list[augment.Batch]) -> augment.Batch:
    shifts = np.cumsum([0, *(len(part.images) for part in parts)])
    pairs = [part.pairs + torch.tensor([int(shift), 0]) for part, shift in zip(parts, shifts, strict=False)]
    return augment.Batch(
        torch.cat([part.images for part in parts]),
        torch.cat([part.labels for part in parts]),
        torch.cat([part.maps for part in parts]),
        torch.cat(pairs),
    )


def train(phantoms: Examples, real: Examples | None, recipe: Recipe, report: Report | None = None) -> ReferenceNet:
    """Train from scratch and return the averaged network, in evaluation mode.

    Args:
        phantoms: drawn pictures with masks of findings and anatomies.
        real: real pictures with labels and boxes of findings, or None.
        recipe: every choice.
        report: called about once every 20 steps.
    """
    torch.manual_seed(recipe.seed)
    rng = np.random.default_rng(recipe.seed)
    network = ReferenceNet().to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it
    network.train()
    average, optimiser = Average(network, recipe.average), _optimiser(network, recipe)
    decks = [(phantoms, _Deck(len(phantoms), rng))] + ([(real, _Deck(len(real), rng))] if real else [])
    weights = torch.tensor([1.0] * len(FINDINGS) + [recipe.anatomy_weight] * len(ANATOMIES))
    means, began = np.zeros(2), time.monotonic()
    for step in range(recipe.steps):
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate * _rate(step, recipe)
        first, last = recipe.real_share
        share = first + (last - first) * step / recipe.steps if real else 0.0
        counts = [recipe.batch - round(share * recipe.batch), round(share * recipe.batch)][: len(decks)]
        parts = [augment.batch(e, deck.draw(n), SIDED, rng) for (e, deck), n in zip(decks, counts, strict=True) if n]
        taken = _step(network, optimiser, _join(parts), padded(wording(rng)), weights)
        average.update()
        means += (np.array(taken) - means) * max(0.02, 1 / (step + 1))
        if report and (step % 20 == 19 or step == recipe.steps - 1):
            report(Progress(step + 1, recipe.steps, float(means[0]), float(means[1]), time.monotonic() - began))
    assert isinstance(average.copy, ReferenceNet)
    return average.copy.eval()


def _step(
    network: ReferenceNet, optimiser: torch.optim.AdamW, batch: augment.Batch, prompts: list[list[int]], weights: Tensor
) -> tuple[float, float]:
    vectors = network.embed(torch.tensor(prompts)).expand(len(batch.images), -1, -1)
    presence, logits = network(batch.images.contiguous(memory_format=torch.channels_last), vectors)
    seen = losses.presence_loss(presence, batch.labels)
    maps = losses.map_loss(logits, batch, weights)
    optimiser.zero_grad(set_to_none=True)
    (seen + maps).backward()  # type: ignore[no-untyped-call]  # torch's stubs lack it
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimiser.step()
    return float(seen.detach()), float(maps.detach())
