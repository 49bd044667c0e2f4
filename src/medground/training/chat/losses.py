"""What the small chat model is taught: words, masks of ``<SEG>``, and concepts in the tower's cells."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name that every torch program uses


def word_loss(logits: Tensor, labels: Tensor, questions: int) -> Tensor:
    """Return the cross-entropy summed over the answers' tokens, a question.

    A mean over tokens would drown "yes" and "no" in the fixed words of the location sentence.

    Args:
        logits: ``(L, V)`` at the places before the labels.
        labels: ``(L,)``.
        questions: how many were asked.
    """
    return F.cross_entropy(logits.float(), labels, reduction="sum") / max(1, questions)


def mask_loss(logits: Tensor, target: Tensor, cross: float = 2.0, dice: float = 1.0, scale: float = 1.0) -> Tensor:
    """Return ``cross * BCE + dice * (1 - soft Dice)``, a mean over masks.

    Args:
        logits: ``(M, h, w)``.
        target: ``(M, h, w)``, in [0, 1].
        cross: weight of the cross-entropy.
        dice: weight of the Dice loss.
        scale: sums are divided by it before a constant of 1 (of 1e-6 where it is LISA's 1,000) is added.
    """
    if not len(logits):
        return logits.sum()
    logits = logits.float()
    bce = F.binary_cross_entropy_with_logits(logits, target, reduction="none").mean((1, 2))
    epsilon = 1.0 if scale == 1.0 else 1e-6
    p = logits.sigmoid()
    overlap = 2 * (p * target).sum((1, 2)) / scale + epsilon
    soft = 1 - overlap / (p.sum((1, 2)) / scale + target.sum((1, 2)) / scale + epsilon)
    return (cross * bce + dice * soft).mean()


def concept_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Return twice the cross-entropy of all concepts, present or not; both ``(N, 16, 28, 28)``."""
    return 2 * F.binary_cross_entropy_with_logits(logits.float(), target)


def raised(masks: Tensor) -> Tensor:
    """Divide each mask ``(M, h, w)`` by its maximum: a nodule covers part of a cell, and would be taught as absent."""
    most = masks.amax((-2, -1), keepdim=True)
    return torch.where(most > 0, masks / most.clamp_min(1e-6), masks)
