"""Paired tests by patient: never a p of 0, the same as counting all exchanges by hand, and families that step down."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from medground.metrics.bootstrap import Clusters
from medground.metrics.classification import auc, average_precision
from medground.metrics.differences import REACHED, compare_aucs, correct
from medground.metrics.influence import of_auc, of_average_precision
from medground.metrics.permutation import AUC, AVERAGE_PRECISION, max_t, sign_flip, swap_calls, swap_ranks

DRAWS = 199


def test_a_drawn_p_is_never_zero() -> None:
    many = np.ones(40)
    assert sign_flip(many, draws=DRAWS) == (1 / (DRAWS + 1), 40)
    family = max_t(np.stack([many, many], axis=1), draws=DRAWS)
    assert family.p.tolist() == family.p_family.tolist() == [1 / (DRAWS + 1)] * 2


@pytest.mark.parametrize("metric", [AUC, AVERAGE_PRECISION])
def test_a_drawn_p_of_swaps_is_never_zero(metric: str) -> None:
    truth = np.repeat([1.0, 0.0], 30)
    right, by = truth + np.linspace(0, 0.5, 60), Clusters(np.arange(60), 60)
    p, differing = swap_ranks(truth, right, -right, by, metric, draws=DRAWS)  # type: ignore[arg-type]  # one of the two
    assert differing > 40
    assert p == 1 / (DRAWS + 1)
    calls = swap_calls(truth, truth, 1 - truth, by, draws=DRAWS)
    assert calls == (1 / (DRAWS + 1), 60)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_few_patients_are_enumerated(contributions: list[int]) -> None:
    h = np.array(contributions, dtype=float)
    sums = [abs(float(h @ np.array(signs))) for signs in product((1, -1), repeat=h.size)]
    expected = float(np.mean(np.array(sums) >= abs(h.sum()) * (1 - 1e-9)))
    assert sign_flip(h) == (pytest.approx(expected), np.count_nonzero(h))


def stepped_down(h: np.ndarray) -> list[float]:
    """Westfall and Young's step-down procedure, counted out over all flips."""
    scale = np.sqrt((h**2).sum(axis=0))
    observed = np.abs(h.sum(axis=0)) / scale
    flips = [np.abs(np.array(signs) @ h) / scale for signs in product((1, -1), repeat=len(h))]
    order = np.argsort(-observed, kind="stable").tolist()
    p, before = [0.0] * len(order), 0.0
    for place, member in enumerate(order):
        rest = order[place:]
        share = np.mean([max(flip[rest]) >= observed[member] * (1 - 1e-9) for flip in flips])
        p[member] = before = max(before, float(share))
    return p


def test_a_family_steps_down_and_never_up() -> None:
    few = np.r_[np.ones(3), np.zeros(10)]
    more = np.r_[np.zeros(3), np.ones(7), -1, -1, -0.5]
    h = np.stack([few, more], axis=1)
    family = max_t(h)
    assert family.p_family.tolist() == pytest.approx(stepped_down(h))
    # The rare class stands first and reaches a quarter at best: what stands behind it is never below it.
    assert family.statistic[0] > family.statistic[1]
    assert family.p[0] == 0.25
    assert family.p[1] < family.p_family[0] == family.p_family[1]


def studentised_by_hand(metric: str, truth: np.ndarray, one: np.ndarray, other: np.ndarray, by: Clusters) -> float:
    """Divide a difference by the root of its summed squared influences, patient by patient."""
    of = of_auc if metric == AUC else of_average_precision
    first, second = of(truth, one, by), of(truth, other, by)
    value = (first.value or 0.0) - (second.value or 0.0)
    size = sum((x - y) ** 2 for x, y in zip(first.influence, second.influence, strict=True)) ** 0.5
    return 0.0 if abs(value) < 1e-12 else value / max(size, 1e-12)


@pytest.mark.parametrize("seed", [3, 4, 5])
@pytest.mark.parametrize("metric", [AUC, AVERAGE_PRECISION])
def test_swaps_of_ranks_are_enumerated(metric: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.array([1.0, 1, 1, 0, 0, 0, 0])
    codes = np.array([0, 1, 2, 2, 3, 4, 4])
    first, second = rng.integers(0, 5, (2, 7)).astype(float)
    by = Clusters(codes, 5)

    def ranks(scores: np.ndarray) -> np.ndarray:
        return np.array([(scores < s).sum() + (scores == s).sum() / 2 for s in scores])

    measure = auc if metric == AUC else average_precision
    a, b = ranks(first), ranks(second)
    expected = {}
    for name in ("plain", "studentised"):

        def difference(swapped: np.ndarray, name: str = name) -> float:
            one, other = np.where(swapped, b, a), np.where(swapped, a, b)
            if name == "studentised":
                return studentised_by_hand(metric, truth, one, other, by)
            return (measure(truth, one).value or 0.0) - (measure(truth, other).value or 0.0)

        observed = abs(difference(np.zeros(7, dtype=bool)))
        swaps = [np.array(s)[codes] for s in product((False, True), repeat=5)]
        expected[name] = np.mean([abs(difference(s)) >= observed * (1 - 1e-9) - 1e-12 for s in swaps])
        p, _ = swap_ranks(truth, first, second, by, metric, difference=name)  # type: ignore[arg-type]  # one of the two
        assert p == pytest.approx(expected[name])
    assert swap_ranks(truth, first, second, by, metric)[0] == pytest.approx(max(expected.values()))


def test_either_difference_may_have_the_larger_p() -> None:
    larger = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = np.r_[np.ones(5), np.zeros(8)]
        first, second = rng.normal(size=(2, 13)) + truth
        by = Clusters(np.arange(13), 13)
        plain, studentised = (
            swap_ranks(truth, first, second, by, difference=name)[0]  # type: ignore[arg-type]  # one of the two
            for name in ("plain", "studentised")
        )
        assert swap_ranks(truth, first, second, by)[0] == max(plain, studentised)
        larger.add(np.sign(plain - studentised))
    assert {-1.0, 1.0} <= larger


def test_a_family_too_large_for_its_patients_says_so() -> None:
    by = Clusters(np.arange(8), 8)
    truth = np.repeat([1.0, 0.0], 4)
    found = [compare_aucs(truth, truth, np.zeros(8), by, seed=i, draws=199) for i in range(14)]
    least = 14 * found[0].finest
    assert least > REACHED
    assert {d.family for d in correct(found, "classes")} == {f"14 classes, Holm: no p can fall below {least:.2g}"}
