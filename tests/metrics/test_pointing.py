"""The pointing game against a plain loop, published edge cases, and what must not change it."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

from medground.errors import MetricError
from medground.metrics.pointing import Peak, Pointing, dilate, peak, pointing

SHAPE = (5, 4)
FEW = hnp.arrays(np.float32, SHAPE, elements=st.sampled_from([-1.0, 0.0, 0.25, 1.0]))  # many ties
MASKS = hnp.arrays(bool, SHAPE)
RULES = ("first", "any", "expected")


def oracle(saliency, mask, rule, covered):
    """One loop over all pixels, in the order of reading."""
    allowed = [(r, c) for r in range(SHAPE[0]) for c in range(SHAPE[1]) if covered[r, c]]
    if not allowed:
        return Pointing(None, 0, 0, "invalid map")
    top = max(saliency[at] for at in allowed)
    tied = [at for at in allowed if saliency[at] == top]
    inside = [at for at in tied if mask[at]]
    if not mask.any():
        return Pointing(None, len(tied), 0, "empty region")
    hit = {"first": tied[0] in inside, "any": bool(inside), "expected": len(inside) / len(tied)}[rule]
    return Pointing(float(hit), len(tied), len(inside))


@given(FEW, MASKS, MASKS, st.sampled_from(RULES))
def test_equals_a_plain_loop(saliency, mask, covered, rule):
    assert pointing(saliency, mask, rule, covered) == oracle(saliency, mask, rule, covered)


@given(FEW, MASKS)
def test_the_peak_is_the_first_of_its_ties(saliency, covered):
    found = peak(saliency, covered)
    if not covered.any():
        assert found is None
        return
    seen = np.where(covered, saliency, -np.inf)
    assert (found.row, found.col) == np.unravel_index(np.argmax(seen), SHAPE)
    assert found.value == seen.max()
    assert found.ties == np.count_nonzero(seen == seen.max())


@given(FEW, MASKS, st.sampled_from(["any", "expected"]))
def test_flips_and_transposition_change_nothing_without_a_first(saliency, mask, rule):
    expected = pointing(saliency, mask, rule)
    assert pointing(saliency[::-1], mask[::-1], rule) == expected
    assert pointing(saliency[:, ::-1], mask[:, ::-1], rule) == expected
    assert pointing(saliency.T, mask.T, rule) == expected


@given(FEW, MASKS, st.randoms(use_true_random=False))
def test_shuffled_pixels_change_nothing_without_a_first(saliency, mask, random):
    order = random.sample(range(saliency.size), saliency.size)
    moved, moved_mask = (x.ravel()[order].reshape(SHAPE) for x in (saliency, mask))
    assert pointing(moved, moved_mask, "expected") == pointing(saliency, mask, "expected")


@given(hnp.arrays(np.float64, SHAPE, elements=st.floats(-5, 5), unique=True), MASKS)
def test_without_ties_the_rules_agree(saliency, mask):
    assert len({pointing(saliency, mask, rule) for rule in RULES}) == 1


@given(FEW, MASKS)
def test_any_is_never_below_expected_nor_expected_above_it(saliency, mask):
    hits = [pointing(saliency, mask, rule).hit for rule in RULES]
    if hits[0] is not None:
        assert max(hits) == hits[1]


def test_published_ties(golden):
    folder = golden / "metrics/starred/T01_ties"
    inputs = np.load(folder / "input.npz")
    expected = json.loads((folder / "expected.json").read_text())["expected"]
    for name in ("first_cell", "other_cell"):
        mask = inputs["constant_mask_first" if name == "first_cell" else "constant_mask_other"]
        for rule in RULES:
            found = pointing(inputs["constant"], mask, rule)
            assert found.hit == expected["constant"][f"mask_{name}"][rule]
            assert found.ties == expected["constant"]["tie_count"]
    two = expected["two_maxima_not_square"]
    top = peak(inputs["two_maxima"])
    assert [top.row, top.col] == two["argmax_first_row_col"]
    assert top.ties == two["tie_count"]
    for rule in RULES:
        assert pointing(inputs["two_maxima"], inputs["two_maxima_mask"], rule).hit == two[rule]
    block = expected["one_hot_cell_nearest_x16"]
    enlarged = np.kron(inputs["hot"], np.ones((16, 16), np.float32))
    top = peak(enlarged)
    assert ([top.row, top.col], top.ties) == (block["first_argmax_row_col"], block["tie_count"])
    for rule in RULES:
        found = pointing(enlarged, inputs["hot_nearest_mask"], rule)
        assert found.hit == block["mask_is_last_pixel_of_block"][rule]


def test_boxes_are_x_then_y(golden):
    folder = golden / "metrics/starred/T02_box_axes"
    saliency = np.load(folder / "input.npz")["map"]
    expected = json.loads((folder / "expected.json").read_text())["expected"]
    top = peak(saliency)
    assert [top.row, top.col] == expected["argmax_row_col"]
    for name in ("box_one_pixel", "box_larger"):
        x0, y0, x1, y1 = expected[name]["x0y0x1y1"]
        mask = np.zeros(saliency.shape, bool)
        mask[y0:y1, x0:x1] = True
        assert mask.sum() == expected[name]["mask_area"]
        assert pointing(saliency, mask).hit == expected[name]["hit"]


def test_flat_nan_and_negative_maps(golden):
    folder = golden / "metrics/starred/T04_flat_and_nan"
    inputs = np.load(folder / "input.npz")
    expected = json.loads((folder / "expected.json").read_text())["expected"]
    for name in ("zero", "equal"):
        assert pointing(inputs[name], inputs["mask"], "any").hit == expected[name]["medklip"]["pointing_any"]
    assert pointing(inputs["nan"], inputs["mask"]) == Pointing(None, 0, 0, "invalid map")
    assert peak(inputs["nan"]) is None
    top = peak(inputs["negative"])
    assert [top.row, top.col] == expected["negative"]["argmax_row_col"]
    assert pointing(inputs["negative"], inputs["mask"]).hit == expected["negative"]["hit"]


def test_an_empty_region_is_undefined_and_never_a_hit():
    assert pointing([[0.0, 1.0]], [[False, False]], "any") == Pointing(None, 1, 0, "empty region")


def test_infinity_makes_a_map_invalid():
    assert pointing([[0.0, np.inf]], [[False, True]]).hit is None
    assert pointing([[0.0, -np.inf]], [[True, False]]).hit is None


def test_a_pixel_that_was_never_seen_cannot_be_the_peak():
    assert peak([[np.nan, 1.0, 0.5]], [[False, True, True]]) == Peak(0, 1, 1.0, 1)


def test_an_unknown_rule_names_the_nearest():
    with pytest.raises(MetricError, match="tie rule") as caught:
        pointing([[0.0]], [[True]], "frist")
    assert "did you mean 'first'" in str(caught.value)


def test_a_mask_of_another_shape_is_refused():
    with pytest.raises(MetricError, match="does not fit"):
        pointing([[0.0, 1.0]], [[True]])


@given(MASKS, st.integers(0, 7))
def test_dilation_equals_looking_at_every_neighbour(mask, margin):
    expected = np.zeros(SHAPE, bool)
    for row, col in np.argwhere(mask):
        expected[max(row - margin, 0) : row + margin + 1, max(col - margin, 0) : col + margin + 1] = True
    assert np.array_equal(dilate(mask, margin), expected)


@given(MASKS, st.integers(0, 3), st.integers(0, 3))
def test_dilations_add_up(mask, first, second):
    assert np.array_equal(dilate(dilate(mask, first), second), dilate(mask, first + second))


def test_a_negative_margin_is_refused():
    with pytest.raises(MetricError, match="margin"):
        dilate([[True]], -1)


@given(FEW, MASKS, st.integers(1, 3))
def test_a_margin_never_loses_a_hit(saliency, mask, margin):
    before = pointing(saliency, mask, "expected").hit
    after = pointing(saliency, dilate(mask, margin), "expected").hit
    assert before is None or after >= before
