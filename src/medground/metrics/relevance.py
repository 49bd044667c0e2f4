"""Does an attribution lie on what caused the answer? Mass, rank and overlap, for pixels, cells and words alike.

Relevance mass and relevance rank accuracy are those of CLEVR-XAI (Arras et al. 2022), on absolute values; the overlap
binarises the map, by default with Otsu's threshold, as GridVQA-X does (arXiv 2606.14740). All take arrays of any
shape and a mask of the same shape.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError
from medground.metrics._arrays import as_mask

Rule = Literal["otsu", "mean", "median", "top_k"]
BINS = 256


class Ranked(NamedTuple):
    """Rank accuracy; ties at the k-th place leave a range of right values.

    Attributes:
        value: its expectation over random orders of tied entries; NaN for an empty mask.
        low: the least that an order of the ties gives.
        high: the most.
    """

    value: float
    low: float
    high: float


def relevance_mass(values: ArrayLike, mask: ArrayLike) -> float:
    """Return the share of the absolute attribution that lies in the mask.

    Args:
        values: attributions of any shape and sign; NaN anywhere gives NaN.
        mask: of the same shape, True where attribution is right.

    Returns:
        A share in [0, 1]; 0 for an all-zero map (a named state of the published metric) and for an empty mask.

    Raises:
        MetricError: shapes differ, or the mask is none.
    """
    size, inside = _absolute(values, mask)
    total = size.sum()
    return float(size[inside].sum() / total) if total != 0 else 0.0


def relevance_rank(values: ArrayLike, mask: ArrayLike) -> Ranked:
    """Return the share of the k largest absolute attributions that lie in the mask, k being the mask's size.

    Args:
        values: attributions of any shape; NaN anywhere gives NaN.
        mask: of the same shape.
    """
    size, inside = _absolute(values, mask)
    k = int(inside.sum())
    if k == 0 or np.isnan(size).any():
        return Ranked(np.nan, np.nan, np.nan)
    last = np.partition(size.ravel(), -k)[-k]
    above, tied = size > last, size == last
    sure, seats = int(inside[above].sum()), k - int(above.sum())
    good, bad = int(inside[tied].sum()), int((tied & ~inside).sum())
    expected = sure + seats * good / (good + bad)
    return Ranked(expected / k, (sure + max(0, seats - bad)) / k, (sure + min(seats, good)) / k)


def overlap(values: ArrayLike, mask: ArrayLike, rule: Rule = "otsu") -> float:
    """Return intersection over union of the mask with the binarised absolute map.

    Args:
        values: attributions of any shape; NaN anywhere gives NaN.
        mask: of the same shape.
        rule: see :func:`binarise`.

    Returns:
        A share in [0, 1]; 0 for an all-zero map.
    """
    size, inside = _absolute(values, mask)
    if np.isnan(size).any():
        return float("nan")
    chosen = binarise(size, rule, k=int(inside.sum()))
    union = int((chosen | inside).sum())
    return float((chosen & inside).sum() / union) if union else 0.0


def binarise(values: ArrayLike, rule: Rule = "otsu", *, k: int = 0) -> NDArray[np.bool_]:
    """Return the entries that stand out.

    Args:
        values: absolute attributions.
        rule: the threshold, met or exceeded: ``otsu`` of the positive entries (all of them, where they are equal),
            ``mean`` of all, ``median`` of the positive ones, ``top_k`` the k-th largest with its ties.
        k: for ``top_k``.
    """
    size = np.asarray(values, np.float64)
    positive = size[size > 0]
    if not positive.size or (rule == "top_k" and k == 0):
        return np.zeros(size.shape, bool)
    if rule == "top_k":
        level = float(np.partition(size.ravel(), -k)[-k])
    else:
        level = {"otsu": otsu(positive), "mean": float(size.mean()), "median": float(np.median(positive))}[rule]
    chosen: NDArray[np.bool_] = size >= level
    return chosen


def otsu(values: ArrayLike) -> float:
    """Return Otsu's threshold: the bin centre that parts the values with the largest variance between the parts.

    Equal to scikit-image 0.26, ``threshold_otsu`` with 256 bins: counts are single precision, the first of equal
    maxima is taken, equal values are their own threshold. Values too close for 256 bins, which differ in their last
    digits alone, count as equal: the least of them is the threshold.
    """
    numbers = np.asarray(values, np.float64).ravel()
    if numbers.size == 0:
        raise MetricError("Otsu's threshold needs values.", got="none")
    if np.any(np.diff(np.linspace(numbers.min(), numbers.max(), BINS + 1)) <= 0):
        return float(numbers.min())
    tally, edges = np.histogram(numbers, BINS)
    counts, centres = tally.astype(np.float32), (edges[:-1] + edges[1:]) / 2
    below, above = np.cumsum(counts), np.cumsum(counts[::-1])[::-1]
    low = np.cumsum(counts * centres) / below
    high = (np.cumsum((counts * centres)[::-1]) / above[::-1])[::-1]
    return float(centres[np.argmax(below[:-1] * above[1:] * (low[:-1] - high[1:]) ** 2)])


def _absolute(values: ArrayLike, mask: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise MetricError("Attributions are not numeric.", expected="real numbers", got=f"dtype {array.dtype}")
    size: NDArray[Any] = np.abs(array.astype(np.float64))
    return size, as_mask(mask, size.shape)
