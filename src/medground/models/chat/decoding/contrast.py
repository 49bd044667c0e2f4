"""The contrast of two passes: what one says more than the other."""

from __future__ import annotations

import torch
from torch import Tensor


def contrast(answering: Tensor, other: Tensor, alpha: float, *, log_space: bool = True) -> Tensor:
    """Return ``(1 + alpha) a - alpha b``.

    In log-probabilities it equals ``p_a (p_a / p_b)^alpha`` up to a factor, and ``s (a - b) + b`` with
    ``s = 1 + alpha``, Prompt Highlighter's form; raw logits give the same distribution.

    Args:
        answering: ``(..., V)`` logits of the pass that answers.
        other: ``(..., V)`` logits of the pass held against it.
        alpha: 0 gives ``answering`` itself, to the bit.
        log_space: whether both are turned into log-probabilities first.

    Returns:
        ``(..., V)``; a token barred in ``answering`` stays at minus infinity; one barred in ``other`` alone keeps its
        value of ``answering``.
    """
    if alpha == 0:
        return answering
    a, b = (x.log_softmax(-1) if log_space else x for x in (answering, other))
    barred, only_other = torch.isneginf(a), torch.isneginf(b)
    mixed = (1 + alpha) * a - alpha * torch.where(only_other, a, b)
    return torch.where(barred, torch.full_like(a, -torch.inf), mixed)
