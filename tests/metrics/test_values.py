"""Numbers, or the reason why there is none."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from medground.errors import MetricError
from medground.metrics.values import Value, as_numbers, mean_curve, mean_defined, none_if_nan

NUMBERS = st.lists(st.one_of(st.none(), st.just(math.nan), st.floats(-1e6, 1e6)), max_size=30)


def test_a_value_is_a_number_or_has_a_reason():
    assert Value(0.0).number == 0.0
    assert math.isnan(Value(None, "no positives").number)


@pytest.mark.parametrize("arguments", [(None, None), (1.0, "why"), (math.nan, None)])
def test_a_value_is_never_both_nor_nan(arguments):
    with pytest.raises(MetricError):
        Value(*arguments)


def test_none_if_nan():
    assert none_if_nan(math.nan) is None
    assert none_if_nan(np.float32(0.5)) == 0.5
    assert type(none_if_nan(np.float64(1))) is float


def test_as_numbers_takes_none_and_arrays():
    assert np.isnan(as_numbers([None])[0])
    assert as_numbers(np.array([1, 2])).dtype == np.float64
    assert as_numbers(x for x in (1.0, None)).size == 2


@given(NUMBERS)
def test_mean_defined_equals_a_plain_loop(numbers):
    defined = [x for x in numbers if x is not None and not math.isnan(x)]
    value = mean_defined(numbers)
    assert (value.n, value.n_undefined) == (len(defined), len(numbers) - len(defined))
    if defined:
        assert value.value == pytest.approx(sum(defined) / len(defined), abs=1e-6)
        assert min(defined) - 1e-9 <= value.value <= max(defined) + 1e-9
    else:
        assert value.value is None
        assert value.reason == "no defined value"


@given(NUMBERS, st.randoms())
def test_mean_defined_does_not_see_the_order(numbers, random):
    shuffled = random.sample(numbers, len(numbers))
    assert mean_defined(shuffled) == mean_defined(numbers)


def test_mean_defined_rounds_once():
    assert mean_defined([1e16, 1.0, -1e16, 1.0]).value == 0.5


def test_mean_defined_gives_the_callers_reason():
    assert mean_defined([None], reason="no positives").reason == "no positives"


@given(st.lists(st.lists(st.one_of(st.just(math.nan), st.floats(0, 1)), min_size=3, max_size=3), min_size=1))
def test_mean_curve_equals_the_mean_of_every_column(curves):
    found = mean_curve(curves)
    for t in range(3):
        expected = mean_defined([curve[t] for curve in curves])
        assert found.mean[t] == pytest.approx(expected.number, nan_ok=True)
        assert (found.n[t], found.n_undefined[t]) == (expected.n, expected.n_undefined)


def test_mean_curve_of_nothing_is_undefined():
    found = mean_curve(np.empty((0, 2)))
    assert np.isnan(found.mean).all()
    assert found.n.tolist() == [0, 0]


def test_mean_curve_needs_two_axes():
    with pytest.raises(MetricError, match="two axes"):
        mean_curve([1.0, 2.0])
