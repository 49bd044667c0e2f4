import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from medground.errors import MetricError
from medground.metrics.relevance import binarise, otsu, overlap, relevance_mass, relevance_rank

shapes = hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=6)


@st.composite
def maps(draw, values=None):
    if values is None:
        values = st.integers(-3, 3).map(float)
    shape = draw(shapes)
    return draw(hnp.arrays(np.float64, shape, elements=values)), draw(hnp.arrays(bool, shape))


def test_golden_cases(golden):
    folder = golden / "gridvqa_x" / "metrics"
    expected = json.loads((folder / "expected.json").read_text())
    with np.load(folder / "cases.npz") as held:
        arrays = {name: held[name] for name in held.files}
    mass, iou = [], []
    for case in expected["cases"]:
        values, mask = arrays[f"attr_{case['index']:02d}"], arrays[f"mask_{case['index']:02d}"]
        mass.append(relevance_mass(values, mask))
        iou.append(overlap(values, mask))
        assert mass[-1] == pytest.approx(case["rma"], abs=1e-12), case["name"]
        for rule in ("otsu", "mean", "median", "top_k"):
            assert overlap(values, mask, rule) == pytest.approx(case[f"iou_{rule}"], abs=1e-7), case["name"]
        chosen = binarise(np.abs(values))
        assert chosen.sum() == case["n_selected_otsu"], case["name"]
        if case["otsu_threshold"] is not None:
            positive = np.abs(values)[np.abs(values) > 0]
            assert otsu(positive) == pytest.approx(case["otsu_threshold"], rel=1e-9)
        rank = relevance_rank(values, mask)
        if case["rank_accuracy"] is not None:
            assert rank == pytest.approx([case["rank_accuracy"]] * 3, abs=1e-12), case["name"]
        if case["rank_accuracy_bounds"] is None:
            assert np.isnan(rank.value)
        else:
            assert [rank.low, rank.high] == pytest.approx(case["rank_accuracy_bounds"], abs=1e-12)
            assert rank.low <= rank.value <= rank.high
    assert (np.mean(mass), np.std(mass)) == pytest.approx(tuple(expected["aggregate"]["rma"].values()))
    assert (np.mean(iou), np.std(iou)) == pytest.approx(tuple(expected["aggregate"]["iou_otsu"].values()))


@given(maps())
def test_mass_is_a_plain_sum(case):
    values, mask = case
    total = sum(abs(v) for v in values.flat)
    inside = sum(abs(v) for v, m in zip(values.flat, mask.flat, strict=True) if m)
    assert relevance_mass(values, mask) == pytest.approx(inside / total if total else 0.0)


@given(maps(), st.integers(0, 10**6))
def test_rank_bounds_hold_for_every_order_of_the_ties(case, seed):
    values, mask = case
    rank = relevance_rank(values, mask)
    k = int(mask.sum())
    if k == 0:
        assert np.isnan(rank.value)
        return
    rng = np.random.default_rng(seed)
    seen = []
    for _ in range(20):
        shuffled = rng.permutation(values.size)
        order = shuffled[np.argsort(-np.abs(values.ravel()[shuffled]), kind="stable")]
        seen.append(mask.ravel()[order[:k]].mean())
    assert rank.low - 1e-12 <= min(seen) <= max(seen) <= rank.high + 1e-12


@given(maps(st.floats(-5, 5, allow_subnormal=False)), st.floats(0.5, 4))
def test_scale_sign_and_orientation_change_nothing(case, factor):
    values, mask = case
    for metric in (relevance_mass, lambda v, m: relevance_rank(v, m).value, lambda v, m: overlap(v, m, "median")):
        expected = metric(values, mask)
        assert metric(-values, mask) == pytest.approx(expected, nan_ok=True)
        assert metric(values.T, mask.T) == pytest.approx(expected, nan_ok=True)
        assert metric(values[::-1], mask[::-1]) == pytest.approx(expected, nan_ok=True)
    assert relevance_mass(values * factor, mask) == pytest.approx(relevance_mass(values, mask), abs=1e-6)


def brute_otsu(values):
    """Try every bin centre; the variance between the parts, from the counts themselves."""
    tally, edges = np.histogram(values, 256)
    centres = (edges[:-1] + edges[1:]) / 2
    best, found = -1.0, 0.0
    for t in range(255):
        low, high = tally[: t + 1], tally[t + 1 :]
        mean_low = (low * centres[: t + 1]).sum() / low.sum()
        mean_high = (high * centres[t + 1 :]).sum() / high.sum()
        between = low.sum() * high.sum() * (mean_low - mean_high) ** 2
        if between > best * (1 + 1e-9):
            best, found = between, centres[t]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_otsu_parts_two_groups_best(seed):
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.normal(2, 0.5, 300), rng.normal(6, 1, 100)])
    assert otsu(values) == pytest.approx(brute_otsu(values), rel=1e-6)


def test_named_states():
    mask = np.array([True, False, False, False])
    assert relevance_mass(np.zeros(4), mask) == overlap(np.zeros(4), mask) == 0.0
    assert overlap(np.ones(4), mask) == 0.25
    assert relevance_rank(np.zeros(4), mask) == (0.25, 0.0, 1.0)
    broken = np.array([np.nan, 1, 1, 1])
    assert np.isnan(relevance_mass(broken, mask))
    assert np.isnan(overlap(broken, mask))
    assert np.isnan(relevance_rank(broken, mask).value)
    with pytest.raises(MetricError, match="fit the map"):
        relevance_mass(np.ones(3), mask)
    with pytest.raises(MetricError, match="numeric"):
        relevance_mass(np.array(["a"]), np.array([True]))
    with pytest.raises(MetricError, match="needs values"):
        otsu([])


def test_values_that_differ_in_their_last_digits_alone_count_as_equal():
    values = 0.3 + np.array([0, 3, 1, 2, 0]) * np.spacing(0.3)
    assert otsu(values) == values.min()
    assert binarise(values, "otsu").all()
