"""The one query decoder of the house: findings ask image tokens, layer by layer.

It is the pre-norm transformer decoder of DETR (Carion et al. 2020), as MedKLIP, MAVL, KAD and CARZero use it. They
differ in whether queries see each other, and in what is normalised beforehand.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

LAYER_NORM_EPS = 1e-5


class DecoderLayer(nn.Module):
    """Self-attention (optional), cross-attention and a feed-forward network, each added to its input."""

    def __init__(self, width: int, heads: int, feed_forward: int, self_attention: bool) -> None:
        super().__init__()
        self.self_attn: nn.MultiheadAttention | None = None
        if self_attention:
            self.self_attn = nn.MultiheadAttention(width, heads, batch_first=True)
            self.norm1 = nn.LayerNorm(width, eps=LAYER_NORM_EPS)
        self.multihead_attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(width, eps=LAYER_NORM_EPS)
        self.linear1 = nn.Linear(width, feed_forward)
        self.linear2 = nn.Linear(feed_forward, width)
        self.norm3 = nn.LayerNorm(width, eps=LAYER_NORM_EPS)

    def forward(self, queries: Tensor, memory: Tensor, weights: bool) -> tuple[Tensor, Tensor | None]:
        """Update queries ``(N, C, width)`` from memory ``(N, T, width)``; also return head-averaged ``(N, C, T)``."""
        if self.self_attn is not None:
            seen = self.norm1(queries)
            queries = queries + self.self_attn(seen, seen, seen, need_weights=False)[0]
        found, attention = self.multihead_attn(self.norm2(queries), memory, memory, need_weights=weights)
        queries = queries + found
        return queries + self.linear2(functional.relu(self.linear1(self.norm3(queries)))), attention


class QueryDecoder(nn.Module):
    """A stack of decoder layers with one norm at the end.

    Args:
        width: channels of queries and memory.
        heads: attention heads.
        layers: how many layers.
        feed_forward: hidden width of the feed-forward networks.
        self_attention: whether queries see each other. If they do, a query's answer depends on the others.
        norm_inputs: whether the final norm is applied to queries and memory beforehand, too (KAD, CARZero).
        attention: ``all`` layers' cross-attention is returned, or the ``last`` one's.
    """

    def __init__(
        self,
        width: int,
        heads: int = 4,
        layers: int = 4,
        feed_forward: int = 1024,
        *,
        self_attention: bool = True,
        norm_inputs: bool = False,
        attention: Literal["all", "last"] = "all",
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(width, heads, feed_forward, self_attention) for _ in range(layers))
        self.norm = nn.LayerNorm(width, eps=LAYER_NORM_EPS)
        self.norm_inputs = norm_inputs
        self.attention = attention

    def forward(self, queries: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Let queries ask memory.

        Args:
            queries: ``(C, width)``, the same for every image, or ``(N, C, width)``.
            memory: ``(N, T, width)``.

        Returns:
            The answers ``(N, C, width)`` and the head-averaged attention ``(L, N, C, T)``, whose rows sum to 1.
        """
        if queries.dim() == 2:
            queries = queries.expand(len(memory), -1, -1)
        if self.norm_inputs:
            queries, memory = self.norm(queries), self.norm(memory)
        kept = []
        for index, layer in enumerate(self.layers):
            wanted = self.attention == "all" or index == len(self.layers) - 1
            queries, attention = layer(queries, memory, wanted)
            kept += [attention] if wanted else []
        return self.norm(queries), torch.stack(kept)
