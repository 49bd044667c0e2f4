"""The vision tower: the reference model's stem and image layers, with fine cells and concept maps beside each token.

A token of 14 by 14 is too coarse for a nodule, so it carries its four cells of 28 by 28, and what the cells say about
eight findings and eight anatomies.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that every torch program uses
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from medground.models.common.highlight import active
from medground.models.networks.reference.network import COARSE, FINE, HEADS, WIDTH, ImageLayer, ReferenceNet
from medground.models.networks.reference.vocabulary import CONCEPTS

CELL: Final = 96
"""Channels of a fine cell."""

TOKEN: Final = WIDTH + 4 * CELL + 4 * len(CONCEPTS)
"""Channels of a token: its own, those of its four cells, and their concept probabilities."""


class TowerConfig(PretrainedConfig):  # type: ignore[misc]  # transformers ships no types
    """Configuration of :class:`Tower`, under a model type of its own."""

    model_type = "medground_tower"

    def __init__(self, hidden_size: int = TOKEN, image_size: int = 224, patch_size: int = 16, **more: Any) -> None:
        self.hidden_size, self.image_size, self.patch_size = hidden_size, image_size, patch_size
        super().__init__(**more)


class BiasedImageLayer(ImageLayer):
    """An image layer whose attention can be biased towards highlighted tokens."""

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens ``(N, T, D)`` to tokens; see :mod:`medground.models.common.highlight`."""
        bias = active().vision
        if bias is None:
            return super().forward(x)
        n, t, d = x.shape
        q, k, v = self.qkv(self.norm_attention(x)).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=bias[:, None, None, :].to(q.dtype))
        x = x + self.out(mixed.transpose(1, 2).reshape(n, t, d))
        deeper: Tensor = x + self.mlp(self.norm_mlp(x))
        return deeper


def distinct(pixels: Tensor) -> tuple[list[int], list[int]]:
    """Return the rows of different pictures ``(N, ...)``, and for every row the place of its picture among them."""
    first: list[int] = []
    place: list[int] = []
    for row, picture in enumerate(pixels):
        at = next((at for at, other in enumerate(first) if torch.equal(picture, pixels[other])), len(first))
        first += [row] if at == len(first) else []
        place.append(at)
    return first, place


class Tower(PreTrainedModel):  # type: ignore[misc]  # transformers ships no types
    """Maps pictures to 196 tokens of 592 channels."""

    config_class = TowerConfig
    main_input_name = "pixel_values"
    _supports_sdpa = True
    _supports_attention_backend = True

    def __init__(self, config: TowerConfig) -> None:
        super().__init__(config)
        parts = ReferenceNet(dropout=0.0)
        self.stem, self.down, self.position = parts.stem, parts.down, parts.position
        self.layers = nn.ModuleList(BiasedImageLayer(WIDTH, HEADS, 0.0) for _ in parts.layers)
        self.norm, self.lateral, self.context, self.blend = parts.norm, parts.lateral, parts.context, parts.blend
        self.concepts = nn.Conv2d(CELL, len(CONCEPTS), 1)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """Leave torch's own initialisation: the tower starts from the reference model's weights."""

    def take(self, reference: ReferenceNet) -> None:
        """Copy the weights of the parts that the reference model has."""
        state = reference.state_dict()
        mine = {name: state[name] for name in self.state_dict() if name in state}
        missing, surplus = self.load_state_dict(mine, strict=False)
        assert not surplus
        assert all(name.startswith("concepts.") for name in missing)

    def forward(self, pixel_values: Tensor, **_: Any) -> BaseModelOutputWithPooling:
        """Encode pictures.

        Args:
            pixel_values: ``(N, 1 or 3, 224, 224)``, ``(v - 0.5) / 0.25``; the first channel is seen.

        Returns:
            ``last_hidden_state`` ``(N, 196, 592)``; ``pooler_output``: the cells ``(N, 96, 28, 28)``;
            ``attentions``: the concept logits ``(N, 16, 28, 28)``.
        """
        pixels = pixel_values[:, :1]
        # A bias changes the layers alone: one picture under several goes through the convolutions once.
        rows, place = distinct(pixels) if active().vision is not None else ([], [])
        fine = self.stem(pixels[rows] if rows else pixels)
        tokens, lateral = self.down(fine).flatten(2).transpose(1, 2) + self.position, self.lateral(fine)
        if rows:
            tokens, lateral = tokens[place], lateral[place]
        for layer in self.layers:
            tokens = layer(tokens)
        tokens = self.norm(tokens)
        coarse = self.context(tokens).transpose(1, 2).reshape(len(tokens), -1, COARSE, COARSE)
        wide = F.interpolate(coarse, size=(FINE, FINE), mode="bilinear", align_corners=False)
        cells = self.blend(wide + lateral)
        concepts = self.concepts(cells)
        beside = [F.pixel_unshuffle(part, FINE // COARSE).flatten(2) for part in (cells, concepts.sigmoid())]
        whole = torch.cat([tokens, *(part.transpose(1, 2) for part in beside)], dim=-1)
        return BaseModelOutputWithPooling(
            last_hidden_state=whole, pooler_output=cells, hidden_states=(whole, whole), attentions=(concepts,)
        )


AutoConfig.register(TowerConfig.model_type, TowerConfig, exist_ok=True)
AutoModel.register(TowerConfig, Tower, exist_ok=True)
