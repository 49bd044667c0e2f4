"""States of a map, and how it is scaled."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from medground.errors import MetricError
from medground.metrics.saliency import divide_by_max, fill_uncovered, minmax, state

SHAPE = (4, 5)
FINITE = st.floats(-1e300, 1e300)
MAPS = hnp.arrays(np.float64, SHAPE, elements=st.floats(-100, 100, width=32))
MASKS = hnp.arrays(bool, SHAPE).filter(np.any)


def test_states_of_the_published_edge_cases(golden):
    inputs = np.load(golden / "metrics/starred/T04_flat_and_nan/input.npz")
    names = ("zero", "equal", "nan", "negative")
    assert {name: state(inputs[name]) for name in names} == {
        "zero": "flat",
        "equal": "flat",
        "nan": "invalid",
        "negative": "ok",
    }


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_value_that_is_not_finite_makes_a_map_invalid(bad, dtype):
    saliency = np.array([[0, 1], [2, bad]], dtype)
    assert state(saliency) == "invalid"
    assert state(saliency, [[True, True], [True, False]]) == "ok"
    assert state(saliency, [[True, False], [False, False]]) == "flat"


def test_a_map_of_which_nothing_was_seen_is_invalid():
    assert state([[1.0, 2.0]], [[False, False]]) == "invalid"


@given(MAPS, MASKS)
def test_state_equals_its_definition(saliency, covered):
    seen = saliency[covered]
    assert state(saliency, covered) == ("flat" if (seen == seen[0]).all() else "ok")


@given(hnp.arrays(np.float64, SHAPE, elements=FINITE), MASKS)
def test_minmax_spans_0_to_1_and_keeps_the_order(saliency, covered):
    scaled = minmax(saliency, covered)
    seen = scaled[covered]
    assert (scaled[~covered] == 0).all()
    assert ((seen >= 0) & (seen <= 1)).all()
    order = np.argsort(saliency[covered], kind="stable")
    assert (np.diff(seen[order]) >= 0).all()
    if state(saliency, covered) == "ok":
        assert seen.min() == 0
        assert seen.max() == 1
    else:
        assert (seen == 0).all()


@given(MAPS)
def test_minmax_equals_the_formula_in_float64(saliency):
    low, high = saliency.min(), saliency.max()
    expected = (saliency - low) / (high - low) if high > low else np.zeros(SHAPE)
    assert np.array_equal(minmax(saliency), expected)
    single = saliency.astype(np.float32)
    assert np.array_equal(minmax(single), minmax(single.astype(np.float64)))


def test_minmax_does_not_overflow():
    assert minmax([[-1.7e308, 0.0, 1.7e308]]).tolist() == [[0.0, 0.5, 1.0]]


@given(MAPS)
def test_minmax_turns_with_the_map(saliency):
    scaled = minmax(saliency)
    assert np.array_equal(minmax(saliency.T), scaled.T)
    assert np.array_equal(minmax(saliency[::-1]), scaled[::-1])


def test_uncovered_pixels_get_what_was_asked_for():
    saliency, covered = [[np.nan, 2.0, 4.0]], [[False, True, True]]
    assert minmax(saliency, covered).tolist() == [[0.0, 0.0, 1.0]]
    assert np.isnan(minmax(saliency, covered, uncovered=np.nan)[0, 0])
    assert divide_by_max(saliency, covered, uncovered=-1.0).tolist() == [[-1.0, 0.5, 1.0]]
    assert fill_uncovered(saliency, covered).tolist() == [[2.0, 2.0, 4.0]]


@given(MAPS)
def test_divide_by_max_equals_the_formula(saliency):
    top = saliency.max()
    expected = saliency / top if top > 0 else saliency
    assert np.array_equal(divide_by_max(saliency), expected)


def test_a_map_without_a_positive_value_keeps_its_order():
    assert divide_by_max([[-2.0, -1.0]]).tolist() == [[-2.0, -1.0]]
    assert divide_by_max([[-2.0, 0.0]]).tolist() == [[-2.0, 0.0]]


def test_fill_uncovered_keeps_float32():
    filled = fill_uncovered(np.array([[np.nan, 0.1]], np.float32), [[False, True]])
    assert filled.dtype == np.float32
    assert filled.tolist() == [[np.float32(0.1), np.float32(0.1)]]


@pytest.mark.parametrize("scale", [minmax, divide_by_max, lambda m: fill_uncovered(m, np.ones((1, 3), bool))])
def test_an_invalid_map_cannot_be_scaled(scale):
    with pytest.raises(MetricError, match="invalid") as caught:
        scale([[np.nan, 0.0, np.inf]])
    assert "2 of 3" in str(caught.value)


def test_a_cover_of_another_shape_is_refused():
    with pytest.raises(MetricError, match="covered"):
        state([[0.0, 1.0]], [[True]])
