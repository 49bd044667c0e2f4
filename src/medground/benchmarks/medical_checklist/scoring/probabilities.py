"""Probability of the true caption, for each kind of model.

Every function takes arrays of any shape and returns values in [0, 1]; equal captions give exactly one half.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

TIE = 1e-9
"""|p - 0.5| below this is a tie: half a hit, counted; never a hit by position."""

Floats = NDArray[np.float64]
Link = Literal["ratio", "margin"]


def sigmoid(x: ArrayLike) -> Floats:
    """Return the logistic function, without overflow."""
    from scipy.special import expit

    held: Floats = expit(np.asarray(x, dtype=np.float64))
    return held


def contrastive(positive: ArrayLike, negative: ArrayLike, scale: float) -> Floats:
    """Return sigmoid(scale * (positive - negative)): the softmax over two similarities.

    Args:
        positive: similarity of the image to the true caption.
        negative: to the false one.
        scale: exp(logit_scale) of the checkpoint.
    """
    return sigmoid(scale * (np.asarray(positive, dtype=np.float64) - np.asarray(negative, dtype=np.float64)))


def matching(positive: ArrayLike, negative: ArrayLike, link: Link = "ratio") -> Floats:
    """Return the probability from an image-text matching head.

    Args:
        positive: (..., 2) logits (no match, match) with the true caption.
        negative: (..., 2) with the false one.
        link: ``ratio`` is match+ / (match+ + match-), one half where both are 0; ``margin`` the sigmoid of the
            difference of the logit margins. The choice is the same, the calibration is not.
    """
    up, down = _margin(positive), _margin(negative)
    if link == "margin":
        return sigmoid(up - down)
    a, b = sigmoid(up), sigmoid(down)
    total = a + b
    return np.divide(a, total, out=np.full_like(total, 0.5), where=total > 0)


def _margin(logits: ArrayLike) -> Floats:
    held = np.asarray(logits, dtype=np.float64)
    return np.asarray(held[..., 1] - held[..., 0])


def chat_choice(log_first: ArrayLike, log_second: ArrayLike) -> Floats:
    """Return P(first) of two answer tokens, renormalised over the two."""
    return sigmoid(np.asarray(log_first, dtype=np.float64) - np.asarray(log_second, dtype=np.float64))


def both_orders(positive_first: ArrayLike, positive_second: ArrayLike) -> Floats:
    """Return the mean of P(A) with the true caption as A and P(B) with it as B.

    Args:
        positive_first: P(A) where A is the true caption.
        positive_second: P(A) where A is the false caption.
    """
    return (np.asarray(positive_first, dtype=np.float64) + 1 - np.asarray(positive_second, dtype=np.float64)) / 2


def credit(p: ArrayLike) -> Floats:
    """Return 1 where the true caption wins, 0 where it loses, one half at a tie; NaN stays."""
    held = np.asarray(p, dtype=np.float64)
    return np.where(np.isnan(held), np.nan, np.where(np.abs(held - 0.5) < TIE, 0.5, held > 0.5))


class Order(NamedTuple):
    """What the order of the captions does to a chat model."""

    accuracy_positive_first: float
    accuracy_positive_second: float
    consistent_accuracy: float
    consistently_wrong: float
    flip_rate: float
    position_bias: float
    a_rate: float


def order(first: ArrayLike, second: ArrayLike) -> Order:
    """Return order effects from P(A) with the true caption as A (``first``) and as B (``second``), both (N,).

    Chance of being right in both orders is 25 %; a model that always says A flips every time.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    right_first, right_second = credit(a), credit(1 - b)
    both = (right_first == 1) & (right_second == 1)
    neither = (right_first == 0) & (right_second == 0)
    flips = (right_first != right_second) & (right_first != 0.5) & (right_second != 0.5)
    return Order(
        float(right_first.mean()),
        float(right_second.mean()),
        float(both.mean()),
        float(neither.mean()),
        float(flips.mean()),
        float((a.mean() + b.mean()) / 2 - 0.5),
        float((credit(a).mean() + credit(b).mean()) / 2),
    )
