"""Shared by every metric: the kernel decorator and the checks that arrays pass on their way in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import MetricError

F = TypeVar("F", bound=Callable[..., Any])
Map = NDArray[np.float32] | NDArray[np.float64]
"""A map as the kernels take it: (height, width), C-contiguous, float32 or float64."""


def kernel(function: F) -> F:
    """Compile a loop with numba: without the interpreter lock, and with numpy's rules for division."""
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return cast("F", numba.njit(cache=True, **options)(function))
    except RuntimeError:  # no folder to cache in, as in a read-only installation without a home
        return cast("F", numba.njit(**options)(function))


def as_map(values: ArrayLike, name: str = "map") -> Map:
    """Return a saliency map for the kernels; float32 and float64 are kept, other numbers become float64.

    Raises:
        MetricError: not a numeric array of two axes with at least one pixel.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise MetricError(f"The {name} is not numeric.", expected="real numbers", got=f"dtype {array.dtype}")
    if array.ndim != 2 or array.size == 0:
        raise MetricError(f"The {name} must have two axes.", expected="(height, width)", got=f"shape {array.shape}")
    dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    return np.ascontiguousarray(array, dtype=dtype)


def as_mask(values: ArrayLike, shape: tuple[int, ...], name: str = "mask") -> NDArray[np.bool_]:
    """Return a C-contiguous mask of the given shape; integers are taken when they are 0 and 1 only.

    Raises:
        MetricError: another shape, or values that are neither boolean nor 0 and 1.
    """
    array = np.asarray(values)
    if array.shape != shape:
        raise MetricError(f"The {name} does not fit the map.", expected=f"shape {shape}", got=array.shape)
    if array.dtype != np.bool_ and (array.dtype.kind not in "iu" or not np.isin(array, (0, 1)).all()):
        raise MetricError(
            f"The {name} is not a mask.",
            expected="booleans, or the integers 0 and 1",
            got=f"dtype {array.dtype}",
            fix=f"threshold it first, for example {name} > 0",
        )
    return np.ascontiguousarray(array, dtype=np.bool_)
