"""The interval of the CheXlocalize publication, kept apart from our own because it draws images, not patients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from medground.errors import MetricError
from medground.metrics._weighted import FloatArray, Weights, weighted_sums
from medground.metrics.values import as_numbers


@dataclass(frozen=True, slots=True)
class ImageInterval:
    """Mean of the replicate means, and two of their order statistics; None where nothing is defined.

    Attributes:
        centre: the figure that is printed.
        low: lower limit.
        high: upper limit.
        skipped: replicates without a value.
    """

    centre: float | None
    low: float | None
    high: float | None
    skipped: int


def image_bootstrap(values: ArrayLike, replicates: int = 1000, seed: int = 0) -> list[ImageInterval]:
    """Compute the interval that CheXlocalize prints (to 3 decimals).

    Numpy's legacy generator draws N of N images, the same for all pathologies; undefined values are left out of each
    mean. Of n sorted means, those at ``int(0.025 n) - 1`` and ``int(0.975 n) - 1`` are the limits, and their mean is
    the centre. Replicates without a value are left out first. For your own reports take `bootstrap.bootstrap_mean`.

    Saporta et al., Benchmarking saliency methods for chest X-ray interpretation, Nature Machine Intelligence 2022.

    Args:
        values: (N, K) one row an image, one column a pathology; NaN (None) where undefined.
        replicates: number of draws.
        seed: of the generator; 0 in the publication.

    Returns:
        One interval a pathology.
    """
    array = as_numbers(values)
    if array.ndim != 2 or not array.shape[0]:
        raise MetricError("Images are missing.", expected="(images, pathologies)", got=f"shape {array.shape}")
    defined = ~np.isnan(array)
    drawn = _draws(array.shape[0], replicates, seed)
    above = weighted_sums(drawn, np.where(defined, array, 0.0))
    below = weighted_sums(drawn, defined.astype(np.float64))
    return [_interval(a[n > 0] / n[n > 0], replicates) for a, n in zip(above.T, below.T, strict=True)]


def _draws(n: int, replicates: int, seed: int) -> Weights:
    """How often each image was drawn: (n, replicates)."""
    generator = np.random.RandomState(seed)  # the publication's generator
    counts = [np.bincount(generator.randint(0, n, size=n), minlength=n) for _ in range(replicates)]
    return np.ascontiguousarray(np.transpose(counts), dtype=np.uint16)


def _interval(means: FloatArray, replicates: int) -> ImageInterval:
    skipped = replicates - means.size
    if not means.size:
        return ImageInterval(None, None, None, skipped)
    ordered = np.sort(means)
    low, high = (max(int(share * means.size) - 1, 0) for share in (0.025, 0.975))
    return ImageInterval(float(means.mean()), float(ordered[low]), float(ordered[high]), skipped)
