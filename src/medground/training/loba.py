"""Teaches a LLaVA folder to locate before it answers: the command ``medground train loba`` (arXiv 2505.00744).

Low-rank adapters in the language model, the rows of its words, a projector and SAM's mask decoder learn; vision
tower and SAM's image encoder stay as they are. Losses: words, and ``2 BCE + 0.5 Dice`` of masks, as in LISA.
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
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that every torch program uses

from medground.errors import DataError, ModelError
from medground.imaging.reading import read_radiograph
from medground.imaging.rle import counts_from_pairs, mask_from_counts
from medground.models.networks.loba import folder as folders
from medground.models.networks.loba.backbone import prompt_text
from medground.models.networks.loba.segmenter import Segmenter
from medground.training.chat.losses import mask_loss
from medground.training.loop import Schedule, run

SAY: Final[Callable[[str], None]] = partial(print, flush=True)


@dataclass(frozen=True)
class Lesson:
    """One question with its answer and the mask of its region.

    Attributes:
        image: file of the picture.
        question: as asked.
        answer: as it should be given, without the place.
        region: name of the region.
        mask: ``(height, width)``, in any size of the same aspect as the picture, or None.
    """

    image: Path
    question: str
    answer: str
    region: str
    mask: NDArray[np.bool_] | None


@dataclass(frozen=True)
class LobaRecipe:
    """Every choice beside the schedule.

    Attributes:
        batch: questions a step.
        rank: of the adapters.
        alpha: scale of the adapters.
        dropout: of the adapters.
        located: share of questions with a mask that are answered with the place first.
        words: weight of the loss of words.
        cross: weight of the masks' cross-entropy.
        dice: weight of the masks' Dice loss.
    """

    batch: int = 4
    rank: int = 8
    alpha: int = 16
    dropout: float = 0.05
    located: float = 0.7
    words: float = 1.0
    cross: float = 2.0
    dice: float = 0.5


def lessons(table: Path) -> list[Lesson]:
    """Read questions, one JSON object a line: ``image``, ``question``, ``answer``, ``anatomy`` and ``mask``.

    ``mask`` is ``{"rle": [start, length, ...], "h": 64, "w": 64, "order": "row" or "column"}``, or null. Pictures are
    beside the table or below it.

    Raises:
        DataError: a line is not like that, or a picture lies outside the table's folder.
    """
    root = table.parent.resolve()
    read: list[Lesson] = []
    try:
        lines = table.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError("questions cannot be read", where=table, got=error) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            image = (root / str(row["image"])).resolve()
            question, answer, region = (str(row[key]) for key in ("question", "answer", "anatomy"))
            mask = row.get("mask")
            if mask is not None:
                size = (int(mask["w"]), int(mask["h"]))
                mask = mask_from_counts(counts_from_pairs(mask["rle"], size, mask.get("order", "row")), size)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(
                "a line holds no question",
                where=f"{table}, line {number}",
                expected="JSON with image, question, answer, anatomy, mask",
                got=f"{type(error).__name__}: {error}",
            ) from error
        if not image.is_relative_to(root):
            raise DataError("a picture lies outside the table's folder", where=f"{table}, line {number}", got=image)
        read.append(Lesson(image, question, answer, region, mask))
    if not read:
        raise DataError("there is nothing to learn from", where=table, expected="at least one question")
    return read


class LobaLearner:
    """Trains adapters and segmenter.

    Args:
        model: LLaVA with ``<SEG>`` among its words.
        processor: of its folder.
        segmenter: with SAM's weights.
        levels: mean and deviation of SAM's pictures.
        taught: what is learnt.
        recipe: every choice.
        seed: of adapters and order.

    Raises:
        ModelError: peft is not installed.
    """

    def __init__(
        self,
        model: Any,
        processor: Any,
        segmenter: Segmenter,
        levels: tuple[list[float], list[float]],
        taught: Sequence[Lesson],
        recipe: LobaRecipe,
        seed: int = 0,
    ) -> None:
        try:
            from peft import LoraConfig, get_peft_model
        except ImportError as error:
            raise ModelError("this training needs peft", fix="pip install 'medground[train]'", got=error) from error
        torch.manual_seed(seed)
        config = LoraConfig(
            r=recipe.rank,
            lora_alpha=recipe.alpha,
            lora_dropout=recipe.dropout,
            target_modules=r".*language_model.*\.(q_proj|v_proj)",
            modules_to_save=["embed_tokens", "lm_head"],
        )
        with folders.peft_of_another_year():
            self.adapted = get_peft_model(model.float(), config)
        self.segmenter = segmenter
        self.network: nn.Module = nn.ModuleDict({"llava": self.adapted, "segmenter": segmenter})
        self.network.train()
        self._processor, self._levels, self._recipe, self._seed = processor, levels, recipe, seed
        self._taught = list(taught)
        self._seg = int(processor.tokenizer.convert_tokens_to_ids(folders.SEG))

    def pace(self, name: str) -> float:
        """Return 1 for what learns: adapters, rows of words, projector, mask decoder."""
        learns = ("lora_", "modules_to_save", "segmenter.project.", "segmenter.sam.mask_decoder.")
        return 1.0 if any(part in name for part in learns) else 0.0

    def loss(self, step: int) -> tuple[Tensor, Mapping[str, float]]:
        """Return the loss of a step: a mean over its questions, each read by itself."""
        rng = np.random.default_rng([self._seed, 3, step])
        chosen = [self._taught[int(i)] for i in rng.integers(0, len(self._taught), self._recipe.batch)]
        totals = [self._one(lesson, rng) for lesson in chosen]
        words = torch.stack([part for part, _ in totals]).mean()
        masks = [part for _, part in totals if part is not None]
        place = torch.stack(masks).mean() if masks else words.new_zeros(())
        return self._recipe.words * words + place, {"words": words.item(), "masks": place.item()}

    def _one(self, lesson: Lesson, rng: np.random.Generator) -> tuple[Tensor, Tensor | None]:
        """Return the loss of words and of the mask of one question."""
        locate = lesson.mask is not None and rng.random() < self._recipe.located
        image = read_radiograph(lesson.image)
        answer = lesson.answer
        if locate:
            answer = f"The location of {lesson.region} is at {folders.SEG}. {answer}"
        question = f"{lesson.question} {folders.LOCATE}" if locate else lesson.question
        grey = np.rint(np.clip(image.pixels, 0, 1) * 255).astype(np.uint8)
        asked = self._processor(
            images=Image.fromarray(grey).convert("RGB"),
            text=prompt_text(self._processor, [("user", question, True)]),
            return_tensors="pt",
        )
        words = self._processor.tokenizer
        told = [*words(answer, add_special_tokens=False)["input_ids"], words.eos_token_id]
        ids = torch.cat([asked["input_ids"], torch.tensor([told])], 1)
        out = self.adapted(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            pixel_values=asked["pixel_values"],
            output_hidden_states=True,
        )
        start = asked["input_ids"].shape[1]
        loss = F.cross_entropy(out.logits[0, start - 1 : -1].float(), ids[0, start:])
        if not locate or lesson.mask is None:
            return loss, None
        place = start + told.index(self._seg)
        embeddings = self.segmenter.embed(folders.sam_pixels(image.pixels, self.segmenter.size, self._levels)[None])
        logits = self.segmenter(out.hidden_states[-1][:, place].float(), embeddings)
        mask = torch.from_numpy(lesson.mask.astype(np.float32))[None, None]
        target = F.interpolate(mask, logits.shape[-2:], mode="area")[:, 0]
        return loss, mask_loss(logits, target, self._recipe.cross, self._recipe.dice, scale=1000.0)


def train_loba(
    llava: Path,
    sam: Path,
    table: Path,
    out: Path,
    *,
    schedule: Schedule | None = None,
    recipe: LobaRecipe | None = None,
    attention: str = "sdpa",
    say: Callable[[str], None] = SAY,
) -> Path:
    """Train, going on where a stopped training ended, and write a folder that ``{name: loba, backbone: OUT}`` reads.

    Args:
        llava: folder of a LLaVA of transformers.
        sam: folder of a SAM-type model (MedSAM).
        table: questions; see :func:`lessons`.
        out: folder for adapters, segmenter, curve and checkpoint.
        schedule: steps and rates.
        recipe: every choice beside.
        attention: of the LLaVA; flash attention is refused.
        say: takes one line of progress.

    Returns:
        ``out``.
    """
    schedule, recipe = schedule or Schedule(steps=1000, rate=1e-4, warm_up=50, decay=0.0), recipe or LobaRecipe()
    taught = lessons(table)
    torch.manual_seed(schedule.seed)  # the row of a new word is drawn
    model, processor = folders.llava(llava, attention)
    decoder, levels = folders.sam(sam)
    segmenter = Segmenter(decoder, int(model.config.text_config.hidden_size))
    learner = LobaLearner(model, processor, segmenter, levels, taught, recipe, schedule.seed)
    say(f"{len(taught):,} questions, {sum(t.mask is not None for t in taught):,} with masks")
    identity = {"recipe": asdict(recipe), "llava": str(llava), "sam": str(sam), "table": str(table)}
    run(learner, schedule, out, identity=identity, say=say, every=min(100, schedule.steps))
    facts = {"llava": str(llava.resolve()), "sam": str(sam.resolve()), "recipe": asdict(recipe), "format": 1}
    folders.save(out, learner.adapted, segmenter, facts)
    return out
