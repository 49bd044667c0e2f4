"""Absent or present, out of two logits."""

from __future__ import annotations

from torch import Tensor


def presence(logits: Tensor) -> Tensor:
    """Return the probability of the second of two logits ``(..., 2)``: present, not absent."""
    return logits.float().softmax(-1)[..., 1]


def presence_margin(logits: Tensor) -> Tensor:
    """Return present minus absent of two logits ``(..., 2)``; its sigmoid is :func:`presence`."""
    return logits[..., 1] - logits[..., 0]
