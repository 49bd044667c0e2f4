"""Trains the small chat model and its shortcut twin on phantoms: the command ``medground train chat``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message
from medground.models.chat.small_chat import SmallChat
from medground.models.networks.chat import weights
from medground.models.networks.chat.network import ChatNet
from medground.models.networks.reference import checkpoint as reference
from medground.training.chat.card import markdown
from medground.training.chat.claim_trials import sentences
from medground.training.chat.figures import Asker, measure
from medground.training.chat.highlighting import highlighting
from medground.training.chat.learner import ChatLearner, Recipe
from medground.training.chat.scenes import draw_scenes
from medground.training.chat.second import SecondLearner, SecondRecipe, draw_lessons
from medground.training.chat.trials import quartets, unseen
from medground.training.loop import Schedule, run
from medground.worlds.phantom.build import VERSION

SAY: Final[Callable[[str], None]] = partial(print, flush=True)
"""Prints a line at once, also into a file."""

FIRST_STAGE: Final = "small_chat_first.safetensors"
"""Name of the weights between the two stages."""

TEST_SEED: Final = 20_261_115
"""Seed of the phantoms that are measured; the training has another."""

SCHEDULE: Final = Schedule(steps=2600)
SECOND_SCHEDULE: Final = Schedule(steps=400, rate=1e-3, warm_up=25, average=0.98)
TWIN_SCHEDULE: Final = Schedule(steps=900, warm_up=90)
"""The schedules of the weights that ship."""


def train_chat(
    out: Path,
    *,
    twin: bool = False,
    first: Path | None = None,
    seed: int = 0,
    recipe: Recipe | None = None,
    schedule: Schedule | None = None,
    second: SecondRecipe | None = None,
    second_schedule: Schedule | None = None,
    tests: int = 300,
    workers: int = 1,
    say: Callable[[str], None] = SAY,
) -> Path:
    """Train the small chat model, measure it on phantoms that it has not seen, and write weights and card.

    Two stages: questions about regions, then sentences of captions and pasted pictures beside them. A training that was
    stopped goes on from the checkpoint of its stage, and ends with the weights of one that was not.

    Args:
        out: folder for weights, card, curve and checkpoint; those of the first stage lie in ``first`` inside it.
        twin: train the shortcut twin, whose answers ignore the region; it has the first stage alone.
        first: weights of a first stage; they are taken instead of training it.
        seed: of weights, order, questions and brightness.
        recipe: every choice of the first stage beside the schedule.
        schedule: its steps and rates; its own seed counts where it is given.
        second: every choice of the second stage beside the schedule.
        second_schedule: its steps and rates.
        tests: unseen phantoms to measure on.
        workers: processes that draw.
        say: takes one line of progress.

    Returns:
        The weight file.
    """
    torch.set_num_threads(1)
    recipe = replace(recipe or Recipe(), shortcut=twin)
    schedule = schedule or replace(TWIN_SCHEDULE if twin else SCHEDULE, seed=seed)
    if twin:
        network, facts = _first(out, recipe, schedule, workers, say)
        return finish(network, out, facts, tests=tests, say=say)
    if first is None:
        first = out / "first" / FIRST_STAGE
        if not first.is_file():
            network, facts = _first(first.parent, recipe, schedule, workers, say)
            weights.save(network, facts, first)
    second_schedule = second_schedule or replace(SECOND_SCHEDULE, seed=seed)
    network, facts = _second(first, out, second or SecondRecipe(), second_schedule, workers, say)
    return finish(network, out, facts, tests=tests, say=say)


def _first(
    out: Path, recipe: Recipe, schedule: Schedule, workers: int, say: Callable[[str], None]
) -> tuple[ChatNet, dict[str, Any]]:
    """Return a network that knows questions about regions, and what it was made of."""
    say(f"drawing {recipe.pictures:,} phantoms")
    learner = ChatLearner(draw_scenes(recipe.pictures, recipe.phantom_seed, workers), recipe, schedule.seed)
    start = reference.load()
    identity = {"recipe": asdict(recipe), "drawing": VERSION, "starts_from": start.sha256}
    run(learner, schedule, out, identity=identity, say=say)
    return learner.chat, identity | {"schedule": asdict(schedule), "seen_patients": start.card["seen_patients"]}


def _second(
    first: Path, out: Path, recipe: SecondRecipe, schedule: Schedule, workers: int, say: Callable[[str], None]
) -> tuple[ChatNet, dict[str, Any]]:
    """Return a network that knows captions too, and what it was made of."""
    start = weights.load(first)
    say(f"drawing {recipe.pictures:,} phantoms, and {recipe.pastes:,} with a region pasted over")
    learner = SecondLearner(draw_lessons(recipe, workers), recipe, start.network, schedule.seed)
    identity = {"recipe": asdict(recipe), "drawing": VERSION, "starts_from": start.sha256}
    run(learner, schedule, out, identity=identity, say=say, every=25)
    kept = {name: start.card[name] for name in ("recipe", "drawing", "starts_from", "schedule", "seen_patients")}
    return learner.chat, kept | {"second": identity | {"schedule": asdict(schedule)}}


def finish(network: ChatNet, out: Path, facts: dict[str, Any], *, tests: int, say: Callable[[str], None] = SAY) -> Path:
    """Write weights and card, the figures measured with the stored weights.

    Args:
        network: as trained.
        out: folder.
        facts: recipes, schedules, drawing, the weights that it started from, and the patients that these have seen.
        tests: unseen phantoms to measure on.
        say: takes one line of progress.
    """
    twin = bool(facts["recipe"]["shortcut"])
    path = out / (weights.TWIN if twin else weights.SHIPPED).name
    card: dict[str, Any] = {
        **facts,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "words": network.size,
        "torch": torch.__version__.partition("+")[0],
        "tests": {"count": tests, "seed": TEST_SEED},
    }
    weights.save(network, card, path)
    say("measuring what the stored weights reach on unseen phantoms")
    cases = unseen(tests, TEST_SEED)
    model = SmallChat(checkpoint=path, device="cpu")
    several = quartets(max(1, tests // 3), TEST_SEED)
    card["figures"] = measure(model.backbone.network, cases, quartets=several, reply=partial(answers, model))
    card["figures"] |= sentences(Asker(model.backbone.network), tests, TEST_SEED)
    card["highlighting"] = highlighting(model.backbone, cases[:100])
    weights.save(network, card, path)
    (out / f"{path.stem}.md").write_text(markdown(card), encoding="utf-8")
    for name, figure in [*card["figures"].items(), *card["highlighting"].items()]:
        say(f"{name}: {figure['value']}" + (f" ± {e}" if (e := figure.get("standard_error")) is not None else ""))
    return path


def answers(model: SmallChat, asked: Sequence[tuple[NDArray[np.uint8], str]]) -> list[str]:
    """Return a model's replies to (picture, question) pairs."""
    conversations = [
        (Message("user", text, (Radiograph(pixels.astype(np.float32) / np.float32(255)),)),) for pixels, text in asked
    ]
    return [reply.text for reply in model.reply(conversations, GenerationOptions(max_new_tokens=32))]
