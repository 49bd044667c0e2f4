"""Co-attention of two token streams, as M3AE stacks it: BERT-type layers in which each stream also asks the other."""

# Calling a torch module is untyped, so what it returns is Any to mypy.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

LAYER_NORM_EPS = 1e-12


class Projections(nn.Module):
    """Query, key and value of one attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)


class AddAndNorm(nn.Module):
    """A linear layer whose result is added to the stream and normalised."""

    def __init__(self, inner: int, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, width)
        self.LayerNorm = nn.LayerNorm(width, eps=LAYER_NORM_EPS)

    def forward(self, update: Tensor, stream: Tensor) -> Tensor:
        """Return the updated stream ``(N, T, width)``."""
        return self.LayerNorm(self.dense(update) + stream)


class PostNormAttention(nn.Module):
    """Multi-head attention, added to its query stream and normalised."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.self = Projections(width)
        self.output = AddAndNorm(width, width)

    def forward(self, stream: Tensor, context: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
        """Let a stream ``(N, T, width)`` ask a context ``(N, S, width)``.

        Args:
            stream: asks.
            context: is asked.
            bias: added to the logits, ``(N, 1, 1, S)``: lowest float on padding.

        Returns:
            The updated stream and the weights ``(N, heads, T, S)``.
        """
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer, x in ((self.self.query, stream), (self.self.key, context), (self.self.value, context))
        )
        logits = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        weights = (logits if bias is None else logits + bias).softmax(-1)
        mixed = (weights @ v).transpose(1, 2).flatten(2)
        return self.output(mixed, stream), weights


class Intermediate(nn.Module):
    """The wide half of a feed-forward network."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(N, T, width)`` to ``(N, T, hidden)``."""
        return functional.gelu(self.dense(x))


class CoAttentionLayer(nn.Module):
    """Self-attention, then cross-attention to the other stream, then a feed-forward network; post-norm throughout."""

    def __init__(self, width: int = 768, heads: int = 12, hidden: int = 3072) -> None:
        super().__init__()
        self.attention = PostNormAttention(width, heads)
        self.crossattention = PostNormAttention(width, heads)
        self.intermediate = Intermediate(width, hidden)
        self.output = AddAndNorm(hidden, width)

    def forward(
        self, stream: Tensor, other: Tensor, bias: Tensor | None, other_bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Update a stream from itself and from the other.

        Returns:
            The stream ``(N, T, width)`` and its attention to the other ``(N, heads, T, S)``.
        """
        stream, _ = self.attention(stream, stream, bias)
        stream, weights = self.crossattention(stream, other, other_bias)
        return self.output(self.intermediate(stream), stream), weights


def padding_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the logit bias ``(N, 1, 1, T)`` of a token mask ``(N, T)``: 0 on tokens, lowest float on padding."""
    return (1.0 - mask[:, None, None].to(dtype)) * torch.finfo(dtype).min
