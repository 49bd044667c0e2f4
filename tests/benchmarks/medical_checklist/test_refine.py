"""Balancing: golden counts, exact fairness on what is kept, independence of order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from medground.benchmarks.medical_checklist import refine
from medground.errors import MetricError


def hits(gaps: np.ndarray) -> np.ndarray:
    return (np.sign(gaps) + 1).mean(axis=0) / 2


def test_golden_cells(golden: Any) -> None:
    held = golden.load("audit/refine.json")
    gaps = np.array(held["gaps"])
    ids = [f"i{k}" for k in range(len(gaps))]
    assert hits(gaps) == pytest.approx(held["accuracy_before"], abs=1e-9)
    for grid, wanted in held["grids"].items():
        keep = refine.mirror_cells(gaps, ids, int(grid), seed=5)
        assert keep.sum() == wanted["kept_total"]
        assert hits(gaps[keep]) == pytest.approx(held["accuracy_after"], abs=1e-9)
        where = refine.cells(gaps[keep], int(grid))
        table = np.zeros((int(grid), int(grid)), int)
        np.add.at(table, (where[:, 0], where[:, 1]), 1)
        if "cells_after" in wanted:
            assert table.tolist() == wanted["cells_after"]
        else:
            assert (table > 0).sum() == wanted["non_empty_cells_after"]
        assert np.array_equal(table, table[::-1, ::-1])


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=60),
    st.integers(1, 8),
    st.randoms(use_true_random=False),
)
def test_what_is_kept_is_fair_and_needs_no_order(gaps: list[tuple[float, float]], grid: int, random: Any) -> None:
    ids = [f"i{k}" for k in range(len(gaps))]
    keep = refine.mirror_cells(gaps, ids, grid, seed=1)
    order = list(range(len(gaps)))
    random.shuffle(order)
    again = refine.mirror_cells([gaps[i] for i in order], [ids[i] for i in order], grid, seed=1)
    assert {ids[i] for i in np.flatnonzero(keep)} == {ids[order[i]] for i in np.flatnonzero(again)}
    where = refine.cells([g for g, k in zip(gaps, keep, strict=True) if k] or np.zeros((0, 2)), grid)
    table = np.zeros((grid, grid), int)
    np.add.at(table, (where[:, 0], where[:, 1]), 1)
    assert np.array_equal(table, table[::-1, ::-1])


def test_reciprocal_balances_forms_within_contexts() -> None:
    rows = [("ribs", "left", "right"), ("ribs", "right", "left"), ("ribs", "left", "right"), ("spine", "left", "right")]
    keep = refine.reciprocal(
        ["T082"] * 4, [r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], list("abcd")
    )
    assert keep.tolist()[1] is True
    assert keep.sum() == 2
    assert not keep[3]


def test_gaps_outside_their_range_are_refused() -> None:
    with pytest.raises(MetricError, match=r"\[-1, 1\]"):
        refine.cells([[2.0, 0.0]])
    with pytest.raises(MetricError, match="distinct"):
        refine.balance(["g", "g"], [1, -1], ["a", "a"])


def test_scaling_keeps_signs() -> None:
    assert refine.scaled([-4, 2, 0]).tolist() == [-1, 0.5, 0]
    assert refine.scaled([]).tolist() == []
