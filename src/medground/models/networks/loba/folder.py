"""A folder written by ``medground train loba``, and the LLaVA and SAM folders that it builds on.

::

    FOLDER/
      loba.json                where the LLaVA and the SAM folder are, and how prompts end
      adapter/                 low-rank adapters and the rows of new words, written by peft
      segmenter.safetensors    projector and mask decoder
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch

from medground.errors import CheckpointError, ModelError
from medground.models.networks.loba.segmenter import Segmenter

FACTS: Final = "loba.json"
ADAPTER: Final = "adapter"
HEAD: Final = "segmenter.safetensors"
SEG: Final = "<SEG>"
LOCATE: Final = "Locate the region first, then answer."
"""Ends a question that wants the place before the answer."""

KEPT: Final = ("project.", "sam.mask_decoder.")
"""Parts of the segmenter that are trained and stored; SAM's image encoder comes from the user's folder."""


@contextmanager
def peft_of_another_year() -> Iterator[None]:
    """Leave out the warnings about names of transformers that peft uses and transformers has renamed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing.*", category=FutureWarning)
        yield


def llava(folder: Path, attention: str = "sdpa") -> tuple[Any, Any]:
    """Return model and processor of a LLaVA folder, with ``<SEG>`` among its words.

    Raises:
        ModelError: flash attention is asked for, which cannot take a bias.
        CheckpointError: the folder holds no LLaVA.
    """
    from transformers import LlavaForConditionalGeneration, LlavaProcessor

    if "flash" in attention:
        raise ModelError(
            "highlighting adds a bias to the attention's scores, and flash attention cannot take one",
            where="attention",
            got=attention,
            fix="attention: sdpa",
        )
    if not (folder / "config.json").is_file():
        raise CheckpointError(
            "this is no LLaVA folder", where=folder, expected="config.json, weights, tokenizer and processor on disk"
        )
    try:
        model = LlavaForConditionalGeneration.from_pretrained(
            folder, local_files_only=True, attn_implementation=attention, dtype="auto"
        )
        processor = LlavaProcessor.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError("a LLaVA folder cannot be read", where=folder, got=error) from error
    processor.tokenizer.add_special_tokens({"additional_special_tokens": [SEG]}, replace_extra_special_tokens=False)
    if len(processor.tokenizer) > model.get_input_embeddings().weight.shape[0]:
        model.resize_token_embeddings(len(processor.tokenizer), mean_resizing=False)
    return model, processor


def sam(folder: Path) -> tuple[Any, tuple[list[float], list[float]]]:
    """Return a SAM-type model and the mean and deviation of its pictures.

    Raises:
        CheckpointError: the folder holds none.
    """
    from transformers import SamModel

    if not (folder / "config.json").is_file():
        raise CheckpointError(
            "this is no SAM folder",
            where=folder,
            expected="config.json and weights in the layout of transformers (MedSAM's published one fits)",
        )
    try:
        model = SamModel.from_pretrained(folder, local_files_only=True)
        file = folder / "preprocessor_config.json"
        told = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        mean = [float(v) for v in told.get("image_mean", (0.485, 0.456, 0.406))]
        deviation = [float(v) for v in told.get("image_std", (0.229, 0.224, 0.225))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError("a SAM folder cannot be read", where=folder, got=error) from error
    return model, (mean, deviation)


def save(out: Path, adapted: Any, segmenter: Segmenter, facts: dict[str, Any]) -> None:
    """Write adapters, projector, mask decoder and facts."""
    from safetensors.torch import save_file

    out.mkdir(parents=True, exist_ok=True)
    adapted.save_pretrained(out / ADAPTER)
    kept = {n: t.contiguous() for n, t in segmenter.state_dict().items() if n.startswith(KEPT)}
    save_file(kept, out / HEAD)
    (out / FACTS).write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def load(folder: Path) -> tuple[Any, Any, Segmenter, tuple[list[float], list[float]]]:
    """Return model with merged adapters, processor, segmenter, and the mean and deviation of SAM's pictures.

    Raises:
        CheckpointError: the folder was not written by ``medground train loba``, or what it builds on is gone.
    """
    try:
        from peft import PeftModel
    except ImportError as error:
        raise ModelError(
            "LobA on a LLaVA folder needs peft", fix="pip install 'medground[train]'", got=error
        ) from error
    from safetensors.torch import load_file

    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        base, mask_base = Path(facts["llava"]), Path(facts["sam"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            "this folder was not written by `medground train loba`", where=folder, expected=FACTS, got=error
        ) from error
    model, processor = llava(base)
    with peft_of_another_year():
        merged = PeftModel.from_pretrained(model, str(folder / ADAPTER), local_files_only=True).merge_and_unload()
    decoder, levels = sam(mask_base)
    segmenter = Segmenter(decoder, int(model.config.text_config.hidden_size))
    missing, surplus = segmenter.load_state_dict(load_file(folder / HEAD), strict=False)
    if surplus or any(name.startswith(KEPT) for name in missing):
        raise CheckpointError("the segmenter does not fit", where=folder / HEAD, got=[*surplus, *missing][:5])
    return merged.eval().requires_grad_(False), processor, segmenter.eval().requires_grad_(False), levels


def sam_pixels(pixels: Any, size: int, levels: tuple[list[float], list[float]]) -> torch.Tensor:
    """Return a picture ``(h, w)`` in [0, 1] as SAM takes it, ``(3, size, size)``: squashed, the aspect is not kept."""
    from medground.imaging.geometry import resize_pixels

    plane = torch.from_numpy(resize_pixels(pixels, (size, size), "bilinear"))
    mean, deviation = (torch.tensor(level)[:, None, None] for level in levels)
    return (plane[None] - mean) / deviation
