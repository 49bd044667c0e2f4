"""The decorator of compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a loop with numba: without the interpreter lock, and with numpy's rules for division.

    With ``NUMBA_DISABLE_JIT=1`` the plain function runs: slowly, with the same result.
    """
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return cast("F", numba.njit(cache=True, **options)(function))
    except RuntimeError:  # no folder to cache in, as in a read-only installation without a home
        return cast("F", numba.njit(**options)(function))
