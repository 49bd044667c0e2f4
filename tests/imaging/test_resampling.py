import json
from fractions import Fraction
from pathlib import Path

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from medground.imaging import _resampling
from medground.imaging.geometry import Geometry, resample_map, upsample
from medground.imaging.picking import picked
from medground.imaging.regions import Box, Region

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics"
RULES = ["bilinear", "bilinear_corners", "nearest"]

values = st.floats(-10, 10, allow_subnormal=False)
grids = hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6), elements=values)
sizes = st.tuples(st.integers(1, 30), st.integers(1, 30))


def slow(grid, size, rule):
    """The textbook formula, one pixel at a time."""
    (width, height), (h, w) = size, grid.shape
    out = np.empty((height, width))
    for i in range(height):
        for j in range(width):
            if rule == "nearest":
                out[i, j] = grid[i * h // height, j * w // width]
                continue
            if rule == "bilinear":
                y, x = (i + 0.5) * h / height - 0.5, (j + 0.5) * w / width - 0.5
            else:
                y, x = i * (h - 1) / max(height - 1, 1), j * (w - 1) / max(width - 1, 1)
            y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
            y0, x0 = int(y), int(x)
            y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
            top = grid[y0, x0] * (1 - (x - x0)) + grid[y0, x1] * (x - x0)
            bottom = grid[y1, x0] * (1 - (x - x0)) + grid[y1, x1] * (x - x0)
            out[i, j] = top * (1 - (y - y0)) + bottom * (y - y0)
    return out


@pytest.mark.parametrize("rule", RULES)
@given(grids, sizes)
def test_against_the_slow_formula(rule, grid, size):
    out = upsample(grid, size, rule)
    assert out.dtype == np.float64
    np.testing.assert_allclose(out, slow(grid, size, rule), atol=1e-11)


def test_starred_alignment():
    expected = json.loads((GOLDEN / "starred" / "T03_resize_alignment" / "expected.json").read_text())["expected"]
    with np.load(GOLDEN / "starred" / "T03_resize_alignment" / "input.npz") as archive:
        (grid,) = (archive[name] for name in archive)
    names = {"nearest": "nearest", "bilinear": "bilinear_half_pixel", "bilinear_corners": "bilinear_align_corners"}
    for rule, name in names.items():
        out = upsample(grid, (6, 6), rule)
        np.testing.assert_allclose(out, expected[name]["values"], atol=1e-8)
        rows, columns = np.nonzero(out == out.max())
        assert [rows.mean(), columns.mean()] == expected[name]["centroid_of_maximum_row_col"]
        np.testing.assert_array_equal(upsample(grid[::-1], (6, 6), rule), out[::-1])


def test_torch_agrees():
    torch = pytest.importorskip("torch")
    grid = np.random.default_rng(0).random((14, 9))
    tensor = torch.from_numpy(grid)[None, None]
    for rule, options in (
        ("bilinear", {"mode": "bilinear", "align_corners": False}),
        ("bilinear_corners", {"mode": "bilinear", "align_corners": True}),
        ("nearest", {"mode": "nearest"}),
    ):
        theirs = torch.nn.functional.interpolate(tensor, size=(100, 224), **options)[0, 0].numpy()
        np.testing.assert_allclose(upsample(grid, (224, 100), rule), theirs, atol=1e-12)


def test_one_hot_cell_has_four_tied_maxima():
    expected = json.loads((GOLDEN / "starred" / "T01_ties" / "expected.json").read_text())["expected"]
    with np.load(GOLDEN / "starred" / "T01_ties" / "input.npz") as archive:
        hot = archive["hot"]
    for rule, name in (
        ("bilinear", "one_hot_cell_bilinear_half_pixel_to_224"),
        ("nearest", "one_hot_cell_nearest_x16"),
    ):
        out = upsample(hot, (224, 224), rule)
        assert int((out == out.max()).sum()) == expected[name]["tie_count"]
        assert list(np.unravel_index(out.argmax(), out.shape)) == expected[name]["first_argmax_row_col"]


@pytest.mark.parametrize("rule", ["bilinear", "bilinear_corners"])
@given(grids, sizes)
def test_every_mirroring_and_turning_is_exact(rule, grid, size):
    assume(rule == "bilinear" or min(size) > 1)  # a single row takes the first cell when corners are aligned
    out = upsample(grid, size, rule)
    np.testing.assert_array_equal(upsample(grid[::-1], size, rule), out[::-1])
    np.testing.assert_array_equal(upsample(grid[:, ::-1], size, rule), out[:, ::-1])
    np.testing.assert_array_equal(upsample(grid.T, size[::-1], rule), out.T)


@pytest.mark.parametrize("rule", RULES)
@given(values, hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=6), sizes)
def test_a_flat_map_stays_flat(rule, value, shape, size):
    assert (upsample(np.full(shape, value), size, rule) == value).all()


@pytest.mark.parametrize("rule", RULES)
@given(grids, sizes)
def test_no_value_leaves_the_range_of_the_map(rule, grid, size):
    out = upsample(grid, size, rule)
    assert grid.min() <= out.min()
    assert out.max() <= grid.max()


def test_two_equal_neighbours_are_an_even_plateau():
    grid = np.zeros((7, 7))
    grid[3, 2:4] = 0.1
    out = upsample(grid, (100, 100))
    row = out[50, :]
    between = row[(np.arange(100) + 0.5 > 2.5 * 100 / 7) & (np.arange(100) + 0.5 < 3.5 * 100 / 7)]
    assert np.ptp(between) == 0
    assert between.size > 10


def test_nan_spreads_to_what_reads_it_only():
    grid = np.ones((4, 4))
    grid[0, 0] = np.nan
    out = upsample(grid, (16, 16))
    assert np.isnan(out[:2, :2]).all()
    assert not np.isnan(out[6:, :]).any()
    assert not np.isnan(out[:, 6:]).any()


@given(grids, sizes)
@settings(max_examples=50)
def test_the_compiled_loop_equals_the_array_formula(grid, size):
    rows = _resampling.plain_taps(grid.shape[0], size[1], "bilinear")
    columns = _resampling.plain_taps(grid.shape[1], size[0], "bilinear")
    wide = _resampling.blend(grid[:, columns.first], grid[:, columns.second], *columns[2:4])
    above, below = rows.weight_first[:, None], rows.weight_second[:, None]
    tall = _resampling.blend(grid[rows.first], grid[rows.second], above, below)
    out = np.empty((size[1], size[0]))
    _resampling.cross(wide, tall, rows[:4], columns[:4], out)
    both = _resampling.blend(wide[rows.first], wide[rows.second], above, below)
    both += _resampling.blend(tall[:, columns.first], tall[:, columns.second], *columns[2:4])
    np.testing.assert_array_equal(out, both / 2)


@pytest.mark.parametrize("disabled", [False, True])
def test_without_a_compiler_the_values_are_the_same(disabled, monkeypatch):
    grid = np.random.default_rng(1).random((5, 7))
    expected = slow(grid, (40, 30), "bilinear")
    monkeypatch.setattr(_resampling.config, "DISABLE_JIT", disabled)
    np.testing.assert_allclose(upsample(grid, (40, 30)), expected, atol=1e-12)


def test_taps_are_shared_and_cannot_be_changed():
    taps = _resampling.plain_taps(3, 7, "bilinear")
    assert taps is _resampling.plain_taps(3, 7, "bilinear")
    with pytest.raises(ValueError, match="read-only"):
        taps.first[0] = 1
    np.testing.assert_array_equal(_resampling.plain_taps(3, 7, "nearest").first, picked(3, 7, "floor"))


def test_rational_recovers_quotients():
    assert _resampling.rational(224 / 1000) == Fraction(28, 125)
    assert _resampling.rational(-67.2) == Fraction(-336, 5)


def counted(saliency, mask, strict):
    """Dice at every threshold, from how many sorted values lie on its far side."""
    side, taus = "right" if strict else "left", np.arange(101) / 100
    selected = saliency.size - np.searchsorted(np.sort(saliency, axis=None), taus, side)
    inside = int(mask.sum()) - np.searchsorted(np.sort(saliency[mask]), taus, side)
    assert selected[37] == (saliency > 0.37 if strict else saliency >= 0.37).sum()
    return 2 * inside / (selected + int(mask.sum()))


def golden_items():
    with np.load(GOLDEN / "heatmaps" / "inputs.npz") as archive:
        maps = archive["maps"]
    for item in json.loads((GOLDEN / "heatmaps" / "expected.json").read_text())["items"]:
        boxes = [Box.from_xywh(*box) for box in item["boxes_xywh"]]
        yield item, maps[item["index"]], Region.from_boxes((1024, 1024), boxes)


@pytest.mark.parametrize(("protocol", "side", "strict"), [("xbench", 224, False), ("chexlocalize", 1024, True)])
def test_golden_curves_to_the_last_pixel(protocol, side, strict):
    for item, grid, region in golden_items():
        saliency = upsample(grid, (side, side))
        assert list(np.unravel_index(saliency.argmax(), saliency.shape)) == item[protocol]["argmax_row_col"]
        saliency = (saliency - saliency.min()) / (saliency.max() - saliency.min())
        half = saliency > 0.5 if strict else saliency >= 0.5
        assert int(half.sum()) == item[protocol]["foreground_at_0.5"]
        dice = counted(saliency, region.mask_at((side, side)), strict)
        np.testing.assert_allclose(dice, item[protocol]["dice"], atol=6e-9)  # they are printed with 8 digits


def test_golden_curves_of_the_raw_map():
    for item, grid, region in golden_items():
        dice = counted(upsample(grid, (224, 224), "nearest"), region.mask_at((224, 224)), True)
        np.testing.assert_allclose(dice, item["medklip"]["dice_raw_map"], atol=6e-9)


@pytest.mark.parametrize("rule", RULES)
@given(grids, sizes, sizes, sizes)
def test_for_a_squash_the_map_lies_as_if_enlarged_alone(rule, grid, source, frame, size):
    squash = Geometry.squash(source, frame)
    np.testing.assert_array_equal(resample_map(grid, squash, size, rule), upsample(grid, size, rule))


def slow_framed(grid, geometry, size, rule):
    """Where each pixel's centre falls, in fractions of whole numbers."""
    (width, height), (h, w) = size, grid.shape
    out = np.full((height, width), np.nan)
    for i in range(height):
        for j in range(width):
            place = []
            for k, out_side, axis in ((j, width, 0), (i, height, 1)):
                original = Fraction(2 * k + 1, 2 * out_side) * geometry.source[axis]
                scale = Fraction(geometry.scale[axis]).limit_denominator(10**6)
                place.append(original * scale + Fraction(geometry.offset[axis]))
            if any(not 0 <= p < side for p, side in zip(place, geometry.input, strict=True)):
                continue
            cells = []
            for p, side, count in zip(place, geometry.input, (w, h), strict=True):
                if rule == "nearest":
                    at = Fraction(int(p * count / side))
                elif rule == "bilinear":
                    at = p * count / side - Fraction(1, 2)
                else:
                    at = (p - Fraction(1, 2)) * (count - 1) / max(side - 1, 1)
                cells.append(min(max(at, Fraction(0)), Fraction(count - 1)))
            (x, y), x0, y0 = cells, int(cells[0]), int(cells[1])
            x1, y1 = min(x0 + 1, w - 1), min(y0 + 1, h - 1)
            fx, fy = float(x - x0), float(y - y0)
            top = grid[y0, x0] * (1 - fx) + grid[y0, x1] * fx
            bottom = grid[y1, x0] * (1 - fx) + grid[y1, x1] * fx
            out[i, j] = top * (1 - fy) + bottom * fy
    return out


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=40)
@given(grids, sizes, sizes, st.data())
def test_under_crop_and_padding_against_the_slow_formula(rule, grid, source, size, data):
    if data.draw(st.booleans()):
        geometry = Geometry.center_crop(source, data.draw(st.integers(2, 20)), data.draw(st.integers(2, 20)))
    else:
        geometry = Geometry.letterbox(source, data.draw(sizes))
    whole = [
        geometry.scale[axis] == geometry.input[axis] / geometry.source[axis] and geometry.offset[axis] == 0
        for axis in (0, 1)
    ]
    assume(rule == "bilinear" or not any(whole))  # there the floor and corner rules of enlarging alone hold
    expected = slow_framed(grid, geometry, size, rule)
    np.testing.assert_allclose(resample_map(grid, geometry, size, rule), expected, atol=1e-11)


@given(grids, sizes, st.integers(2, 20), sizes)
def test_what_a_crop_removed_is_nan_and_nothing_else(grid, source, side, size):
    geometry = Geometry.center_crop(source, side)
    for rule in RULES:
        np.testing.assert_array_equal(~np.isnan(resample_map(grid, geometry, size, rule)), geometry.covered(size))


def test_a_centred_crop_keeps_ties():
    hot = np.zeros((14, 14))
    hot[6:8, 6:8] = 1
    out = resample_map(hot, Geometry.center_crop((1000, 1414), 224))
    rows, columns = np.nonzero(out == np.nanmax(out))
    assert rows.mean() == 706.5
    assert columns.mean() == 499.5


def test_the_default_raster_is_the_picture():
    assert resample_map(np.eye(3), Geometry.letterbox((20, 31), 12)).shape == (31, 20)


@pytest.mark.parametrize("grid", [np.zeros(3), np.zeros((0, 3)), np.zeros((1, 2, 3)), 1.0])
def test_what_is_no_map(grid):
    from medground.errors import ImageError

    with pytest.raises(ImageError, match="shape"):
        upsample(grid, (4, 4))


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
    st.tuples(st.integers(1, 60), st.integers(1, 60)),
    st.sampled_from(RULES),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([None, np.nan, np.inf, -np.inf]),
)
def test_a_large_map_is_read_at_once_to_the_same_bits(seed, shape, size, rule, dtype, hole):
    rng = np.random.default_rng(seed)
    grid = rng.normal(size=shape).astype(dtype)
    if hole is not None:
        grid[rng.random(shape) < 0.05] = hole
    rows, columns = _resampling.plain_taps(shape[0], size[0], rule), _resampling.plain_taps(shape[1], size[1], rule)
    out = np.empty(size)
    with np.errstate(all="ignore"):
        expected = _resampling._in_two_ways(grid.astype(np.float64), rows, columns)
        _resampling.at_once(grid, rows[:4], columns[:4], out)
    assert np.array_equal(out, expected, equal_nan=True)
