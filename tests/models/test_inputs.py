"""Preprocessing: geometry and pixels agree, and published details hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from medground.imaging.geometry import Geometry, apply
from medground.models.common.inputs import CLIP_MEAN, CLIP_STD, Preprocess, equalise_histogram, resize
from medground.models.radiology import carzero

PLAIN = {"mean": (0.0,) * 3, "std": (1.0,) * 3}
RULES = {
    "squash": Preprocess("squash", 32, "bilinear", **PLAIN),
    "center_crop": Preprocess("center_crop", 32, "bilinear", **PLAIN),
    "floor_crop": Preprocess("center_crop", 33, "bicubic", **PLAIN, rounding="floor"),
    "pad_square": Preprocess("pad_square", 32, "bilinear", **PLAIN, fill=(9, 9, 9)),
    "fit_then_crop": Preprocess("fit_then_crop", 28, "area", **PLAIN, resize_to=32),
}


@pytest.mark.parametrize("rule", ["squash", "center_crop", "floor_crop"])
@given(width=st.integers(20, 90), height=st.integers(20, 90), seed=st.integers(0, 99))
def test_pixels_are_where_the_geometry_says(rule: str, width: int, height: int, seed: int) -> None:
    """The oracle resizes, crops and pads in float by the geometry alone."""
    preprocess = RULES[rule]
    # Mid greys: at the ends, eight-bit bicubic cuts its overshoots after each pass, and a float oracle does not.
    pixels = np.random.default_rng(seed).integers(90, 166, (height, width)).astype(np.float32) / 255
    seen = preprocess.normalise(pixels)
    geometry = preprocess.geometry((width, height))
    expected = np.clip(apply(geometry, pixels, preprocess.resample), 0, 1)
    assert seen.shape == (3, preprocess.size, preprocess.size)
    # Eight-bit resizing rounds between and after its two passes.
    assert np.abs(seen[0] - expected).max() < 2.1 / 255
    assert np.array_equal(seen[0], seen[1])


@pytest.mark.parametrize("rule", list(RULES))
@given(width=st.integers(20, 90), height=st.integers(20, 90))
def test_a_bright_spot_is_found_where_the_geometry_sends_it(rule: str, width: int, height: int) -> None:
    preprocess, geometry = RULES[rule], RULES[rule].geometry((width, height))
    pixels = np.zeros((height, width), np.float32)
    box = [width // 2 - 5, height // 2 - 4, width // 2 + 4, height // 2 + 5]
    pixels[box[1] : box[3], box[0] : box[2]] = 1
    seen = preprocess.normalise(pixels)[0]
    weight = np.where(seen > 0.5, seen, 0)
    y, x = np.mgrid[: preprocess.size, : preprocess.size] + 0.5
    x0, y0, x1, y1 = geometry.boxes_to_input(box)[0]
    assert abs((weight * x).sum() / weight.sum() - (x0 + x1) / 2) < 1
    assert abs((weight * y).sum() / weight.sum() - (y0 + y1) / 2) < 1


def test_padding_takes_the_fill_of_each_channel() -> None:
    preprocess = Preprocess("pad_square", 16, "bicubic", CLIP_MEAN, CLIP_STD, fill=(122, 116, 104))
    seen = preprocess.normalise(np.ones((4, 16), np.float32))
    for channel, grey in enumerate((122, 116, 104)):
        expected = (grey / 255 - CLIP_MEAN[channel]) / CLIP_STD[channel]
        assert np.allclose(seen[channel, 0], expected, atol=1e-5)
        assert np.allclose(seen[channel, 8], (1 - CLIP_MEAN[channel]) / CLIP_STD[channel], atol=1e-5)


def test_the_rim_of_carzeros_frame_is_never_seen() -> None:
    geometry = carzero.PREPROCESS.geometry((256, 256))
    assert geometry == Geometry((256, 256), (224, 224), (1.0, 1.0), (-16.0, -16.0))
    assert geometry.covered().mean() == (224 / 256) ** 2


@given(
    width=st.integers(1, 40),
    height=st.integers(1, 40),
    out_w=st.integers(1, 50),
    out_h=st.integers(1, 50),
    seed=st.integers(0, 9),
)
def test_area_resizing_is_the_mean_of_the_covered_pixels(
    width: int, height: int, out_w: int, out_h: int, seed: int
) -> None:
    levels = np.random.default_rng(seed).integers(0, 256, (height, width)).astype(np.uint8)

    def weights(length: int, count: int) -> np.ndarray:
        edges = np.arange(count + 1) * length / count
        start, stop = edges[:-1, None], edges[1:, None]
        pixel = np.arange(length)
        covered = np.clip(np.minimum(stop, pixel + 1) - np.maximum(start, pixel), 0, None)
        return covered * count / length

    exact = weights(height, out_h) @ levels @ weights(width, out_w).T
    assert np.abs(resize(levels, (out_w, out_h), "area") - exact).max() <= 0.5 + 1e-6


def test_equalising_spreads_levels_and_keeps_their_order() -> None:
    levels = np.repeat(np.arange(100, 120, dtype=np.uint8), 50).reshape(20, 50)
    equal = equalise_histogram(levels)
    assert equal.max() == 255
    assert equal.min() < 20
    assert (np.diff(equal.reshape(-1).astype(int)) >= 0).all()


def test_description_holds_every_choice() -> None:
    a = Preprocess("squash", 32, "bilinear", **PLAIN)
    b = Preprocess("squash", 32, "bilinear", **PLAIN, equalise=True)
    assert a.describe() != b.describe()


def equalised_pixel_by_pixel(levels: np.ndarray) -> np.ndarray:
    """As scikit-image's ``equalize_hist`` does it, for every pixel; cut to 256 levels."""
    values = levels.astype(np.float64) / 255
    counts, edges = np.histogram(values, bins=256)
    shares = np.cumsum(counts) / counts.sum()
    return (np.interp(values, (edges[:-1] + edges[1:]) / 2, shares) * 255).astype(np.uint8)


@given(
    arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=40), elements=st.integers(0, 255))
    | st.integers(0, 255).map(lambda level: np.full((3, 5), level, np.uint8))
    | st.integers(0, 99).map(lambda s: np.random.default_rng(s).binomial(255, 0.3, (200, 90)).astype(np.uint8))
)
def test_equalising_by_table_equals_equalising_pixel_by_pixel(levels: np.ndarray) -> None:
    assert np.array_equal(equalise_histogram(levels), equalised_pixel_by_pixel(levels))


@pytest.mark.parametrize("rule", list(RULES))
def test_normalising_by_table_equals_arithmetic_to_the_last_bit(rule: str) -> None:
    preprocess = replace(RULES[rule], mean=CLIP_MEAN, std=CLIP_STD)
    pixels = np.random.default_rng(3).random((50, 61), dtype=np.float32)
    plane = preprocess._place(np.rint(pixels * 255).astype(np.uint8), preprocess.fill[0])
    expected = np.stack(
        [
            (plane.astype(np.float32) / 255 - np.float32(m)) / np.float32(s)
            for m, s in zip(CLIP_MEAN, CLIP_STD, strict=True)
        ]
    )
    assert preprocess.normalise(pixels).tobytes() == expected.tobytes()
