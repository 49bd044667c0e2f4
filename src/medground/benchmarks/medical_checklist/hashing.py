"""Random numbers that depend on what they are for, never on what was drawn before."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_UINT = np.uint64


def number(*parts: object) -> int:
    """Return a number below 2**64 that depends on ``parts`` alone.

    Example:
        >>> number(0, "item", 3) == number(0, "item", 3), number(0, "item", 3) == number(1, "item", 3)
        (True, False)
    """
    return int.from_bytes(
        hashlib.blake2b("\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    )


def uniforms(key: int, marks: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Return one number in (0, 1) for each mark: the same for the same key and mark, whatever the other marks are.

    Args:
        key: whose draw it is (``number`` of seed, item and span).
        marks: (n,) one number for each candidate (``number`` of its name).
    """
    with np.errstate(over="ignore"):
        z = (marks ^ _UINT(key)) + _UINT(0x9E3779B97F4A7C15)
        z = (z ^ (z >> _UINT(30))) * _UINT(0xBF58476D1CE4E5B9)  # the finaliser of SplitMix64
        z = (z ^ (z >> _UINT(27))) * _UINT(0x94D049BB133111EB)
        z ^= z >> _UINT(31)
    return ((z >> _UINT(11)).astype(np.float64) + 0.5) / 2.0**53
