"""Tunes a chat model of transformers on conversations in LLaVA's layout: the command ``medground train instruct``.

Low-rank adapters in the language model learn (Hu et al., ICLR 2022), everything else stays; only the words of answers
count. What is written is a whole folder, adapters merged, that ``{name: hf_chat, checkpoint: OUT/model}`` reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from medground.errors import DataError, ModelError
from medground.imaging.colour import read_picture
from medground.models.base import Message
from medground.models.chat.local import prompts
from medground.models.chat.local.loading import Loaded, load, stop_ids
from medground.models.networks.loba.folder import peft_of_another_year
from medground.paths import resolve_inside
from medground.training.loop import Schedule, run

SAY: Final[Callable[[str], None]] = partial(print, flush=True)
MODEL: Final = "model"
_PLACE: Final = "<image>"


@dataclass(frozen=True)
class Lesson:
    """One question about a picture (or none), and its answer."""

    image: Path | None
    question: str
    answer: str


@dataclass(frozen=True)
class InstructRecipe:
    """Every choice beside the schedule.

    Attributes:
        batch: conversations a step.
        rank: of the adapters.
        alpha: scale of the adapters.
        layers: pattern of the names of the layers that get adapters; by default the attention of the language model.
    """

    batch: int = 4
    rank: int = 8
    alpha: int = 16
    layers: str = r"^(?!.*(?:vision|visual)).*\.(?:q_proj|k_proj|v_proj|o_proj)$"


def lessons(table: Path, images: Path) -> list[Lesson]:
    """Read a JSON list of ``{"image", "conversations": [{"from": "human", "value"}, {"from": "gpt", "value"}]}``.

    Args:
        table: the file.
        images: folder that the pictures lie in.

    Raises:
        DataError: the file is no such list, or a picture lies outside the folder.
    """
    try:
        rows = json.loads(table.read_text(encoding="utf-8"))
        held = [_lesson(row, images) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            "conversations cannot be read",
            where=table,
            expected="a JSON list in the layout of LLaVA's training files",
            got=f"{type(error).__name__}: {error}",
        ) from error
    if not held:
        raise DataError("there is nothing to learn from", where=table, expected="at least one conversation")
    return held


def _lesson(row: Mapping[str, Any], images: Path) -> Lesson:
    asked, told = row["conversations"]
    if (asked["from"], told["from"]) != ("human", "gpt"):
        raise ValueError(f"turns of {asked['from']} and {told['from']}, not of human and gpt")
    image = None if row.get("image") is None else resolve_inside(images, str(row["image"]))
    return Lesson(image, str(asked["value"]).replace(_PLACE, "").strip(), str(told["value"]))


class InstructLearner:
    """Trains the adapters.

    Args:
        model: loaded.
        taught: what is learnt.
        recipe: every choice.
        seed: of adapters and order.

    Raises:
        ModelError: peft is not installed, or no layer fits the recipe's pattern.
    """

    def __init__(self, model: Loaded, taught: Sequence[Lesson], recipe: InstructRecipe, seed: int = 0) -> None:
        try:
            from peft import LoraConfig, get_peft_model
        except ImportError as error:
            raise ModelError("this training needs peft", fix="pip install 'medground[train]'", got=error) from error
        torch.manual_seed(seed)
        config = LoraConfig(r=recipe.rank, lora_alpha=recipe.alpha, target_modules=recipe.layers)
        try:
            with peft_of_another_year():
                self.adapted: Any = get_peft_model(model.network.float(), config)
        except ValueError as error:
            raise ModelError(
                "no layer of this model has such a name", where="layers", expected=recipe.layers, got=str(error)[:200]
            ) from error
        self.network: nn.Module = self.adapted
        self.network.train()
        self._model, self._taught, self._recipe, self._seed = model, list(taught), recipe, seed
        self._end = stop_ids(model)[:1]

    def pace(self, name: str) -> float:
        """Return 1 for the adapters, 0 for the rest."""
        return 1.0 if "lora_" in name else 0.0

    def loss(self, step: int) -> tuple[Tensor, Mapping[str, float]]:
        """Return the mean cross-entropy of the answers' words of a step, each conversation read by itself."""
        rng = np.random.default_rng([self._seed, step])
        chosen = rng.integers(0, len(self._taught), self._recipe.batch)
        loss = torch.stack([self._one(self._taught[int(i)]) for i in chosen]).mean()
        return loss, {"words": loss.item()}

    def _one(self, lesson: Lesson) -> Tensor:
        shown = () if lesson.image is None else (read_picture(lesson.image),)
        turns = prompts.turns([Message("user", lesson.question, shown)], sees=self._model.sees)
        padding = {"return_tensors": "pt"}
        more: dict[str, Any] = {"processor_kwargs": padding} if self._model.sees else padding
        inputs = self._model.processor.apply_chat_template(
            [turns], add_generation_prompt=True, tokenize=True, return_dict=True, **more
        )
        told = [*self._model.tokenizer(lesson.answer, add_special_tokens=False)["input_ids"], *self._end]
        answer = torch.tensor([told])
        start = inputs["input_ids"].shape[1]
        given = {name: value for name, value in inputs.items() if isinstance(value, Tensor)}
        for name in ("attention_mask", "token_type_ids"):
            if name in given:
                fill = torch.full_like(answer, int(name == "attention_mask"), dtype=given[name].dtype)
                given[name] = torch.cat([given[name], fill], 1)
        given["input_ids"] = torch.cat([given["input_ids"], answer], 1)
        device = next(self.network.parameters()).device
        out = self.adapted(**{name: value.to(device) for name, value in given.items()})
        return functional.cross_entropy(out.logits[0, start - 1 : -1].float(), answer[0].to(device))


def train_instruct(
    checkpoint: Path,
    conversations: Path,
    images: Path,
    out: Path,
    *,
    schedule: Schedule | None = None,
    recipe: InstructRecipe | None = None,
    device: str = "cpu",
    say: Callable[[str], None] = SAY,
) -> Path:
    """Tune, going on where a stopped training ended, and write the folder ``out/model``; return it.

    Args:
        checkpoint: folder of a chat model of transformers, as ``hf_chat`` takes it.
        conversations: see :func:`lessons`.
        images: folder of the pictures.
        out: for the model, the curve and the checkpoint.
        schedule: steps and rates.
        recipe: every choice beside.
        device: where it trains.
        say: takes one line of progress.

    Raises:
        CheckpointError: the folder holds no chat model.
        DataError: see :func:`lessons`.
        ModelError: see :class:`InstructLearner`; a model without sight is shown pictures.
    """
    schedule = schedule or Schedule(steps=1000, rate=1e-4, warm_up=50, decay=0.0)
    recipe = recipe or InstructRecipe()
    taught = lessons(conversations, images)
    model = load(checkpoint, dtype="float32", device=torch.device(device))
    learner = InstructLearner(model, taught, recipe, schedule.seed)
    say(f"{len(taught):,} conversations")
    identity = {"recipe": asdict(recipe), "model": model.sha256, "conversations": str(conversations)}
    run(learner, schedule, out, identity=identity, say=say, every=min(100, schedule.steps))
    with peft_of_another_year():
        learner.adapted.merge_and_unload().save_pretrained(out / MODEL)
    model.processor.save_pretrained(out / MODEL)
    return out / MODEL
