"""Trains the pair: one network, two data sets, two phases.

Phase 1 (grounding) learns the role of every cell. Phase 2 adds the answer, weighted against the frequency of answers
within a form, so that the prior over counts does not pay. Scenes are drawn fresh at every step; none is seen twice.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from medground.models.networks.gridvqa import tokens
from medground.training.gridvqa_curriculum import Batch, answer_weights, batch, draw, mixture
from medground.worlds.gridvqa.drawing import sprites
from medground.worlds.gridvqa.generate import Variant, scenes
from medground.worlds.gridvqa.world import buckets

if TYPE_CHECKING:
    from torch import Tensor

    from medground.models.networks.gridvqa.network import GridNet, Output

Report = Callable[[str], None]
EVERY = 250
"""Steps between two lines of report."""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what is learnt.

    Attributes:
        steps: optimiser steps.
        batch: scenes a step.
        rate: highest learning rate of AdamW, after ``warm`` steps; then a cosine down to a fiftieth.
        warm: steps of the rise.
        grounding: share of the steps in phase 1.
        early: weight of the answer in phase 1.
        late: weight of the answer in phase 2.
        seed: of weights and scenes.
    """

    steps: int = 9_000
    batch: int = 64
    rate: float = 1.5e-3
    warm: int = 200
    grounding: float = 0.3
    early: float = 0.05
    late: float = 0.5
    seed: int = 0


RECIPES: dict[Variant, Recipe] = {"pure": Recipe(), "spurious": Recipe(steps=4_000)}
"""The recipes of the shipped weights."""


def train(
    variant: Variant, out: str | Path, recipe: Recipe | None = None, *, report: Report = print, scenes_each: int = 300
) -> dict[str, Any]:
    """Train one network of the pair and write its weights and its accuracy tables.

    Args:
        variant: ``pure`` learns from strict D_pure, ``spurious`` from D_spur.
        out: the ``.safetensors`` file; the tables go beside it as ``.json``.
        recipe: None: the recipe of the shipped weights.
        report: is given one line every few hundred steps.
        scenes_each: fresh scenes a bucket for the tables.

    Returns:
        The content of the JSON file: recipe, seconds, accuracy by data set and bucket.
    """
    from safetensors.torch import save_file

    chosen = recipe or RECIPES[variant]
    started = time.monotonic()
    net = fit(variant, chosen, report)
    card: dict[str, Any] = {
        "variant": variant,
        "recipe": asdict(chosen),
        "seconds": round(time.monotonic() - started),
        "parameters": sum(p.numel() for p in net.parameters()),
        "scenes_each": scenes_each,
        "accuracy": {v: accuracy(net, v, scenes_each, seed=900_001) for v in ("pure", "spurious")},
    }
    file = Path(out)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(net.state_dict(), file)
    file.with_suffix(".json").write_text(json.dumps(card, indent=1) + "\n")
    report(f"{variant}: least right in a bucket of its own data {min(card['accuracy'][variant].values()):.3f}")
    return card


def fit(variant: Variant, recipe: Recipe, report: Report = print) -> GridNet:
    """Train one network and return it in evaluation mode; threads are those of torch."""
    import torch

    from medground.models.networks.gridvqa.network import GridNet

    torch.manual_seed(recipe.seed)
    net, table = GridNet(), pictures()
    weights = torch.from_numpy(answer_weights(variant, recipe.seed))
    optimiser = torch.optim.AdamW(net.parameters(), lr=recipe.rate, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, recipe))
    started, right = time.monotonic(), 0.0
    for step in range(recipe.steps):
        progress = step / recipe.steps
        data = batch(draw(variant, mixture(progress), recipe.batch, f"train/{recipe.seed}/{variant}/{step}"))
        output = answer(net, table, data)
        loss = _loss(output, data, weights, recipe.late if progress >= recipe.grounding else recipe.early)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        right += float(torch.eq(output.answers.detach().argmax(1), data.answers).float().mean())
        if (step + 1) % EVERY == 0 or step + 1 == recipe.steps:
            since = step % EVERY + 1
            report(
                f"{variant} step {step + 1}/{recipe.steps}, loss {loss.item():.4f}, "
                f"right {right / since:.4f}, {time.monotonic() - started:.0f} s"
            )
            right = 0.0
    return net.eval()


def pictures() -> Tensor:
    """Return the drawing of every class as the network sees it, ``(17, 3, 16, 16)`` in [0, 1]."""
    import torch

    return torch.from_numpy((sprites(16) / np.float32(255)).transpose(0, 3, 1, 2).copy())


def answer(net: GridNet, table: Tensor, data: Batch) -> Output:
    """Run the network on classes of cells: its stem sees each of the 17 pictures once, not every cell."""
    import torch

    cells = net.stem(table * 2 - 1).flatten(1)[data.classes]
    output: Output = net(cells, net.read(data.codes), torch.ne(data.codes[..., 0], tokens.PAD))
    return output


def accuracy(net: GridNet, variant: Variant, n: int, seed: int) -> dict[str, float]:
    """Return the share of right answers a bucket, on n fresh scenes each."""
    import torch

    table, shares = pictures(), {}
    for bucket in buckets():
        data = batch(scenes(variant, [bucket], n, seed=seed, edition="first"))
        with torch.inference_mode():
            right = torch.eq(answer(net, table, data).answers.argmax(1), data.answers)
        shares[bucket.key] = round(float(right.double().mean()), 6)
    return shares


def _loss(output: Output, data: Batch, weights: Tensor, share: float) -> Tensor:
    import torch
    from torch.nn import functional

    heavy = torch.ones(output.roles.shape[-1])
    heavy[0] = 0.5
    grounding = functional.cross_entropy(output.roles.flatten(0, 1), data.roles.flatten(), weight=heavy)
    form = functional.cross_entropy(output.form, data.forms)
    return 4 * grounding + 0.1 * form + share * functional.nll_loss(output.answers, data.answers, weight=weights)


def _rate(step: int, recipe: Recipe) -> float:
    if step < recipe.warm:
        return (step + 1) / recipe.warm
    progress = (step - recipe.warm) / max(1, recipe.steps - recipe.warm)
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress))
