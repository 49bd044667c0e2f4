"""A number, or the reason why there is none; and means that count what they leave out.

In arrays NaN stands for undefined. Outside arrays it is a `Value` without a number, so that no NaN is ever printed,
averaged by accident or counted as 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError

NOTHING_DEFINED = "no defined value"
EMPTY_REGION = "empty region"
EMPTY_PREDICTION = "empty prediction"
INVALID_MAP = "invalid map"
NO_ANNOTATION = "no annotated case"
NO_POSITIVES = "no positives"
NO_NEGATIVES = "no negatives"


@dataclass(frozen=True, slots=True)
class Value:
    """A figure and how it came about.

    Attributes:
        value: the figure, or None where it is undefined.
        reason: why it is undefined; None where it is defined.
        low: lower limit of an interval, where one was computed.
        high: upper limit.
        n: number of items behind the figure.
        n_undefined: items left out because their own value is undefined.
        skipped: bootstrap replicates without a value, where an interval was computed.

    Example:
        >>> Value(0.5, n=2)
        Value(value=0.5, reason=None, low=None, high=None, n=2, n_undefined=0, skipped=0)
        >>> Value(None, "no positives").value is None
        True
    """

    value: float | None
    reason: str | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    n_undefined: int = 0
    skipped: int = 0

    def __post_init__(self) -> None:
        if (self.value is None) != (self.reason is not None):
            raise MetricError(
                "A value is a number or has a reason for being undefined, never both.",
                got=f"value {self.value}, reason {self.reason!r}",
            )
        if self.value is not None and math.isnan(self.value):
            raise MetricError("An undefined value is None with a reason, not NaN.", got="value nan")

    @property
    def number(self) -> float:
        """The figure as arrays hold it: NaN where undefined."""
        return math.nan if self.value is None else self.value


def none_if_nan(number: float) -> float | None:
    """Return a Python float, or None for NaN (as JSON holds an undefined figure)."""
    return None if math.isnan(number) else float(number)


def as_numbers(values: ArrayLike | Iterable[float | None]) -> NDArray[np.float64]:
    """Return a float64 array with NaN for None."""
    given = values if isinstance(values, np.ndarray) else list(values)  # type: ignore[arg-type]  # ArrayLike's scalars do not iterate; list() says so
    return np.asarray(given, dtype=np.float64)


def mean_defined(values: ArrayLike | Iterable[float | None], reason: str = NOTHING_DEFINED) -> Value:
    """Average the defined values and count the others.

    The sum is correctly rounded, so the mean does not depend on the order of the items.

    Args:
        values: (N,) numbers; NaN or None where undefined.
        reason: what to say when no value is defined.

    Example:
        >>> mean_defined([1.0, None, 0.0])
        Value(value=0.5, reason=None, low=None, high=None, n=2, n_undefined=1, skipped=0)
    """
    numbers = as_numbers(values).ravel()
    defined = numbers[~np.isnan(numbers)]
    left_out = numbers.size - defined.size
    if not defined.size:
        return Value(None, reason, n_undefined=left_out)
    return Value(math.fsum(defined) / defined.size, n=defined.size, n_undefined=left_out)


@dataclass(frozen=True, slots=True)
class MeanCurve:
    """Means at T points: ``mean`` (NaN where nothing is defined), items ``n`` used and ``n_undefined``, each (T,)."""

    mean: NDArray[np.float64]
    n: NDArray[np.int64]
    n_undefined: NDArray[np.int64]


def mean_curve(curves: ArrayLike) -> MeanCurve:
    """Average N curves over T points (a Dice curve an item, say), point by point over the defined values.

    Args:
        curves: (N, T), NaN where undefined.

    Raises:
        MetricError: not two axes.
    """
    array = np.asarray(curves, dtype=np.float64)
    if array.ndim != 2:
        raise MetricError("Curves must have two axes.", expected="(items, points)", got=f"shape {array.shape}")
    defined = ~np.isnan(array)
    n = np.count_nonzero(defined, axis=0).astype(np.int64)
    total = np.where(defined, array, 0.0).sum(axis=0)
    mean = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return MeanCurve(mean, n, array.shape[0] - n)
