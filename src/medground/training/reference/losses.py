"""What the network is taught: presence for every known label, a map for every mask, an empty map for every absence."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - the name that every torch program uses

from medground.training.reference.augment import Batch


def presence_loss(presence: Tensor, labels: Tensor) -> Tensor:
    """Return the binary cross-entropy over known labels; ``presence`` and ``labels`` are ``(N, C)``."""
    known = labels >= 0
    return F.binary_cross_entropy_with_logits(presence[known], labels[known].float())


def map_loss(logits: Tensor, batch: Batch, weights: Tensor) -> Tensor:
    """Return the loss of the maps.

    Args:
        logits: ``(N, C, h, w)`` before the sigmoid.
        batch: with masks of the pairs that have one.
        weights: ``(C,)`` of concepts.

    Where a mask exists: twice the cross-entropy, the soft Dice loss, and the attention that falls outside. Where the
    label is negative: half of the cross-entropy with an empty map. A positive label without a mask teaches no map.
    """
    pictures, concepts = batch.pairs.unbind(1)
    here = logits[pictures, concepts]
    cross = F.binary_cross_entropy_with_logits(here, batch.maps, reduction="none").mean((1, 2))
    sure = here.sigmoid()
    overlap = 2 * (sure * batch.maps).sum((1, 2)) + 1
    dice = 1 - overlap / (sure.sum((1, 2)) + batch.maps.sum((1, 2)) + 1)
    inside = (here.flatten(1).softmax(1) * batch.maps.flatten(1)).sum(1)
    share = weights[concepts]
    positive = ((2 * cross + dice - 0.3 * (inside + 1e-6).log()) * share).sum() / share.sum().clamp_min(1e-6)
    empty = F.softplus(logits[batch.labels == 0]).mean() if (batch.labels == 0).any() else torch.zeros(())
    return positive + 0.5 * empty
