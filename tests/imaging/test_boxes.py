import math

import pytest
from hypothesis import given, strategies as st

from medground.errors import RegionError
from medground.imaging.boxes import Box, checked_box, clipped


def test_published_width_survives_the_sum():
    box = Box.from_xywh(0.01, 0.01, 2.0, 2.0)
    assert int(box.x1 - box.x0) == 1  # (0.01 + 2) - 0.01 is a little less than 2
    assert (box.width, box.height) == (2.0, 2.0)
    assert box.pixels("size_cut") == (0, 0, 2, 2)


def test_a_width_that_was_never_published_is_a_difference_of_decimals():
    assert Box(0.01, 0.01, 0.01 + 2, 0.01 + 2).pixels("size_cut") == (0, 0, 2, 2)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("size_cut", (225, 547, 311, 626)), ("corner_cut", (225, 547, 311, 626)), ("rounded", (225, 547, 312, 626))],
)
def test_the_three_rules_on_a_published_box(rule, expected):
    assert Box.from_xywh(225.08, 547.02, 86.78, 79.19).pixels(rule) == expected


def test_size_cut_and_corner_cut_differ():
    box = Box.from_xywh(10.6, 20.6, 5.6, 5.6)
    assert box.pixels("size_cut") == (10, 20, 15, 25)
    assert box.pixels("corner_cut") == (10, 20, 16, 26)
    assert box.pixels("rounded") == (11, 21, 16, 26)


@given(st.floats(0, 1000), st.floats(0, 1000), st.floats(0.01, 500), st.floats(0.01, 500))
def test_rules_follow_their_published_formulas(x, y, w, h):
    box = Box.from_xywh(x, y, w, h)
    assert box.pixels("size_cut") == (int(x), int(y), int(x) + int(w), int(y) + int(h))
    assert box.pixels("corner_cut") == (int(x), int(y), int(x + w), int(y + h))
    assert box.pixels("rounded") == (round(x), round(y), round(x + w), round(y + h))


@given(st.integers(0, 100), st.integers(0, 100), st.integers(1, 100), st.integers(1, 100))
def test_all_rules_agree_on_whole_numbers(x, y, w, h):
    corners, published = Box(x, y, x + w, y + h), Box.from_xywh(x, y, w, h)
    found = {box.pixels(rule) for box in (corners, published) for rule in ("size_cut", "corner_cut", "rounded")}
    assert found == {(x, y, x + w, y + h)}


@pytest.mark.parametrize(
    "given_box",
    [
        (1, 2, 1, 5),
        (1, 5, 4, 5),
        (4, 2, 1, 5),
        (math.nan, 0, 1, 1),
        (0, 0, math.inf, 1),
        (1, 2, 3),
        (1, 2, 3, 4, 5),
        "abcd",
        None,
        (1, 2, None, 4),
        Box(0, 0, 2, 2, (math.nan, 2)),
    ],
    ids=str,
)
def test_degenerate_boxes_are_refused(given_box):
    with pytest.raises(RegionError, match="degenerate"):
        checked_box(given_box)


def test_a_box_inside_is_itself():
    box = Box(0, 0, 10, 10)
    assert clipped(box, (10, 10)) is box
    assert clipped(Box(-1e-9, 0, 10 + 1e-9, 10), (10, 10)) is not None


@pytest.mark.parametrize("box", [Box(10, 0, 12, 5), Box(-5, 0, 0, 5), Box(0, -5, 5, -1), Box(0, 11, 5, 12)])
def test_a_box_outside_has_no_part_inside(box):
    assert clipped(box, (10, 10)) is None


@given(
    st.floats(0, 9.9), st.floats(0, 9.9), st.floats(0.5, 30), st.floats(0.5, 30), st.booleans(),
    st.sampled_from(["size_cut", "corner_cut"]),
)  # fmt: skip
def test_what_overhangs_is_cut_where_drawing_would_end(x, y, w, h, published, rule):
    box = Box.from_xywh(x, y, w, h) if published else Box(x, y, x + w, y + h)
    x0, y0, x1, y1 = box.pixels(rule)
    inside = clipped(box, (10, 10))
    a0, b0, a1, b1 = inside.pixels(rule)
    if x + w > 10.1 and y + h > 10.1:
        assert (a0, b0, a1, b1) == (x0, y0, 10, 10)
    else:
        assert (a0, b0) == (x0, y0)
        assert abs(min(a1, 10) - min(x1, 10)) + abs(min(b1, 10) - min(y1, 10)) <= 2


def test_what_overhangs_on_the_left_keeps_its_right_edge():
    assert clipped(Box(-3, -2, 4, 5), (10, 10)).pixels() == (0, 0, 4, 5)
    assert clipped(Box.from_xywh(-3, -2, 7, 7), (10, 10)).pixels() == (0, 0, 4, 5)
