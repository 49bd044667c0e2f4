"""A slow oracle of paired tests: every way of turning whole clusters, counted one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import pytest

Exact = Callable[[Sequence[float], Sequence[float], Sequence[str]], tuple[float, float]]


@pytest.fixture(scope="session")
def exact() -> Exact:
    return _exact


def _exact(first: Sequence[float], second: Sequence[float], clusters: Sequence[str]) -> tuple[float, float]:
    """Return the mean of the differences, and the share of all turns that are at least as far from none."""
    sums = dict.fromkeys(clusters, 0.0)
    for a, b, cluster in zip(first, second, clusters, strict=True):
        sums[cluster] += a - b
    observed = abs(sum(sums.values()))
    turned = [
        abs(sum(s * v for s, v in zip(signs, sums.values(), strict=True)))
        for signs in product((1, -1), repeat=len(sums))
    ]
    extreme = sum(value >= observed - 1e-12 for value in turned)
    return (sum(first) - sum(second)) / len(clusters), extreme / len(turned)
