"""What can be had without looking: the figure beside which every other one must be read.

Each floor is that of an answer that ignores the picture, on the very cases that the figure is made of.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from medground.metrics.values import NO_ANNOTATION, NO_POSITIVES, Value, as_numbers

CHANCE_AUC = 0.5


def prevalence(labels: ArrayLike) -> Value:
    """Average precision of a constant score: the share of positives.

    Args:
        labels: any shape; 0, 1 or NaN (not annotated).

    Example:
        >>> prevalence([1, 0, 0, None]).value
        0.3333333333333333
    """
    positives, n = _counted(labels)
    return Value(positives / n, n=n) if n else Value(None, NO_ANNOTATION)


def f1_all_positive(labels: ArrayLike) -> Value:
    """F1 of calling every case positive: 2 p / (1 + p) at prevalence p; undefined without positives.

    Example:
        >>> f1_all_positive([1, 0, 0, 0]).value
        0.4
    """
    positives, n = _counted(labels)
    if not positives:
        return Value(None, NO_POSITIVES if n else NO_ANNOTATION, n=n)
    return Value(2 * positives / (positives + n), n=n)


def accuracy_all_negative(labels: ArrayLike) -> Value:
    """Accuracy (or Hamming accuracy) of calling everything negative: the share of negatives.

    Example:
        >>> accuracy_all_negative([[1, 0], [0, 0]]).value
        0.75
    """
    positives, n = _counted(labels)
    return Value(1 - positives / n, n=n) if n else Value(None, NO_ANNOTATION)


def brier_base_rate(labels: ArrayLike) -> Value:
    """Brier score of always saying the prevalence: p (1 - p).

    Example:
        >>> brier_base_rate([1, 0, 0, 0]).value
        0.1875
    """
    positives, n = _counted(labels)
    return Value(positives / n * (1 - positives / n), n=n) if n else Value(None, NO_ANNOTATION)


def log_loss_base_rate(labels: ArrayLike) -> Value:
    """Log loss of always saying the prevalence: its entropy in nats.

    Example:
        >>> round(log_loss_base_rate([1, 0]).value, 4)
        0.6931
    """
    positives, n = _counted(labels)
    if not n:
        return Value(None, NO_ANNOTATION)
    shares = [share for share in (positives / n, 1 - positives / n) if share]
    return Value(-math.fsum(share * math.log(share) for share in shares) + 0.0, n=n)


def _counted(labels: ArrayLike) -> tuple[int, int]:
    """Return positives and annotated entries."""
    truth = as_numbers(labels)
    known = truth[~np.isnan(truth)]
    return int(np.count_nonzero(known == 1)), int(known.size)
