"""From the hidden state of ``<SEG>`` to a mask: a projector, and a model of the SAM family (MedSAM's weights fit).

The picture is squashed to SAM's input, as MedSAM does; the projected state stands where a point or a box would.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Segmenter(nn.Module):
    """A projector before a ``SamModel`` of transformers, whose image encoder stays as it is.

    Args:
        sam: ``SamModel``.
        width: of the language model's hidden states.
    """

    def __init__(self, sam: Any, width: int) -> None:
        super().__init__()
        inner = int(sam.config.prompt_encoder_config.hidden_size)
        self.sam = sam
        self.project = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, inner))

    @property
    def size(self) -> int:
        """Side of SAM's input."""
        return int(self.sam.config.vision_config.image_size)

    @torch.no_grad()
    def embed(self, pictures: Tensor) -> Tensor:
        """Encode pictures ``(N, 3, size, size)``, normalised as SAM's."""
        embeddings: Tensor = self.sam.get_image_embeddings(pictures)
        return embeddings

    def forward(self, hidden: Tensor, embeddings: Tensor) -> Tensor:
        """Return mask logits on SAM's output grid, in the frame of the whole squashed picture.

        Args:
            hidden: ``(M, D)`` states of ``<SEG>``.
            embeddings: of the picture of each, ``(M, C, h, w)``.

        Returns:
            ``(M, 4 h, 4 w)``.
        """
        count, channels, rows, columns = embeddings.shape
        prompts = self.project(hidden)[:, None, None]
        dense = self.sam.prompt_encoder.no_mask_embed.weight.view(1, channels, 1, 1)
        position = self.sam.get_image_wide_positional_embeddings().to(embeddings.dtype)
        masks, _ = self.sam.mask_decoder(
            image_embeddings=embeddings,
            image_positional_embeddings=position.expand(count, -1, -1, -1),
            sparse_prompt_embeddings=prompts,
            dense_prompt_embeddings=dense.expand(count, -1, rows, columns),
            multimask_output=False,
        )
        logits: Tensor = masks[:, 0, 0]
        return logits
