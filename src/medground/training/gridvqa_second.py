"""Trains the pair of the second edition: one network of modules, two sets of right answers."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medground.training.gridvqa_coalitions import Batch, View, batch, draw, pictures, shown
from medground.worlds.gridvqa.board import Draws
from medground.worlds.gridvqa.drawing import EMPTY
from medground.worlds.gridvqa.generate import Variant, fillable, scenes
from medground.worlds.gridvqa.world import buckets

if TYPE_CHECKING:
    from torch import Tensor

    from medground.models.networks.gridvqa.modules import ModuleNet, Output

Report = Callable[[str], None]
EVERY = 100
"""Steps between two lines of report."""
SHARES = (0.0, 0.25, 0.5, 0.75)
"""Shares of objects and words that are taken away for the tables."""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what is learnt.

    Attributes:
        steps: optimiser steps.
        scenes: scenes a step, each seen four times.
        rate: highest learning rate of AdamW, after ``warm`` steps; then a cosine down to a fiftieth.
        warm: steps of the rise.
        grounding: weight of the grounded cells beside the answer.
        seed: of weights and scenes.
    """

    steps: int = 1_000
    scenes: int = 24
    rate: float = 4e-3
    warm: int = 100
    grounding: float = 4.0
    seed: int = 0


def train(
    variant: Variant, out: str | Path, recipe: Recipe = Recipe(), *, report: Report = print, scenes_each: int = 200
) -> dict[str, Any]:
    """Train one network of the pair and write its weights and its tables.

    Args:
        variant: ``pure`` learns the executor's answers on scenes of D_pure, ``spurious`` the counter's on D_spur.
        out: the ``.safetensors`` file; the tables go beside it as ``.json``.
        recipe: by default that of the shipped weights.
        report: is given one line every few hundred steps.
        scenes_each: fresh scenes a bucket, a share of removals and a data set for the tables.

    Returns:
        The content of the JSON file: recipe, seconds, agreement by data set, share and bucket.
    """
    import torch
    from safetensors.torch import save_file

    torch.set_num_threads(1)  # sums over several threads differ in their last digits from one training to the next
    started = time.monotonic()
    net = fit(variant, recipe, report)
    card: dict[str, Any] = {
        "edition": "second",
        "variant": variant,
        "recipe": asdict(recipe),
        "seconds": round(time.monotonic() - started),
        "parameters": sum(p.numel() for p in net.parameters()),
        "scenes_each": scenes_each,
        "agreement": {data: agreement(net, variant, data, scenes_each, seed=900_001) for data in ("pure", "spurious")},
    }
    file = Path(out)
    file.parent.mkdir(parents=True, exist_ok=True)
    save_file(net.state_dict(), file)
    file.with_suffix(".json").write_text(json.dumps(card, indent=1) + "\n")
    for data, shares in card["agreement"].items():
        parts = ", ".join(f"{float(share):.0%} {sum(by.values()) / len(by):.4f}" for share, by in shares.items())
        report(f"{variant} on {data}: agrees with {parts} of objects and words taken away")
    return card


def fit(variant: Variant, recipe: Recipe, report: Report = print) -> ModuleNet:
    """Train one network and return it in evaluation mode; threads are those of torch."""
    import torch

    from medground.models.networks.gridvqa.modules import ModuleNet

    torch.manual_seed(recipe.seed)
    net, table = ModuleNet(), pictures()
    optimiser = torch.optim.AdamW(net.parameters(), lr=recipe.rate, weight_decay=1e-5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, recipe))
    started, right, seen = time.monotonic(), 0.0, 0
    for step in range(recipe.steps):
        views = draw(variant, recipe.scenes, f"second/{recipe.seed}/{variant}/{step}")
        data = batch(views, relations=variant == "pure")
        output = answer(net, table, data)
        loss = _loss(output, data, recipe.grounding)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        right += float(torch.eq(output.answers.detach().argmax(1), data.answers).float().sum())
        seen += len(views)
        if (step + 1) % EVERY == 0 or step + 1 == recipe.steps:
            report(
                f"{variant} step {step + 1}/{recipe.steps}, loss {loss.item():.4f}, "
                f"right {right / seen:.4f}, {time.monotonic() - started:.0f} s"
            )
            right, seen = 0.0, 0
    return net.eval()


def answer(net: ModuleNet, table: Tensor, data: Batch) -> Output:
    """Run the network on classes of cells: its stem sees each of the 19 pictures once, not every cell."""
    cells = net.stem(table * 2 - 1).flatten(1)[data.classes]
    output: Output = net(cells, net.word(data.codes[..., 0]), data.codes)
    return output


def agreement(net: ModuleNet, variant: Variant, data: Variant, n: int, seed: int) -> dict[str, dict[str, float]]:
    """Return by share taken away and bucket how often the network answers as the executor or the counter does.

    Args:
        net: the network.
        variant: ``pure`` is held against the executor, ``spurious`` against the counter.
        data: whose scenes.
        n: fresh scenes a bucket; objects and words are each left out with the same chance.
        seed: of scenes and coalitions.
    """
    import torch

    table, shares = pictures(), {}
    for share in SHARES:
        draws, by_bucket = Draws(f"coalitions/{seed}/{share}"), {}
        for bucket in fillable(buckets(), 5)[0]:
            views = [
                thinned(draws, scene.things, scene.question.text, share)
                for scene in scenes(data, [bucket], n, seed=seed)
            ]
            asked = batch(views, relations=variant == "pure")
            with torch.inference_mode():
                right = torch.eq(answer(net, table, asked).answers.argmax(1), asked.answers)
            by_bucket[bucket.key] = round(float(right.double().mean()), 6)
        shares[str(share)] = by_bucket
    return shares


def thinned(draws: Draws, things: Any, text: str, share: float, grid: int = 5) -> View:
    """Leave out every object and every word with one chance."""
    whole = View(things, tuple(text.split()), grid)
    hidden = [thing.y * grid + thing.x for thing in things if draws.random() < share]
    return shown(whole, hidden, [i for i in range(len(whole.words)) if draws.random() >= share], EMPTY)


def _loss(output: Output, data: Batch, grounding: float) -> Tensor:
    from torch.nn import functional

    fits = functional.binary_cross_entropy_with_logits(output.fits, data.fits, reduction="none").mean(-1)
    fits = (fits * data.known).sum() / data.known.sum()
    # Shares that a product has driven to 0 or 1 keep a gradient.
    kept = output.inside * (1 - 2e-4) + 1e-4
    inside = functional.binary_cross_entropy(kept, data.inside, reduction="none")
    asked = data.known[:, :: data.known.shape[1] // inside.shape[1]]
    inside = (inside.mean(-1) * asked).sum() / asked.sum()
    form = functional.cross_entropy(output.form, data.forms)
    return functional.nll_loss(output.answers, data.answers) + form + grounding * (fits + inside)


def _rate(step: int, recipe: Recipe) -> float:
    if step < recipe.warm:
        return (step + 1) / recipe.warm
    progress = (step - recipe.warm) / max(1, recipe.steps - recipe.warm)
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress))
