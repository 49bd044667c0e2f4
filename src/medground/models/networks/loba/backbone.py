"""A LLaVA folder prepared by ``medground train loba``, as a backbone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name that every torch program uses

from medground.imaging.geometry import Geometry
from medground.models.base import Message
from medground.models.chat.backbone import Declined, Encoded
from medground.models.chat.decoding.runner import Runner
from medground.models.common.patches import patch_coverage
from medground.models.networks.loba import folder as folders


class LlavaBackbone:
    """A LLaVA with merged adapters and a SAM-type segmenter.

    Args:
        path: a folder written by ``medground train loba``.
        device: where it runs.
    """

    def __init__(self, path: Path, device: torch.device) -> None:
        model, self.processor, segmenter, self.levels = folders.load(path)
        self.device = device
        self.runner = Runner(model.to(device))
        self.segmenter = segmenter.to(device)
        words = self.processor.tokenizer
        self.seg: int | None = int(words.convert_tokens_to_ids(folders.SEG))
        self.ends: tuple[int, ...] = (int(words.eos_token_id),)
        self.pad = int(words.pad_token_id if words.pad_token_id is not None else words.eos_token_id)
        pictures = self.processor.image_processor
        self.black: tuple[float, ...] = tuple(
            -m / s for m, s in zip(pictures.image_mean, pictures.image_std, strict=True)
        )
        vision = model.config.vision_config
        self._size, self._patch = int(vision.image_size), int(vision.patch_size)
        self._squash = not getattr(pictures, "do_center_crop", True)
        self.sha256 = _hash(path)

    def encode(self, conversation: Sequence[Message], *, locate: bool) -> Encoded | Declined:
        """Return a conversation as ids, or why it is not answered."""
        images = [image for message in conversation for image in message.images]
        if len(images) != 1:
            return Declined(f"it looks at one picture at a time, and the conversation shows {len(images)}")
        turns = [(message.role, message.text, bool(message.images)) for message in conversation]
        if locate:
            role, text, seen = turns[-1]
            turns[-1] = (role, f"{text} {folders.LOCATE}", seen)
        grey = np.rint(np.clip(images[0].pixels, 0, 1) * 255).astype(np.uint8)
        picture = Image.fromarray(grey).convert("RGB")
        made = self.processor(images=picture, text=prompt_text(self.processor, turns), return_tensors="pt")
        return Encoded(made["input_ids"][0].tolist(), made["pixel_values"][0].to(self.device), images[0])

    def words(self, text: str) -> list[int]:
        """Return the ids of a text that goes on with an answer."""
        ids: list[int] = self.processor.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of ids; ``<SEG>`` stays, other marks go."""
        words = self.processor.tokenizer
        gone = {i for i in words.all_special_ids if i != self.seg}
        text: str = words.decode([i for i in ids if i not in gone])
        return text.strip()

    def masks(self, hidden: Tensor, encoded: Sequence[Encoded]) -> list[NDArray[np.bool_]]:
        """Return masks in the pictures' own pixels from hidden states of ``<SEG>``, ``(M, D)``."""
        pictures = [folders.sam_pixels(e.image.pixels, self.segmenter.size, self.levels) for e in encoded]
        embeddings = self.segmenter.embed(torch.stack(pictures).to(self.device))
        logits = self.segmenter(hidden.to(embeddings.dtype), embeddings)
        return [
            (F.interpolate(plane[None, None].float(), e.image.pixels.shape, mode="bilinear")[0, 0] > 0).cpu().numpy()
            for plane, e in zip(logits, encoded, strict=True)
        ]

    def marks(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the image tokens of which at least half is covered, row by row."""
        return patch_coverage(mask, self._size, self._patch, squash=self._squash).marked().reshape(-1)

    def geometry(self, size: tuple[int, int]) -> Geometry:
        """Return how the tower's frame lies on a picture of a size ``(width, height)``."""
        if self._squash:
            return Geometry.squash(size, (self._size, self._size))
        return Geometry.center_crop(size, self._size, rounding="floor")

    def onto_input(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the original picture in the frame of the tower's input."""
        return patch_coverage(mask, self._size, 1, squash=self._squash).marked()


def prompt_text(processor: Any, turns: Sequence[tuple[str, str, bool]]) -> str:
    """Return a conversation as one text: by the folder's chat template, else in LLaVA's own form.

    Args:
        processor: of the folder.
        turns: role, text, and whether the picture is shown there.
    """
    if getattr(processor, "chat_template", None):
        messages = [
            {"role": role, "content": [*([{"type": "image"}] if seen else []), {"type": "text", "text": text}]}
            for role, text, seen in turns
        ]
        written: str = processor.apply_chat_template(messages, add_generation_prompt=True)
        return written
    names = {"user": "USER", "assistant": "ASSISTANT", "system": "SYSTEM"}
    lines = [f"{names.get(role, 'USER')}: {'<image> ' if seen else ''}{text}" for role, text, seen in turns]
    return " ".join([*lines, "ASSISTANT:"])


def _hash(path: Path) -> str:
    """Return the SHA-256 of everything in a folder, names included."""
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(file.relative_to(path).as_posix().encode())
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
