"""The small chat model as a backbone: its words, its pictures, its masks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name that every torch program uses

from medground.imaging.geometry import Geometry, resize_pixels
from medground.models.base import Message
from medground.models.chat.backbone import Declined, Encoded
from medground.models.chat.decoding.runner import Runner
from medground.models.common.patches import patch_coverage
from medground.models.networks.chat import tokens, weights
from medground.models.networks.chat.network import IMAGE_TOKENS
from medground.models.networks.chat.tower import distinct
from medground.models.networks.reference.picture import SIZE, picture

PATCH: Final = 16


class SmallBackbone:
    """The small chat model.

    Args:
        path: its weight file.
        device: where it runs.
    """

    pad: int = tokens.PAD
    seg: int | None = tokens.SEG
    ends: tuple[int, ...] = (tokens.EOS,)
    black: tuple[float, ...] = ((0 - 0.5) / 0.25,)

    def __init__(self, path: Path, device: torch.device) -> None:
        self.network, self.card, self.sha256 = weights.load(path)
        self.network.to(device)
        self.device = device
        self.runner = Runner(self.network.llava)

    def encode(self, conversation: Sequence[Message], *, locate: bool) -> Encoded | Declined:
        """Return a conversation as ids, or why it is not answered: no picture, several, or words never met.

        System turns are not read: the model has learnt none.
        """
        images = [image for message in conversation for image in message.images]
        if not images:
            return Declined("the conversation shows no picture")
        if len({image.pixels.tobytes() for image in images}) > 1:
            return Declined(f"it looks at one picture at a time, and the conversation shows {len(images)}")
        said = [message for message in conversation if message.role in ("user", "assistant")]
        strange = tokens.unknown_words(" ".join(message.text for message in said), self.network.size)
        if strange:
            return Declined(f"it has never met the words: {', '.join(strange[:5])}")
        ids = [tokens.BOS, *[tokens.IMAGE] * IMAGE_TOKENS]
        end = tokens.encode(tokens.LOCATE if locate else tokens.ANSWER)
        for number, message in enumerate(said):
            ids += tokens.encode(message.text)
            if message.role == "assistant":
                ids.append(tokens.EOS)
            else:
                ids += end if number + 1 == len(said) else tokens.encode(tokens.ANSWER)
        grey = torch.from_numpy(picture(images[0].pixels)).float() / 255
        return Encoded(ids, ((grey - 0.5) / 0.25)[None].to(self.device), images[0])

    def words(self, text: str) -> list[int]:
        """Return the ids of a text; a word that this network does not know is ``tokens.UNKNOWN``."""
        return [word if word < self.network.size else tokens.UNKNOWN for word in tokens.encode(text)]

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of ids."""
        return tokens.decode(ids)

    def masks(self, hidden: Tensor, encoded: Sequence[Encoded]) -> list[NDArray[np.bool_]]:
        """Return masks in the pictures' own pixels from hidden states of ``<SEG>``, ``(M, 160)``."""
        pixels = torch.stack([e.pixels for e in encoded])
        rows, place = distinct(pixels)
        logits = self.network.masks(hidden, self.network.encode(pixels[rows]).cells[place])
        wide = F.interpolate(logits[:, None].float(), size=(SIZE, SIZE), mode="bilinear", align_corners=False)[:, 0]
        masks = (wide > 0).cpu().numpy()
        return [_resized(mask, e.image.pixels.shape) for mask, e in zip(masks, encoded, strict=True)]

    def marks(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the image tokens of which more than half is covered, ``(196,)``."""
        return patch_coverage(mask, SIZE, PATCH, squash=True).marked(inclusive=False).reshape(-1)

    def geometry(self, size: tuple[int, int]) -> Geometry:
        """Return how the network's frame lies on a picture of a size ``(width, height)``."""
        return Geometry.squash(size, (SIZE, SIZE))

    def onto_input(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the original picture in the network's frame, ``(224, 224)``."""
        return _resized(mask, (SIZE, SIZE))


def _resized(mask: NDArray[np.bool_], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if mask.shape == shape:
        return mask
    return resize_pixels(mask.astype(np.float32), (shape[1], shape[0]), "bilinear") > 0.5
