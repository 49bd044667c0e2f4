"""Random choices that hang on a seed and a name alone: no order, no worker and no other image changes them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

_STEPS = 1 << 53


def fraction(*names: object) -> float:
    """Return a number in ``(0, 1)`` that is uniform over names and the same for the same names, on every machine."""
    text = "\x1f".join(map(str, names)).encode()
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 11
    return (number + 0.5) / _STEPS


def between(low: int, high: int, *names: object) -> int:
    """Return a whole number of ``low..high``, both included."""
    return low + int(fraction(*names) * (high - low + 1))


def one_of(values: Sequence[T], *names: object) -> T:
    """Return one of the values; the order they stand in is part of the choice."""
    return values[int(fraction(*names) * len(values))]


def drawn(weights: Mapping[T, float], count: int, *names: object) -> list[T]:
    """Return up to ``count`` members without replacement, each as likely as its weight, whatever their order.

    Every member has an exponential waiting time of its own; the first to arrive are drawn.
    """
    waiting = sorted((-math.log(fraction(*names, member)) / w, member) for member, w in _positive(weights))
    return [member for _, member in waiting[:count]]


def shuffled(members: Iterable[T], *names: object) -> list[T]:
    """Return all members in an order of their own."""
    return drawn(dict.fromkeys(members, 1.0), 1 << 30, *names)


def _positive(weights: Mapping[T, float]) -> list[tuple[T, float]]:
    return [(member, weight) for member, weight in weights.items() if weight > 0]
