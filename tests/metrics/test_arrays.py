"""The checks at the door, and the decorator that compiles kernels."""

import numba
import numpy as np
import pytest

from medground.errors import MetricError
from medground.metrics._arrays import as_map, as_mask, kernel


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_float_map_keeps_its_type(dtype):
    assert as_map(np.ones((2, 3), dtype)).dtype == dtype


@pytest.mark.parametrize("dtype", [np.float16, np.uint8, np.int64, bool, ">f4"])
def test_other_numbers_become_float64_without_loss(dtype):
    given = np.array([[0, 1], [1, 0]]).astype(dtype)
    array = as_map(given)
    assert array.dtype == np.dtype("f8")
    assert np.array_equal(array, given)


def test_a_transposed_map_becomes_contiguous():
    assert as_map(np.ones((4, 3)).T).flags.c_contiguous


@pytest.mark.parametrize("shape", [(3,), (2, 2, 3), (0, 4), ()])
def test_a_map_without_two_axes_is_refused(shape):
    with pytest.raises(MetricError, match="two axes") as caught:
        as_map(np.ones(shape))
    assert str(shape) in str(caught.value)


@pytest.mark.parametrize("values", [np.array([["a"]]), np.array([[1j]]), np.array([[object()]])])
def test_a_map_that_is_not_numeric_is_refused(values):
    with pytest.raises(MetricError, match="not numeric"):
        as_map(values)


def test_a_mask_of_integers_is_taken_when_it_holds_0_and_1():
    assert np.array_equal(as_mask([[0, 1]], (1, 2)), [[False, True]])


@pytest.mark.parametrize("values", [[[0, 255]], [[0.0, 1.0]], [[-1, 0]]])
def test_a_mask_of_other_values_is_refused(values):
    with pytest.raises(MetricError, match="not a mask") as caught:
        as_mask(values, (1, 2))
    assert "mask > 0" in str(caught.value)


def test_a_mask_with_three_channels_is_refused():
    with pytest.raises(MetricError, match="does not fit"):
        as_mask(np.zeros((2, 2, 3), bool), (2, 2))


def test_a_kernel_compiles_where_nothing_can_be_cached(monkeypatch):
    asked = []

    def njit(**options):
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "njit", njit)
    assert kernel(len)([1, 2]) == 2
    assert [options.get("cache") for options in asked] == [True, None]
