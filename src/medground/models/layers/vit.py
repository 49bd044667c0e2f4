"""The one vision transformer of the house, with timm's parameter names (Dosovitskiy et al. 2021)."""

# Calling a torch module is untyped, so what it returns is Any to mypy.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

LAYER_NORM_EPS = 1e-6


class Attention(nn.Module):
    """Self-attention with query, key and value in one linear layer, stacked in this order."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def heads_of(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value ``(N, heads, T, width / heads)`` of tokens ``(N, T, width)``."""
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return q, k, v

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens ``(N, T, width)`` to tokens."""
        mixed = functional.scaled_dot_product_attention(*self.heads_of(x))
        return self.proj(mixed.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    """Two linear layers with the exact GELU between them."""

    def __init__(self, width: int, hidden: int, out: int | None = None, *, bias: bool = True) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.fc2 = nn.Linear(hidden, out or width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens ``(N, T, width)`` to tokens."""
        return self.fc2(functional.gelu(self.fc1(x)))


class Block(nn.Module):
    """Pre-norm transformer block."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=LAYER_NORM_EPS)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=LAYER_NORM_EPS)
        self.mlp = Mlp(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens ``(N, T, width)`` to tokens."""
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchEmbed(nn.Module):
    """Cuts an image into patches and embeds each."""

    def __init__(self, width: int, patch: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(N, 3, H, W)`` to tokens ``(N, T, width)``, row by row."""
        return self.proj(x).flatten(2).transpose(1, 2)


class VisionTransformer(nn.Module):
    """ViT without a head: a class token, learned positions, pre-norm blocks, a final norm on all tokens."""

    def __init__(
        self, width: int = 768, depth: int = 12, heads: int = 12, patch: int = 16, image_size: int = 224
    ) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + (image_size // patch) ** 2, width))
        self.patch_embed = PatchEmbed(width, patch)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=LAYER_NORM_EPS)

    def embed(self, x: Tensor) -> Tensor:
        """Return the tokens that enter the first block, ``(N, 1 + T, width)``."""
        patches = self.patch_embed(x)
        return torch.cat([self.cls_token.expand(len(x), -1, -1), patches], 1) + self.pos_embed

    def forward(self, x: Tensor) -> Tensor:
        """Map images ``(N, 3, H, W)`` to tokens ``(N, 1 + T, width)`` after the final norm, the class token first."""
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)
