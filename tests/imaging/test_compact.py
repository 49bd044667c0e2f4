"""The packed form gives back every bit, and refuses what it did not make."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from medground.imaging._compact import pack, pack_array, unpack, unpack_array
from medground.imaging._display import Displayed

floats = st.floats(0, 1, width=32) | st.sampled_from([0.0, -0.0, 1.0, float(np.float32(1e-45))])
pictures = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=floats)


def packed(pixels: np.ndarray, **others: object) -> bytes:
    return b"".join(pack(Displayed(pixels, **({"value_range": (0.0, 1.0), "steps": ()} | others))))  # type: ignore[arg-type]  # plain keywords


@given(pictures, st.tuples(*[st.floats(allow_nan=False)] * 2), st.lists(st.text(), max_size=4))
def test_what_comes_back_is_what_went_in(
    pixels: np.ndarray, value_range: tuple[float, float], steps: list[str]
) -> None:
    back = unpack(memoryview(packed(pixels, value_range=value_range, steps=tuple(steps))))
    assert back.pixels.dtype == np.float32
    np.testing.assert_array_equal(back.pixels.view(np.uint32), pixels.view(np.uint32))
    assert (back.value_range, back.steps) == (value_range, tuple(steps))
    assert [type(v) for v in back.value_range] == [float, float]


@pytest.mark.parametrize(
    ("greys", "width"), [(1, 1), (256, 1), (257, 2), (65_535, 2), (65_536, 2), (65_537, 4), (80_000, 4)]
)
def test_a_pixel_takes_as_few_bytes_as_its_number(greys: int, width: int) -> None:
    values = np.linspace(0, 1, greys, dtype=np.float64).astype(np.float32)
    assert len(np.unique(values)) == greys
    pixels = np.random.default_rng(0).permuted(np.resize(values, 100 * 1000)).reshape(100, 1000)
    data = packed(pixels)
    table = 4 * greys if width < 4 else 0
    assert width * pixels.size + table <= len(data) < width * pixels.size + table + 200
    np.testing.assert_array_equal(unpack(memoryview(data)).pixels, pixels)


def test_the_order_of_memory_does_not_matter() -> None:
    pixels = np.arange(12, dtype=np.float32).reshape(3, 4) / 12
    assert packed(np.asfortranarray(pixels)) == packed(pixels) == packed(np.repeat(pixels, 2, axis=1)[:, ::2])


@settings(max_examples=200)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=6))
def test_other_bytes_are_refused_or_are_a_picture(place: int, noise: bytes) -> None:
    whole = packed(np.linspace(0, 1, 40, dtype=np.float32).reshape(5, 8))
    place %= len(whole)
    for data in (whole[:place], noise, whole[:place] + noise + whole[place + len(noise) :]):
        try:
            assert isinstance(unpack(memoryview(data)), Displayed)
        except ValueError:
            continue


def test_a_code_beyond_the_table_is_refused_before_it_is_looked_up() -> None:
    data = bytearray(packed(np.zeros((2, 2), dtype=np.float32)))
    data[-1] = 200
    with pytest.raises(ValueError, match="beyond the table"):
        unpack(memoryview(data))


contents = arrays(np.float32, array_shapes(min_dims=1, max_dims=4, max_side=6), elements=st.floats(width=32))
levels = arrays(np.uint8, array_shapes(min_dims=1, max_dims=3, max_side=9))


@given(contents | levels, st.dictionaries(st.text(), st.integers() | st.lists(st.floats(allow_nan=False))))
def test_an_array_comes_back_to_the_last_bit(array: np.ndarray, about: dict[str, object]) -> None:
    back, facts = unpack_array(memoryview(b"".join(pack_array(array, about))))
    assert (back.dtype, back.shape, facts) == (array.dtype, array.shape, about)
    assert back.tobytes() == array.tobytes()


def test_three_scaled_copies_of_a_plane_take_its_bytes_once() -> None:
    plane = np.random.default_rng(0).integers(0, 256, (64, 64)).astype(np.uint8)
    scaled = np.stack([(plane / np.float32(255) - np.float32(m)) / np.float32(0.2) for m in (0.4, 0.5, 0.6)])
    data = b"".join(pack_array(scaled, {}))
    assert len(data) < plane.size + 3 * 4 * 256 + 200
    assert unpack_array(memoryview(data))[0].tobytes() == scaled.tobytes()
    other = np.stack([plane, plane[::-1], plane]).astype(np.float32)
    assert unpack_array(memoryview(b"".join(pack_array(other, {}))))[0].tobytes() == other.tobytes()


@settings(max_examples=200)
@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=6), st.booleans())
def test_other_bytes_are_refused_or_are_an_array(place: int, noise: bytes, coded: bool) -> None:
    array = np.linspace(0, 1, 48, dtype=np.float32).reshape((3, 4, 4) if coded else (48,))
    whole = b"".join(pack_array(array, {"size": [4, 4]}))
    place %= len(whole)
    for data in (whole[:place], noise, whole[:place] + noise + whole[place + len(noise) :]):
        try:
            assert isinstance(unpack_array(memoryview(data))[0], np.ndarray)
        except ValueError:
            continue
