"""One test a property, over every comparison of two models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from medground.metrics.bootstrap import clusters
from medground.metrics.decide import DEFAULTS, decide_difference
from medground.metrics.differences import (
    Difference,
    compare_aucs,
    compare_average_precisions,
    compare_f1s,
    compare_macro_rankings,
    compare_macros,
    compare_means,
    correct,
)
from medground.metrics.influence import of_mean
from medground.metrics.spec import MetricSpec

KINDS = {
    "mean": lambda y, a, b, by: compare_means(a, b, by),
    "auc": compare_aucs,
    "average precision": compare_average_precisions,
    "f1": lambda y, a, b, by: compare_f1s(y, a > 0.5, b > 0.5, by),
    "macro mean": lambda y, a, b, by: compare_macros(
        [
            tuple(of_mean(np.where(half, x, np.nan), by) for x in (a, b))
            for half in (np.arange(y.size) % 2 == 0, np.arange(y.size) % 2 == 1)
        ]
    ),
    "macro auc": lambda y, a, b, by: compare_macro_rankings([(y, a, b), (1 - y, b, a)], by),
}
WORLDS = st.integers(0, 10_000)
every = pytest.mark.parametrize("kind", list(KINDS))
SPEC = MetricSpec("simulated", "Simulated")


def world(seed: int, n: int = 16) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Labels, two models' scores with ties, and patients of one to four items."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, n))
    labels = rng.integers(0, 2, n).astype(float)
    one, two = rng.integers(0, 6, (2, n)) / 5
    return labels, one, two, [f"p{k}" for k in rng.integers(0, max(1, n // 2 + 1), n)]


def compared(kind: str, y: np.ndarray, a: np.ndarray, b: np.ndarray, patients: list[str]) -> Difference:
    return KINDS[kind](y, a, b, clusters(patients))


@every
@given(WORLDS)
def test_exchanging_the_models_mirrors_the_interval_and_leaves_p(kind, seed):
    y, a, b, patients = world(seed)
    one, other = compared(kind, y, a, b, patients), compared(kind, y, b, a, patients)
    if one.value is None:
        assert other.value is None
        return
    assert other.value == pytest.approx(-one.value, abs=1e-12)
    assert other.p == pytest.approx(one.p)
    if one.low is not None:
        assert (other.low, other.high) == pytest.approx((-one.high, -one.low), abs=1e-9)
    said, back = (decide_difference(d, SPEC, DEFAULTS["rate"]) for d in (one, other))
    assert back.direction == -said.direction
    assert {said.word, back.word} in ({"better", "worse"}, {"equivalent"}, {"cannot be told"})


@every
@given(WORLDS)
def test_p_is_never_0_nor_below_what_so_many_patients_allow(kind, seed):
    found = compared(kind, *world(seed))
    if found.p is not None:
        assert 0 < found.p <= 1
        assert found.p >= found.finest - 1e-12
        assert found.p >= min(1.0, 2.0 ** (1 - found.differing)) - 1e-12


@every
@given(WORLDS)
def test_models_alike_differ_by_nothing_and_are_not_told_apart(kind, seed):
    y, a, _, patients = world(seed)
    if kind == "macro auc":
        return  # its second class turns the models round
    found = compared(kind, y, a, a, patients)
    if found.value is not None:
        assert (found.value, found.p) == (0, 1)
        assert found.low is None or found.low < 0 < found.high
        assert decide_difference(found, SPEC, DEFAULTS["rate"]).direction == 0


@every
@given(WORLDS)
def test_neither_order_nor_names_matter(kind, seed):
    y, a, b, patients = world(seed)
    if kind == "macro mean":
        return  # its classes are halves by position
    order = np.random.default_rng(seed).permutation(y.size)
    one = compared(kind, y, a, b, patients)
    other = compared(kind, y[order], a[order], b[order], [f"x{patients[i]}" for i in order])
    assert (one.value is None) == (other.value is None)
    if one.value is not None:
        assert other.value == pytest.approx(one.value, abs=1e-12)
        assert other.p == pytest.approx(one.p, abs=0.03)  # beyond 14 patients other flips are drawn


@every
@given(WORLDS)
def test_an_interval_of_a_difference_holds_it_and_stays_in_range(kind, seed):
    found = compared(kind, *world(seed))
    if found.low is not None:
        assert -1 <= found.low <= found.value + 1e-12
        assert found.value - 1e-12 <= found.high <= 1
        assert found.high > found.low
        assert found.low <= found.inner_low + 1e-12
        assert found.inner_high <= found.high + 1e-12


@given(WORLDS)
def test_a_family_only_raises_p_and_a_member_without_variation_stays_at_1(seed):
    rng = np.random.default_rng(seed)
    by = clusters([f"p{k}" for k in range(10)])
    made = [compare_means(rng.random(10), rng.random(10), by) for _ in range(3)]
    made.append(compare_means(np.ones(10), np.ones(10), by))
    found = correct(made, "members")
    assert all(d.p_family >= d.p for d in found)
    assert found[-1].p_family == 1
    ordered = sorted(found[:3], key=lambda d: d.p)
    assert [d.p_family for d in ordered] == sorted(d.p_family for d in ordered)


@every
@given(WORLDS, st.sampled_from([2, 10, 50]))
def test_nothing_is_ever_claimed_below_the_minimum(kind, seed, least):
    from dataclasses import replace

    found = compared(kind, *world(seed))
    said = decide_difference(found, SPEC, replace(DEFAULTS["rate"], least=least))
    if (
        not found.evidence
        or min(found.evidence) < min(2, least)
        or (len(found.evidence) == 1 and found.evidence[0] < least)
    ):
        assert said.word == "cannot be told"
        assert said.direction == 0
