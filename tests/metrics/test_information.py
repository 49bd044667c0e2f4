import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from medground.errors import MetricError
from medground.metrics.information import decompose, optimum

NAMES = ("redundancy", "unique1", "unique2", "synergy")


def test_golden_distributions(golden):
    folder = golden / "gridvqa_x" / "explainers"
    expected = json.loads((folder / "partial_information.json").read_text())["expected"]
    with np.load(folder / "partial_information.npz") as tables:
        for name in tables.files:
            found = decompose(tables[name])
            for part in NAMES:
                assert getattr(found, part) == pytest.approx(expected[name]["value"][part], abs=2e-6), name


def entropy_of_y(q):
    pairs = q.sum(2, keepdims=True)
    held = q > 0
    return -(q[held] * np.log((q / np.where(pairs > 0, pairs, 1))[held])).sum()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_the_optimum_is_feasible_and_no_neighbour_beats_it(seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(18, 0.7)).reshape(3, 2, 3)
    q = optimum(p)
    assert q.sum(1) == pytest.approx(p.sum(1), abs=1e-7)
    assert q.sum(0) == pytest.approx(p.sum(0), abs=1e-7)
    best = entropy_of_y(q)
    assert best >= entropy_of_y(p) - 1e-6
    for _ in range(40):
        # Moving mass around a rectangle of one y keeps both marginals.
        i, j = rng.choice(3, 2, replace=False)
        y = rng.integers(3)
        move = rng.uniform(-1, 1) * min(q[i, 0, y], q[j, 1, y], q[i, 1, y], q[j, 0, y])
        other = q.copy()
        other[i, 0, y] -= move
        other[j, 1, y] -= move
        other[i, 1, y] += move
        other[j, 0, y] += move
        assert entropy_of_y(other) <= best + 1e-6


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_parts_add_up_and_swap_with_the_variables(seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.7, (3, 4, 3))
    counts[0, 0, 0] += 1
    found, swapped = decompose(counts), decompose(counts.swapaxes(0, 1))
    p = counts / counts.sum()
    whole = entropy_of_y(p.sum((0, 1))[None, None]) - entropy_of_y(p)
    assert sum(getattr(found, part) for part in NAMES) == pytest.approx(whole, abs=1e-6)
    assert found.unique1 == pytest.approx(swapped.unique2, abs=1e-6)
    assert found.synergy == pytest.approx(swapped.synergy, abs=1e-6)
    assert min(getattr(found, part) for part in NAMES) > -1e-6


@pytest.mark.parametrize("wrong", [np.zeros((2, 2, 2)), np.ones((2, 2)), -np.ones((2, 2, 2))])
def test_other_tables_are_refused(wrong):
    with pytest.raises(MetricError, match="three axes"):
        decompose(wrong)
