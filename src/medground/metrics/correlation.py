"""Do models that recognise better also point better? A straight line over models, and how far each lies off it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError
from medground.metrics.values import as_numbers

FEWEST_POINTS = 3  # two points always lie on a line


@dataclass(frozen=True, slots=True)
class LineFit:
    """A least-squares line over the points where both figures are defined.

    Attributes:
        r2: share of the variance of y that the line explains; None where undefined.
        slope: of the line.
        intercept: of the line.
        residuals: (N,) y minus the line, NaN where a figure is undefined; a positive one points better than its
            recognition lets expect.
        n: points used.
        n_undefined: points left out.
        reason: why the fit is undefined; None where it is defined.
    """

    r2: float | None
    slope: float | None
    intercept: float | None
    residuals: NDArray[np.float64]
    n: int
    n_undefined: int
    reason: str | None = None


def fit_line(x: ArrayLike, y: ArrayLike) -> LineFit:
    """Fit y (pointing, say) against x (AUC, say), one point a model.

    R² is the squared correlation of Pearson, which equals the coefficient of determination of the line.

    Args:
        x: (N,) NaN (None) where undefined.
        y: (N,) likewise.

    Returns:
        The fit; undefined below 3 points or where x or y does not vary.

    Example:
        >>> fit = fit_line([0.5, 0.6, 0.7], [0.1, 0.2, 0.4])
        >>> round(fit.r2, 4), round(fit.slope, 4)
        (0.9643, 1.5)
    """
    a, b = as_numbers(x), as_numbers(y)
    if a.ndim != 1 or a.shape != b.shape:
        raise MetricError("A line needs pairs.", expected=f"shape {a.shape}", got=b.shape)
    used = ~np.isnan(a - b)
    n = int(np.count_nonzero(used))
    residuals = np.full(a.shape, np.nan)
    reason = None
    if n < FEWEST_POINTS:
        reason = f"fewer than {FEWEST_POINTS} points"
    elif np.ptp(a[used]) == 0 or np.ptp(b[used]) == 0:
        reason = "no variance"
    if reason:
        return LineFit(None, None, None, residuals, n, a.size - n, reason)
    mean_x, mean_y = a[used].mean(), b[used].mean()
    dx, dy = a[used] - mean_x, b[used] - mean_y
    xx, xy, yy = float(dx @ dx), float(dx @ dy), float(dy @ dy)
    slope = xy / xx
    residuals[used] = dy - slope * dx
    return LineFit(xy * xy / (xx * yy), slope, float(mean_y - slope * mean_x), residuals, n, a.size - n)


def rank_correlation(x: ArrayLike, y: ArrayLike) -> float | None:
    """Correlate the ranks of two figures (Spearman), ties sharing their mean rank.

    Args:
        x: (N,) NaN (None) where undefined.
        y: (N,) likewise.

    Returns:
        The correlation; None below 3 points or where x or y does not vary.

    Example:
        >>> rank_correlation([0.5, 0.6, 0.7], [0.1, 0.2, 0.9])
        1.0
    """
    a, b = as_numbers(x), as_numbers(y)
    if a.ndim != 1 or a.shape != b.shape:
        raise MetricError("A correlation needs pairs.", expected=f"shape {a.shape}", got=b.shape)
    used = ~np.isnan(a - b)
    ranks = [_mean_ranks(values[used]) for values in (a, b)]
    if ranks[0].size < FEWEST_POINTS or any(np.ptp(r) == 0 for r in ranks):
        return None
    dx, dy = (r - r.mean() for r in ranks)
    return float(dx @ dy / np.sqrt((dx @ dx) * (dy @ dy)))


def _mean_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place], dtype=np.float64)
