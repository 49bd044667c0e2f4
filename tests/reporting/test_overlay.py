"""Outlines and maps as they lie on a picture."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from medground.imaging.geometry import Geometry
from medground.imaging.regions import Region
from medground.reporting.overlay import FINEST, LONGEST, map_frame, outline, shown_map, shown_picture, trace

MASKS = arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(1, 9)))


def signed_area(loop: list[tuple[int, int]]) -> float:
    """Shoelace; positive where the loop runs clockwise with y down."""
    return sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(loop, loop[1:] + loop[:1], strict=True)) / 2


@given(MASKS)
def test_outlines_enclose_what_the_mask_holds(mask: np.ndarray) -> None:
    loops = trace(mask)
    assert sum(signed_area(loop) for loop in loops) == mask.sum()
    for loop in loops:
        steps = [(x1 - x0, y1 - y0) for (x0, y0), (x1, y1) in zip(loop, loop[1:] + loop[:1], strict=True)]
        assert all((dx == 0) != (dy == 0) for dx, dy in steps)
        assert all((a[0] == 0) != (b[0] == 0) for a, b in zip(steps, steps[1:] + steps[:1], strict=True))


@given(MASKS)
def test_outlines_fill_back_to_the_mask(mask: np.ndarray) -> None:
    inside = np.zeros(mask.shape, dtype=int)
    for loop in trace(mask):
        for y in range(mask.shape[0]):
            for x in range(mask.shape[1]):
                edges = zip(loop, loop[1:] + loop[:1], strict=True)
                left = [(a, b) for a, b in edges if a[0] == b[0] <= x and min(a[1], b[1]) <= y < max(a[1], b[1])]
                inside[y, x] += len(left)
    assert ((inside % 2 == 1) == mask).all()


def test_pixels_that_touch_at_a_corner_have_outlines_of_their_own() -> None:
    assert sorted(map(len, trace(np.eye(2, dtype=bool)))) == [4, 4]


def test_a_hole_runs_against_the_outline() -> None:
    mask = np.ones((3, 3), dtype=bool)
    mask[1, 1] = False
    assert sorted(map(signed_area, trace(mask))) == [-1, 9]


def test_boxes_and_polygons_keep_their_published_corners() -> None:
    region = Region.union(
        Region.from_boxes((100, 80), [(1.5, 2, 30, 40.25)]), Region.from_polygons((100, 80), [[(0, 0), (9, 0), (9, 9)]])
    )
    assert outline(region) == "M1.5 2L30 2L30 40.2L1.5 40.2ZM0 0L9 0L9 9Z"


def test_a_large_mask_is_traced_in_the_pixels_of_its_frame() -> None:
    mask = np.zeros((1024, 2048), dtype=bool)
    mask[256:512, 512:1024] = True
    numbers = [float(n) for n in re.findall(r"[\d.]+", outline(Region.from_mask(mask)))]
    assert (min(numbers[::2]), max(numbers[::2]), min(numbers[1::2]), max(numbers[1::2])) == (512, 1024, 256, 512)


def decoded(encoded: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded))))


def test_a_map_is_scaled_from_its_smallest_to_its_largest_value() -> None:
    found = shown_map(np.array([[2.0, 4.0], [3.0, 2.0]]))
    assert found is not None
    assert decoded(found.png).tolist() == [[0, 255], [128, 0]]
    assert (found.low, found.high, found.size) == (2, 4, (2, 2))


def test_a_fine_map_is_averaged_down() -> None:
    found = shown_map(np.random.default_rng(0).random((300, 200)))
    assert found is not None
    assert found.size == (FINEST, FINEST)
    assert decoded(found.png).shape == (FINEST, FINEST)


def test_flat_maps_are_black_and_invalid_ones_are_not_shown() -> None:
    flat = shown_map(np.full((3, 3), 7.0))
    assert flat is not None
    assert not decoded(flat.png).any()
    assert shown_map(np.array([[1.0, np.nan]])) is None
    assert shown_map(np.array([[1.0, np.inf]])) is None


@pytest.mark.parametrize(
    ("normalise", "tau", "expected"),
    [("minmax", 0.5, 127.5), ("max", 0.5, 0.0), ("none", 3.0, 127.5), ("none", 2.0, 0.0)],
)
def test_a_threshold_lies_where_the_protocol_puts_it(normalise: str, tau: float, expected: float) -> None:
    found = shown_map(np.array([[2.0, 4.0]]))
    assert found is not None
    assert found.cut(tau, normalise) == expected


def test_a_flat_map_is_selected_whole_or_not_at_all() -> None:
    flat = shown_map(np.full((2, 2), 0.5))
    assert flat is not None
    assert flat.cut(0.6, "none") > 255
    assert flat.cut(0.4, "none") < 0
    assert flat.cut(0.0, "minmax") == 0


def test_a_map_lies_on_the_model_s_input_frame() -> None:
    assert map_frame(Geometry.squash((200, 100), (50, 50))) == pytest.approx((0, 0, 200, 100))
    x, y, w, h = map_frame(Geometry.center_crop((200, 100), 50, 50))
    assert (x, y, w, h) == pytest.approx((50, 0, 100, 100))
    x, y, w, h = map_frame(Geometry.letterbox((200, 100), 100))
    assert (x, y, w, h) == pytest.approx((0, -50, 200, 200))


def test_a_picture_keeps_its_shape_and_its_greys() -> None:
    pixels = np.tile(np.linspace(0, 1, 1000, dtype=np.float32), (600, 1))
    shown = decoded(shown_picture(pixels))
    assert shown.shape[:2] == (round(600 * LONGEST / 1000), LONGEST)
    grey = shown[..., 0].mean(axis=0) / 255
    assert np.abs(grey - np.linspace(0, 1, LONGEST)).max() < 0.03
