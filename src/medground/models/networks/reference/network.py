"""The network: a small convolutional stem, image layers, prompts that attend to the picture.

Saliency is the cross-attention's score before softmax, on a 28 by 28 grid: coarse tokens (14 by 14) carry the
context, a finer skip from the stem carries what is smaller than a token.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that every torch program uses

from medground.models.networks.reference.text import BUCKETS

COARSE: Final = 14
FINE: Final = 28
WIDTH: Final = 144
HEADS: Final = 4


def normalise(grey: Tensor) -> Tensor:
    """Map grey values in [0, 1] to the network's input."""
    return (grey - 0.5) / 0.25


def _conv(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


class Residual(nn.Module):
    """Two 3x3 convolutions beside an identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = _conv(channels, channels)
        self.second = nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Return ``relu(x + f(x))``."""
        return F.relu(x + self.second(self.first(x)))


class ImageLayer(nn.Module):
    """One pre-norm attention layer over image tokens."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens ``(N, T, D)`` to tokens."""
        n, t, d = x.shape
        q, k, v = self.qkv(self.norm_attention(x)).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, d)
        x = x + self.dropout(self.out(mixed))
        deeper: Tensor = x + self.dropout(self.mlp(self.norm_mlp(x)))
        return deeper


class PromptLayer(nn.Module):
    """Lets every prompt take in the picture: cross-attention from prompts to tokens."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm_prompt, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.kv, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, prompts: Tensor, tokens: Tensor) -> Tensor:
        """Map prompts ``(N, C, D)``, each on its own, with tokens ``(N, T, D)`` to prompts."""
        n, c, d = prompts.shape
        split = (n, -1, self.heads, d // self.heads)
        q = self.q(self.norm_prompt(prompts)).view(split).transpose(1, 2)
        k, v = (part.view(split).transpose(1, 2) for part in self.kv(tokens).chunk(2, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, c, d)
        x: Tensor = prompts + self.dropout(self.out(mixed))
        deeper: Tensor = x + self.dropout(self.mlp(self.norm_mlp(x)))
        return deeper


class ReferenceNet(nn.Module):
    """Scores prompts on pictures and says where they are.

    Prompts do not see each other: a prompt's answer does not depend on what else is asked.
    """

    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.stem = nn.Sequential(_conv(1, 16, 2), _conv(16, 32, 2), Residual(32), _conv(32, 64, 2), Residual(64))
        self.down = _conv(64, WIDTH, 2)
        self.position = nn.Parameter(0.02 * torch.randn(COARSE * COARSE, WIDTH))
        self.layers = nn.ModuleList(ImageLayer(WIDTH, HEADS, dropout) for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.words = nn.Embedding(BUCKETS, 64)
        self.text = nn.Sequential(nn.Linear(64, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH))
        self.look = PromptLayer(WIDTH, HEADS, dropout)
        self.norm_query = nn.LayerNorm(WIDTH)
        self.lateral = nn.Conv2d(64, 96, 1)
        self.context = nn.Linear(WIDTH, 96)
        self.blend = nn.Sequential(nn.ReLU(), nn.Conv2d(96, 96, 3, 1, 1), nn.ReLU())
        self.keys = nn.Conv2d(96, 96, 1)
        self.query = nn.Linear(WIDTH, 96)
        self.values = nn.Linear(96, WIDTH)
        self.offset = nn.Parameter(torch.tensor(-2.0))
        self.presence = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 1))
        self.evidence = nn.Parameter(torch.tensor(0.1))
        nn.init.normal_(self.words.weight, std=0.3)

    def embed(self, buckets: Tensor) -> Tensor:
        """Map padded buckets ``(..., L)``, -1 for padding, to prompt vectors ``(..., D)``."""
        known = (buckets >= 0).unsqueeze(-1)
        vectors = self.words(buckets.clamp_min(0)) * known
        mean: Tensor = vectors.sum(-2) / known.sum(-2).clamp_min(1)
        return self.text(mean)  # type: ignore[no-any-return]  # nn.Sequential is untyped

    def forward(self, images: Tensor, prompts: Tensor) -> tuple[Tensor, Tensor]:
        """Score prompts on pictures.

        Args:
            images: ``(N, 1, 224, 224)``, ``(v - 0.5) / 0.25``.
            prompts: ``(N, C, D)`` from :meth:`embed`.

        Returns:
            Presence logits ``(N, C)`` and map logits ``(N, C, 28, 28)``.
        """
        n, c, _ = prompts.shape
        fine = self.stem(images)
        tokens = self.down(fine).flatten(2).transpose(1, 2) + self.position
        for layer in self.layers:
            tokens = layer(tokens)
        tokens = self.norm(tokens)
        queries = self.norm_query(self.look(prompts, tokens))

        coarse = self.context(tokens).transpose(1, 2).reshape(n, -1, COARSE, COARSE)
        wide = F.interpolate(coarse, size=(FINE, FINE), mode="bilinear", align_corners=False)
        cells = self.blend(wide + self.lateral(fine))
        keys = self.keys(cells).flatten(2)
        scores = self.query(queries) @ keys / math.sqrt(keys.shape[1])
        pooled = scores.softmax(-1) @ self.values(cells.flatten(2).transpose(1, 2))
        logits = scores + self.offset
        presence = self.presence(torch.cat([queries, pooled], dim=-1)).squeeze(-1)
        presence = presence + self.evidence * logits.logsumexp(-1)
        return presence, logits.view(n, c, FINE, FINE)
