"""The sweep equals counting threshold by threshold, to the last pixel; overlaps follow their formulas."""

import json

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from hypothesis.extra import numpy as hnp

from medground.errors import MetricError
from medground.metrics import _histogram
from medground.metrics.saliency import minmax
from medground.metrics.sweep import all_foreground, best_threshold, overlap, sweep, threshold_grid
from medground.metrics.values import mean_defined

SHAPE = (6, 7)
GRID = threshold_grid()
ANY_NUMBER = st.floats(width=32, allow_nan=True, allow_infinity=True)
ON_EDGES = st.integers(-3, 103).map(lambda k: k / 100)
NEAR_EDGES = ON_EDGES.flatmap(lambda t: st.sampled_from([t, np.nextafter(t, 9), np.nextafter(t, -9)]))
COMPARISONS = st.sampled_from([">=", ">"])
MASKS = hnp.arrays(bool, SHAPE)


def count(saliency, mask, thresholds, comparison):
    """One comparison of the whole map a threshold, as real numbers."""
    exact = np.asarray(saliency).astype(np.float64)
    chosen = [exact >= t if comparison == ">=" else exact > t for t in np.asarray(thresholds, np.float64)]
    return [c.sum() for c in chosen], [(c & mask).sum() for c in chosen]


def agrees(saliency, mask, thresholds, comparison):
    selected, inside = sweep(saliency, mask, thresholds, comparison)
    expected, expected_inside = count(saliency, mask, thresholds, comparison)
    assert selected.dtype == inside.dtype == np.int64
    assert selected.tolist() == expected
    assert inside.tolist() == expected_inside
    return True


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.data(), MASKS, COMPARISONS)
def test_equals_counting_on_the_grid(dtype, data, mask, comparison):
    width = 32 if dtype == np.float32 else 64
    elements = st.one_of(st.floats(0, 1, width=width), NEAR_EDGES.map(dtype).map(float))
    saliency = data.draw(hnp.arrays(dtype, SHAPE, elements=elements))
    assert agrees(saliency, mask, GRID, comparison)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.data(), MASKS, COMPARISONS)
def test_equals_counting_at_any_thresholds(dtype, data, mask, comparison):
    width = 32 if dtype == np.float32 else 64
    saliency = data.draw(hnp.arrays(dtype, SHAPE, elements=st.floats(width=width)))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    own = st.sampled_from(saliency[np.isfinite(saliency)].astype(float).tolist() or [0.0])
    thresholds = data.draw(st.lists(st.one_of(finite, own, ON_EDGES), min_size=1, max_size=20))
    assert agrees(saliency, mask, thresholds, comparison)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=40), MASKS, COMPARISONS)
def test_equals_counting_at_thresholds_that_crowd(exponents, mask, comparison):
    thresholds = [2.0**-k for k in exponents]
    saliency = np.resize([0.0, 1.0, *thresholds, *np.nextafter(thresholds, 0)], SHAPE)
    assert agrees(saliency, mask, thresholds, comparison)


@pytest.mark.parametrize("comparison", [">=", ">"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "thresholds",
    [
        np.arange(10, 10001) / 100000,  # MAVL
        np.geomspace(1e-12, 1, 200),  # no even grid parts these
        np.arange(257) / 256,
        [0.5],
        [0.0, 5e-324],
        [-1.7e308, 0.0, 1.7e308],
        [1e39, -1e39, 3.4028235e38],
        [0.7, 0.1, 0.7, -2.0, 3.0, 0.1],
    ],
)
def test_equals_counting_on_other_grids(thresholds, dtype, comparison):
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        own = np.asarray(thresholds)[:200].astype(dtype)
    values = np.concatenate([rng.random(300), own, [np.nan, np.inf, -np.inf, 0, -0.0, 1]]).astype(dtype)
    saliency = np.resize(np.concatenate([values, np.nextafter(values, dtype(0))]), (30, 40))
    assert agrees(saliency, rng.random((30, 40)) < 0.3, thresholds, comparison)


@pytest.mark.parametrize("height", [1, 63, 64, 65, 129])
def test_no_pixel_is_lost_between_blocks(height):
    rng = np.random.default_rng(height)
    saliency = rng.random((height, 64))
    assert height * 64 % _histogram.BLOCK or height == 64
    assert agrees(saliency, saliency > 0.6, GRID, ">=")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_smooth_and_flat_maps(dtype):
    rows, cols = np.mgrid[0:60, 0:50]
    smooth = minmax(np.exp(-((rows - 20) ** 2 + (cols - 31) ** 2) / 200)).astype(dtype)
    mask = (rows > 10) & (cols > 25)
    for saliency in (smooth, np.zeros_like(smooth), np.round(smooth, 2)):
        for comparison in (">=", ">"):
            assert agrees(saliency, mask, GRID, comparison)


def test_the_type_of_the_threshold_decides_between_float32_and_exact():
    literal = np.array([[np.float32(0.008)]])  # slightly above 0.008
    assert sweep(literal, [[True]], [0.008], ">").selected.tolist() == [1]
    assert sweep(literal, [[True]], [np.float32(0.008)], ">").selected.tolist() == [0]
    below = np.array([[np.float32(0.01)]])  # slightly below 0.01
    assert sweep(below, [[True]], [0.01], ">=").selected.tolist() == [0]
    assert sweep(below, [[True]], np.array([0.01], np.float32), ">=").selected.tolist() == [1]


@given(hnp.arrays(np.float32, SHAPE, elements=ANY_NUMBER), MASKS)
@example(np.full(SHAPE, np.nan, np.float32), np.ones(SHAPE, bool))
def test_flips_transposition_and_shuffles_change_nothing(saliency, mask):
    expected = sweep(saliency, mask, GRID)
    order = np.random.default_rng(0).permutation(saliency.size)
    for turn in (
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[:, ::-1],
        lambda a: a.ravel()[order].reshape(SHAPE),
    ):
        for found, wanted in zip(sweep(turn(saliency), turn(mask), GRID), expected, strict=True):
            assert np.array_equal(found, wanted)


@given(hnp.arrays(np.float64, SHAPE, elements=st.floats(0, 1)), MASKS, st.permutations(range(20)))
def test_the_order_of_thresholds_is_kept(saliency, mask, order):
    thresholds = threshold_grid(19)
    straight, mixed = sweep(saliency, mask, thresholds), sweep(saliency, mask, thresholds[order])
    assert np.array_equal(mixed.selected, straight.selected[order])
    assert np.array_equal(mixed.inside, straight.inside[order])


def test_published_flat_and_negative_maps(golden):
    folder = golden / "metrics/starred/T04_flat_and_nan"
    inputs = np.load(folder / "input.npz")
    expected = json.loads((folder / "expected.json").read_text())["expected"]
    mask = inputs["mask"]
    for name in ("zero", "equal"):
        xbench = sweep(minmax(inputs[name]), mask, GRID).selected
        assert xbench[0] == expected[name]["xbench"]["foreground_at_tau_0"]
        assert set(xbench[1:]) == {expected[name]["xbench"]["foreground_at_tau_0.01_and_above"]}
        strict = sweep(minmax(inputs[name]), mask, GRID, ">").selected
        assert set(strict) == {expected[name]["chexlocalize"]["foreground_at_any_threshold"]}
        raw = sweep(inputs[name], mask, [np.float32(0.008)], ">").selected
        assert raw[0] == expected[name]["medklip"]["foreground_above_0.008"]
    negative = expected["negative"]
    scaled = minmax(inputs["negative"])
    assert sweep(scaled, mask, [0.5]).selected[0] == negative["xbench_foreground_at_0.5"]
    assert sweep(scaled, mask, [0.5], ">").selected[0] == negative["chexlocalize_foreground_above_0.5"]
    raw = sweep(inputs["negative"], mask, [np.float32(0.008)], ">").selected
    assert raw[0] == negative["medklip_foreground_above_0.008"]


def test_grid_is_made_of_integers():
    assert GRID.tolist() == [k / 100 for k in range(101)]
    assert 0.29 in GRID
    assert 0.57 in GRID  # accumulated steps miss these
    with pytest.raises(MetricError, match="steps"):
        threshold_grid(0)


@pytest.mark.parametrize("thresholds", [[], [[0.5]], [np.nan], [0.1, np.inf], 0.5])
def test_thresholds_must_be_a_list_of_finite_numbers(thresholds):
    with pytest.raises(MetricError, match="finite"):
        sweep([[0.0]], [[True]], thresholds)


def test_an_unknown_comparison_is_refused():
    with pytest.raises(MetricError, match="comparison"):
        sweep([[0.0]], [[True]], [0.5], "<")


COUNTS = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))  # inside, only selected, only region


@given(st.lists(COUNTS, min_size=1, max_size=8), st.sampled_from(["zero", "undefined"]))
def test_overlap_equals_sets_of_pixels(parts, rule):
    for both, extra, missed in parts:
        prediction, region = set(range(both + extra)), set(range(both)) | {-1 - k for k in range(missed)}
        found = overlap(both + extra, both, both + missed, rule)
        shared, union = len(prediction & region), len(prediction | region)
        undefined = not region or (rule == "undefined" and not prediction)
        expected = {
            "dice": None if undefined else 2 * shared / (len(prediction) + len(region)),
            "iou": None if undefined else shared / union,
            "precision": shared / len(prediction) if region and prediction else None,
            "recall": shared / len(region) if region else None,
        }
        for name, value in expected.items():
            assert float(getattr(found, name)) == pytest.approx(np.nan if value is None else value, nan_ok=True)
        why = "empty region" if not region else "empty prediction" if undefined else None
        assert found.reasons().item() == why


@given(st.lists(COUNTS, min_size=1, max_size=8))
def test_overlap_takes_many_curves_at_once(parts):
    both, extra, missed = np.array(parts).T
    together = overlap((both + extra)[:, None], both[:, None], both + missed)
    single = [overlap(b + e, b, b + m).dice.item() for b, e, m in parts]
    np.testing.assert_array_equal(together.dice[:, 0], single)
    defined = ~np.isnan(together.dice)
    np.testing.assert_allclose(together.dice[defined], (2 * together.iou / (1 + together.iou))[defined], rtol=1e-12)


@pytest.mark.parametrize(
    ("selected", "inside", "area"),
    [([1], [2], 5), ([4], [3], 2), ([1], [-1], 2), ([1, 2], [1], 2), ([1, 2], [1, 2], [3, 3, 3])],
)
def test_counts_that_contradict_each_other_are_refused(selected, inside, area):
    with pytest.raises(MetricError):
        overlap(selected, inside, area)


def test_an_unknown_rule_for_empty_predictions_is_refused():
    with pytest.raises(MetricError, match="rule"):
        overlap([0], [0], 1, "one")


def test_an_empty_class_is_undefined_not_perfect(golden):
    folder = golden / "metrics/starred/T05_empty_class"
    inputs = np.load(folder / "input.npz")
    expected = json.loads((folder / "expected.json").read_text())["expected"]

    def score(name, rule):
        return [overlap(p.sum(), (p & g).sum(), g.sum(), rule) for p, g in zip(inputs[name], inputs["gt"], strict=True)]

    wrong = expected["wrong_prediction"]
    for measure in ("dice", "iou"):
        mean = mean_defined([float(getattr(s, measure)) for s in score("pred_wrong", "zero")])
        assert (mean.value, mean.n, mean.n_undefined) == (wrong[f"{measure}_mean"], wrong["n"], wrong["n_undefined"])
    published = [float(s.iou) for s in score("pred_wrong", "undefined")]
    assert [None if np.isnan(x) else x for x in published] == wrong["chexlocalize_true_positive_only"]
    empty = mean_defined([float(s.dice) for s in score("pred_empty", "zero")])
    assert (empty.value, empty.n) == (0.0, 1)
    assert mean_defined([float(s.iou) for s in score("pred_empty", "undefined")]).value is None


@given(st.integers(0, 50), st.integers(50, 80))
def test_all_foreground_is_the_score_of_a_full_mask(area, total):
    found, expected = all_foreground(area, total), overlap(total, area, area)
    assert float(found.dice) == pytest.approx(float(expected.dice), nan_ok=True)
    assert float(found.iou) == pytest.approx(float(expected.iou), nan_ok=True)
    assert found.recall == 1 or area == 0


def test_all_foreground_takes_many_regions():
    assert all_foreground([25, 0], 100).dice.tolist()[0] == 0.4
    assert all_foreground([25, 0], [100, 100]).empty_region.tolist() == [False, True]


@given(st.lists(st.one_of(st.just(np.nan), st.sampled_from([0.1, 0.2, 0.3])), min_size=1, max_size=9))
def test_best_threshold_is_the_first_of_the_largest(curve):
    defined = [(-value, index) for index, value in enumerate(curve) if not np.isnan(value)]
    assert best_threshold(curve) == (min(defined)[1] if defined else None)


def test_best_threshold_needs_one_axis():
    with pytest.raises(MetricError, match="one axis"):
        best_threshold([[0.1]])
