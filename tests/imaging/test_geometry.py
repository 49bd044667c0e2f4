import json
import math
from fractions import Fraction
from pathlib import Path

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from medground.errors import ImageError, RegionError
from medground.imaging.geometry import Geometry, apply, resize_pixels

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics"

sides = st.integers(1, 40)
sizes = st.tuples(sides, sides)


@st.composite
def geometries(draw):
    """Any geometry that the constructors make, or two of them one after the other."""
    source, side = draw(sizes), draw(st.integers(1, 30))
    first = draw(
        st.sampled_from(
            [
                Geometry.identity(source),
                Geometry.squash(source, draw(sizes)),
                Geometry.center_crop(source, side, draw(st.none() | st.integers(1, 30))),
                Geometry.center_crop(source, side, draw(sizes), "floor"),
                Geometry.letterbox(source, draw(sizes)),
                Geometry.letterbox(source, side, "floor"),
                Geometry.pad_square(source),
            ]
        )
    )
    return first.then(Geometry.crop(first.input, draw(st.integers(1, 30)))) if draw(st.booleans()) else first


def test_starred_box_scaling():
    expected = json.loads((GOLDEN / "starred" / "T10_box_scaling" / "expected.json").read_text())["expected"]
    height, width = expected["picture_hw"]
    box = expected["box_x0y0x1y1"]
    squash = Geometry.squash((width, height), (224, 224))
    assert squash.boxes_to_input(box)[0] == pytest.approx(expected["squash_224"])
    letterbox = Geometry.letterbox((width, height), 224)
    assert letterbox.boxes_to_input(box)[0] == pytest.approx(expected["letterbox_224"])
    assert list(letterbox.offset) == expected["letterbox_padding_left_top"]
    crop, wanted = Geometry.center_crop((width, height), 224), expected["short_side_224_centre_crop"]
    assert crop.boxes_to_input(box)[0] == pytest.approx(wanted["unclipped"])
    assert crop.boxes_to_input(box, clip=True)[0] == pytest.approx(wanted["clipped"])
    assert crop.share_kept(box) == pytest.approx(wanted["share_of_box_kept"])
    for geometry in (squash, letterbox, crop):
        back = geometry.boxes_to_source(geometry.boxes_to_input(box))[0]
        np.testing.assert_allclose(back, box, atol=1e-6)
    kept = crop.boxes_to_source(crop.boxes_to_input(box, clip=True))[0]
    np.testing.assert_allclose(kept, [100, 500, 300, 600], atol=1e-6)


@given(sizes, st.integers(1, 30), st.integers(1, 30))
def test_shortest_side_and_crop_follow_torchvision(source, side, crop):
    geometry = Geometry.center_crop(source, side, crop)
    width, height = source
    resized = (side, int(side * height / width)) if width <= height else (int(side * width / height), side)
    assert geometry.input == (crop, crop)
    for axis in (0, 1):
        assert geometry.scale[axis] == resized[axis] / source[axis]
        assert geometry.offset[axis] == -round((resized[axis] - crop) / 2.0)


def test_crop_offsets_round_or_floor():
    assert Geometry.crop((227, 225), 224).offset == (-2, 0)  # halves to the even neighbour
    assert Geometry.crop((227, 225), 224, "floor").offset == (-1, 0)
    assert Geometry.crop((10, 10), (14, 13)).offset == (2, 2)
    assert Geometry.center_crop((1000, 1500), 256).input == (256, 256)


@given(sizes, sizes, st.sampled_from(["round", "floor"]))
def test_letterbox_fits_and_centres(source, frame, rounding):
    geometry = Geometry.letterbox(source, frame, rounding)
    resized = [round(scale * side) for scale, side in zip(geometry.scale, source, strict=True)]
    ratio = min(Fraction(frame[axis], source[axis]) for axis in (0, 1))
    for axis in (0, 1):
        exact = source[axis] * ratio
        whole = round(float(exact)) if rounding == "round" else math.floor(exact)
        assert resized[axis] == max(1, whole)
        assert geometry.offset[axis] == (frame[axis] - resized[axis]) // 2
    assert resized[0] == frame[0] or resized[1] == frame[1]


def test_pad_square():
    geometry = Geometry.pad_square((30, 41))
    assert geometry.input == (41, 41)
    assert geometry.scale == (1, 1)
    assert geometry.offset == (5, 0)


def test_carzero_frame():
    """Longest side to 256, zero padding to a square, centre crop of 224: 16 pixels a side are not seen."""
    geometry = Geometry.letterbox((300, 200), 256, "floor").then(Geometry.crop((256, 256), 224))
    assert geometry.input == (224, 224)
    assert geometry.scale == pytest.approx((256 / 300, 170 / 200))
    assert geometry.offset == (-16, 43 - 16)
    ramp = np.tile(np.linspace(0, 1, 300, dtype=np.float32), (200, 1))
    seen = apply(geometry, ramp, "area")
    assert seen.shape == (224, 224)
    assert (seen[:27] == 0).all()
    assert (seen[197:] == 0).all()
    steps = apply(Geometry.crop((256, 256), 224), apply(Geometry.letterbox((300, 200), 256, "floor"), ramp, "area"))
    np.testing.assert_array_equal(seen, steps)
    covered = geometry.covered()
    assert covered.all(axis=0).sum() == np.count_nonzero((np.arange(300) + 0.5) * 256 / 300 // 1 % 240 >= 16)


def test_composition_needs_matching_frames():
    with pytest.raises(ImageError, match="follow") as caught:
        Geometry.identity((10, 20)).then(Geometry.identity((20, 10)))
    assert "10 x 20" in str(caught.value)
    assert "20 x 10" in str(caught.value)


@given(geometries(), hnp.arrays(float, (3, 2), elements=st.floats(0, 40)), st.floats(0.1, 9), st.floats(0.1, 9))
def test_boxes_go_there_and_back(geometry, corners, w, h):
    boxes = np.hstack([corners, corners + np.array([w, h])])
    moved = geometry.boxes_to_input(boxes)
    np.testing.assert_allclose(geometry.boxes_to_source(moved), boxes, atol=1e-6)
    np.testing.assert_allclose(moved[:, 2:] - moved[:, :2], np.multiply([w, h], geometry.scale)[None].repeat(3, 0))
    inside = geometry.boxes_to_input(boxes, clip=True)
    assert (inside >= 0).all()
    assert (inside <= np.tile(geometry.input, 2)).all()
    back = geometry.boxes_to_source(moved - 50, clip=True)
    assert (back >= 0).all()
    assert (back <= np.tile(geometry.source, 2)).all()
    assert 0 <= geometry.share_kept(boxes[0]) <= 1 + 1e-9


def test_composition_is_one_after_the_other():
    first, second = Geometry.center_crop((300, 500), 256), Geometry.squash((256, 256), (64, 32))
    boxes = [[10, 20, 200, 400], [0, 0, 300, 500]]
    np.testing.assert_allclose(
        first.then(second).boxes_to_input(boxes), second.boxes_to_input(first.boxes_to_input(boxes))
    )


def test_no_boxes_and_no_area():
    geometry = Geometry.identity((4, 4))
    assert geometry.boxes_to_input([]).shape == (0, 4)
    assert math.isnan(geometry.share_kept([1, 1, 1, 3]))


def falls_on(k, out, inside, axis, geometry, inverse):
    scale = Fraction(geometry.scale[axis]).limit_denominator(10**6)
    offset = Fraction(geometry.offset[axis]).limit_denominator(10**6)
    centre = k + Fraction(1, 2)
    place = math.floor(centre * scale + offset if inverse else (centre - offset) / scale)
    return place if 0 <= place < inside else None


@settings(max_examples=30)
@given(geometries(), st.integers(0, 2**32 - 1))
def test_masks_take_the_pixel_under_their_centre(geometry, seed):
    rng = np.random.default_rng(seed)
    for move, start, end, inverse in (
        (geometry.mask_to_input, geometry.source, geometry.input, False),
        (geometry.mask_to_source, geometry.input, geometry.source, True),
    ):
        mask = rng.random(start[::-1]) < 0.5
        moved = move(mask)
        assert moved.shape == end[::-1]
        for i in range(end[1]):
            for j in range(end[0]):
                row = falls_on(i, end[1], start[1], 1, geometry, inverse)
                column = falls_on(j, end[0], start[0], 0, geometry, inverse)
                expected = row is not None and column is not None and mask[row, column]
                assert moved[i, j] == expected


def test_masks_of_another_size_are_refused():
    geometry = Geometry.squash((4, 6), (3, 3))
    with pytest.raises(RegionError, match="fit"):
        geometry.mask_to_input(np.zeros((4, 6), bool))
    with pytest.raises(RegionError, match="fit"):
        geometry.mask_to_source(np.zeros((6, 4), bool))


@settings(max_examples=40)
@given(geometries(), sizes)
def test_covered_pixels_have_their_centre_in_the_input(geometry, size):
    covered = geometry.covered(size)
    assert covered.shape == size[::-1]
    for i in range(size[1]):
        for j in range(size[0]):
            seen = []
            for k, out, axis in ((j, size[0], 0), (i, size[1], 1)):
                scale = Fraction(geometry.scale[axis]).limit_denominator(10**6)
                place = Fraction(2 * k + 1, 2 * out) * geometry.source[axis] * scale + Fraction(geometry.offset[axis])
                seen.append(0 <= place < geometry.input[axis])
            assert covered[i, j] == all(seen)


def test_only_a_crop_hides_pixels():
    assert Geometry.squash((31, 17), (224, 224)).covered().all()
    assert Geometry.letterbox((31, 17), 224).covered().all()
    crop = Geometry.center_crop((20, 40), 20).covered()
    assert crop[10:30].all()
    assert not crop[:10].any()
    assert not crop[30:].any()


@given(geometries())
def test_json_round_trip_to_the_last_bit(geometry):
    assert Geometry.from_dict(json.loads(json.dumps(geometry.to_dict()))) == geometry


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"source": [1, 2], "input": [1, 2], "scale": [1, 1]},
        {"source": [1], "input": [1, 2], "scale": [1, 1], "offset": [0, 0]},
        {"source": [1, 2], "input": [1, 2], "scale": ["a", 1], "offset": [0, 0]},
        {"source": 3, "input": [1, 2], "scale": [1, 1], "offset": [0, 0]},
    ],
    ids=str,
)
def test_what_is_no_geometry(data):
    with pytest.raises(ImageError, match="geometry"):
        Geometry.from_dict(data)


@pytest.mark.parametrize(
    "values",
    [
        ((0, 4), (4, 4), (1, 1), (0, 0)),
        ((4, 4), (4, 0), (1, 1), (0, 0)),
        ((4, 4), (4, 4), (0, 1), (0, 0)),
        ((4, 4), (4, 4), (-1, 1), (0, 0)),
        ((4, 4), (4, 4), (math.nan, 1), (0, 0)),
        ((4, 4), (4, 4), (1, 1), (math.inf, 0)),
    ],
    ids=str,
)
def test_a_geometry_must_have_an_inverse(values):
    with pytest.raises(ImageError, match="inverted"):
        Geometry(*values)


def test_is_squash():
    assert Geometry.squash((7, 9), (224, 224)).is_squash
    assert Geometry.squash((7, 9), (32, 32)).then(Geometry.squash((32, 32), (224, 224))).is_squash
    assert not Geometry.letterbox((7, 9), 224).is_squash
    assert Geometry.letterbox((9, 9), 224).is_squash


@pytest.mark.parametrize("rule", ["bilinear", "bicubic", "lanczos", "area", "nearest"])
def test_resizing_keeps_a_flat_picture(rule):
    out = resize_pixels(np.full((20, 30), 0.25, np.float32), (11, 7), rule)
    assert out.shape == (7, 11)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, 0.25, atol=1e-6)
    out[0, 0] = 1  # it is the caller's own


def test_area_is_the_mean_of_what_is_covered():
    picture = np.arange(24, dtype=np.float32).reshape(4, 6)
    expected = picture.reshape(2, 2, 3, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(resize_pixels(picture, (3, 2), "area"), expected)


@given(sizes, st.integers(4, 20), st.integers(4, 20))
def test_apply_puts_pixels_where_boxes_go(source, side, crop):
    """Both coordinates of a ramp arrive where the geometry says."""
    width, height = (size + 8 for size in source)
    for geometry in (
        Geometry.center_crop((width, height), side, crop),
        Geometry.letterbox((width, height), (side, crop)),
        Geometry.squash((width, height), (side, crop)),
    ):
        for axis, ramp in enumerate(np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)):
            seen = apply(geometry, ramp.astype(np.float32), "bilinear", fill=-1)
            assert seen.shape == geometry.input[::-1]
            rows, columns = np.nonzero(seen != -1)
            place = (columns if axis == 0 else rows) + 0.5
            source_place = (place - geometry.offset[axis]) / geometry.scale[axis]
            slack = 1.5 * max(1, 1 / geometry.scale[axis])  # filters flatten a ramp at its ends
            assert np.abs(seen[rows, columns] - source_place).max() <= slack


def test_apply_fills_padding():
    seen = apply(Geometry.letterbox((10, 20), 20), np.ones((20, 10), np.float32), fill=0.5)
    assert (seen[:, :5] == 0.5).all()
    assert (seen[:, 5:15] == 1).all()
    assert (seen[:, 15:] == 0.5).all()


def test_apply_needs_the_right_picture_and_whole_offsets():
    with pytest.raises(ImageError, match="another picture"):
        apply(Geometry.identity((4, 6)), np.zeros((4, 6), np.float32))
    with pytest.raises(ImageError, match="whole"):
        apply(Geometry((4, 6), (4, 6), (1, 1), (0.5, 0)), np.zeros((6, 4), np.float32))
