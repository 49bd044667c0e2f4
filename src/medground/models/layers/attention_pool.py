"""CLIP's attention pooling: the mean of a feature grid asks every cell, and itself, what matters."""

# Calling a torch module is untyped, so what it returns is Any to mypy.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch
from torch import Tensor, nn


class AttentionPool(nn.Module):
    """Pools ``(N, channels, h, w)`` into one vector by one query, the mean token (Radford et al. 2021).

    Args:
        cells: grid cells; the positions are fixed, so the grid is too.
        channels: channels of the grid.
        out: width of the pooled vector.
        heads: attention heads.
    """

    def __init__(self, cells: int, channels: int, out: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.positional_embedding = nn.Parameter(torch.zeros(cells + 1, channels))
        self.q_proj = nn.Linear(channels, channels)
        self.k_proj = nn.Linear(channels, channels)
        self.v_proj = nn.Linear(channels, channels)
        self.c_proj = nn.Linear(channels, out)

    def forward(self, grid: Tensor) -> tuple[Tensor, Tensor]:
        """Pool a grid.

        Returns:
            The vector ``(N, out)`` and the head-averaged weights ``(N, 1 + cells)``, the mean token's first.
        """
        tokens = grid.flatten(2).transpose(1, 2)
        tokens = torch.cat([tokens.mean(1, keepdim=True), tokens], 1) + self.positional_embedding
        query = self._split(self.q_proj(tokens[:, :1]))
        key, value = self._split(self.k_proj(tokens)), self._split(self.v_proj(tokens))
        weights = (query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5).softmax(-1)
        pooled = (weights @ value).transpose(1, 2).flatten(2)
        return self.c_proj(pooled)[:, 0], weights[:, :, 0].mean(1)

    def dense(self, grid: Tensor) -> Tensor:
        """Return what each cell alone would give, ``(N, cells, out)``: no position, no attention."""
        return self.c_proj(self.v_proj(grid.flatten(2).transpose(1, 2)))

    def _split(self, tokens: Tensor) -> Tensor:
        """Map ``(N, T, channels)`` to ``(N, heads, T, channels / heads)``."""
        return tokens.reshape(*tokens.shape[:2], self.heads, -1).transpose(1, 2)
