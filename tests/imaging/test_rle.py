import hashlib
import itertools
import json
from pathlib import Path

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from medground.errors import RegionError
from medground.imaging import rle

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics"
EXPECTED = json.loads((GOLDEN / "rle" / "expected.json").read_text())

masks = hnp.arrays(bool, hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12))


def slow_counts(mask):
    """COCO counts by walking down every column."""
    pixels = [bool(mask[row, column]) for column in range(mask.shape[1]) for row in range(mask.shape[0])]
    runs = [(value, len(list(run))) for value, run in itertools.groupby(pixels)]
    return ([0] if runs[0][0] else []) + [length for _, length in runs]


def size_of(mask):
    return mask.shape[1], mask.shape[0]


@pytest.fixture(scope="module")
def golden_masks():
    with np.load(GOLDEN / "rle" / "inputs.npz") as archive:
        return {name: archive[name].astype(bool) for name in archive}


@pytest.mark.parametrize("item", EXPECTED["masks"], ids=lambda item: item["name"])
def test_golden_masks_in_every_code(item, golden_masks):
    mask, (height, width) = golden_masks[item["mask"]], item["size_hw"]
    size, counts = (width, height), np.array(item["coco_runs"])
    assert rle.counts_from_mask(mask).tolist() == item["coco_runs"]
    assert rle.string_from_counts(counts) == item["coco_counts"]
    assert rle.counts_from_string(item["coco_counts"]).tolist() == item["coco_runs"]
    assert rle.siim_from_counts(counts) == item["siim_relative"]
    assert rle.counts_from_siim(item["siim_relative"], size).tolist() == item["coco_runs"]
    for order in ("row", "column"):
        pairs = item[f"flat_pairs_{order}_major"]
        assert rle.pairs_from_counts(counts, size, order) == pairs
        assert rle.counts_from_pairs(pairs, size, order).tolist() == item["coco_runs"]
    assert rle.area(counts) == item["area"]
    box = item["bbox_x0y0x1y1"]
    assert rle.bbox(counts, height) == (tuple(box) if box else None)
    decoded = rle.mask_from_counts(counts, size)
    np.testing.assert_array_equal(decoded, mask)
    packed = np.packbits(np.ascontiguousarray(decoded)).tobytes()
    assert hashlib.sha256(packed).hexdigest() == item["mask_sha256_packbits_row_major"]


def test_starred_column_order():
    expected = json.loads((GOLDEN / "starred" / "T09_rle_order" / "expected.json").read_text())["expected"]
    mask, (height, width) = np.array(expected["mask"], dtype=bool), expected["size"]
    counts = rle.counts_from_mask(mask)
    assert counts.tolist() == expected["uncompressed_counts"] != expected["wrong_row_major_counts"]
    assert rle.string_from_counts(counts) == expected["compressed_counts"]
    assert rle.siim_from_counts(counts) == expected["siim_relative"]
    assert rle.pairs_from_counts(counts, (width, height), "row") == expected["flat_pairs_row_major"]
    assert rle.pairs_from_counts(counts, (width, height), "column") == expected["flat_pairs_column_major"]


def test_siim_gaps_are_relative_and_columns_come_first():
    mask = rle.mask_from_counts(rle.counts_from_siim("1 2 3 1", (4, 4)), (4, 4))
    assert list(zip(*np.nonzero(mask), strict=True)) == [(1, 0), (2, 0), (2, 1)]


@pytest.mark.parametrize("code", [" -1", "-1", "-1 "])
def test_siim_empty_codes_with_blanks(code):
    assert rle.counts_from_siim(code, (4, 3)).tolist() == [12]


@given(masks)
@example(np.zeros((1, 1), bool))
@example(np.ones((3, 2), bool))
def test_round_trips_and_the_slow_oracle(mask):
    size, counts = size_of(mask), rle.counts_from_mask(mask)
    assert counts.tolist() == slow_counts(mask)
    np.testing.assert_array_equal(rle.mask_from_counts(counts, size), mask)
    assert rle.counts_from_string(rle.string_from_counts(counts)).tolist() == counts.tolist()
    assert rle.counts_from_siim(rle.siim_from_counts(counts), size).tolist() == counts.tolist()
    for order in ("row", "column"):
        pairs = rle.pairs_from_counts(counts, size, order)
        assert rle.counts_from_pairs(pairs, size, order).tolist() == counts.tolist()
        assert rle.counts_from_pairs(" ".join(map(str, pairs)), size, order).tolist() == counts.tolist()
    assert rle.area(counts) == int(mask.sum())
    rows, columns = np.nonzero(mask)
    box = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1) if rows.size else None
    assert rle.bbox(counts, mask.shape[0]) == box


@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")  # pycocotools and numpy 2
@given(masks)
def test_pycocotools_agrees(mask):
    coco = pytest.importorskip("pycocotools.mask")
    theirs = coco.encode(np.asfortranarray(mask.astype(np.uint8)))
    counts = rle.counts_from_mask(mask)
    assert rle.string_from_counts(counts).encode() == theirs["counts"]
    ours = {"size": list(mask.shape), "counts": rle.string_from_counts(counts).encode()}
    np.testing.assert_array_equal(coco.decode(ours), mask)
    assert coco.area(theirs) == rle.area(counts)


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=8))
def test_compressed_strings_hold_any_numbers(numbers):
    assert rle.counts_from_string(rle.string_from_counts(numbers)).tolist() == numbers


@given(masks, st.randoms())
def test_runs_of_pairs_may_come_in_any_sequence(mask, random):
    size, counts = size_of(mask), rle.counts_from_mask(mask)
    pairs = rle.pairs_from_counts(counts, size, "column")
    runs = [pairs[i : i + 2] for i in range(0, len(pairs), 2)]
    random.shuffle(runs)
    assert rle.counts_from_pairs([n for run in runs for n in run], size, "column").tolist() == counts.tolist()


def test_touching_runs_are_joined():
    assert rle.counts_from_pairs([0, 2, 2, 3], (2, 4), "column").tolist() == [0, 5, 3]
    assert rle.counts_from_siim("1 2 0 3", (2, 4)).tolist() == [1, 5, 2]


@pytest.mark.parametrize(
    ("counts", "canonical"),
    [([0, 0, 6], [6]), ([2, 0, 1, 3], [3, 3]), ([0, 2, 0, 4], [0, 6]), ([1, 5, 0], [1, 5]), ([0, 6, 0, 0], [0, 6])],
)
def test_empty_runs_of_coco_counts_are_merged_away(counts, canonical):
    assert rle.checked_counts(counts, (2, 3)).tolist() == canonical


@pytest.mark.parametrize("item", EXPECTED["must_fail_or_warn"], ids=lambda item: item["what"])
def test_golden_inputs_that_must_fail(item, golden_masks):
    def read():
        height, width = item.get("size_hw") or item.get("size") or item["sizes"][1]
        if item["format"] == "siim":
            return rle.counts_from_siim(item["rle"], (width, height))
        if item["format"] == "coco_runs":
            return rle.mask_from_counts(item["counts"], (width, height))
        if item["format"] == "flat_pairs":
            return rle.counts_from_pairs(item["pairs"], (width, height), "row")
        return rle.mask_from_counts(rle.counts_from_mask(golden_masks[item["masks"][0]]), (width, height))

    with pytest.raises(RegionError):
        read()


@pytest.mark.parametrize("size", [(0, 4), (4, -1), (4,), (4, 4, 4), (2.5, 4), ("a", 4), (float("inf"), 1), 7, None])
def test_unusable_sizes(size):
    with pytest.raises(RegionError, match="size"):
        rle.checked_size(size)


def test_a_huge_size_is_refused_before_it_is_allocated():
    with pytest.raises(RegionError, match="too large"):
        rle.mask_from_counts([10**12], (10**6, 10**6))


@pytest.mark.parametrize(
    "counts",
    [
        [],
        [-1, 13],
        [1.5, 10.5],
        ["1", "x"],
        [None, 12],
        [[1, 11]],
        [float("nan"), 12],
        [float("inf")],
        np.ones((2, 6)),
        np.array([0.5, 11.5]),
        [2**63, 2**63, 12],
        [2**41, -(2**41) + 12],
        13,
    ],
    ids=str,
)
def test_counts_that_are_no_counts(counts):
    with pytest.raises(RegionError):
        rle.checked_counts(counts, (3, 4))


def test_whole_floats_and_numpy_integers_are_numbers():
    assert rle.checked_counts([2.0, 10.0], (3, 4)).tolist() == [2, 10]
    assert rle.checked_counts(np.array([2, 10], np.uint8), (3, 4)).tolist() == [2, 10]


@pytest.mark.parametrize("text", ["", "P", "PPP", "0~", "1 2", "\u00e9", "p", "o" * 40 + "0", b"\xff", b""])
def test_strings_that_are_no_code(text):
    with pytest.raises(RegionError):
        rle.counts_from_string(text)


@settings(max_examples=300)
@given(st.text(st.characters(min_codepoint=40, max_codepoint=120), max_size=60))
def test_any_string_is_counts_or_a_region_error(text):
    try:
        counts = rle.counts_from_string(text)
        rle.mask_from_counts(counts, (5, 7))
    except RegionError:
        return
    assert int(counts.sum()) == 35


@pytest.mark.parametrize("code", ["", "1", "1 2 3", "1 x", "3 0 2 1", "-2 1", "14 5", "1 2.5", "1 -2", "1e3 2"])
def test_siim_codes_that_are_malformed(code):
    with pytest.raises(RegionError):
        rle.counts_from_siim(code, (4, 4))


@pytest.mark.parametrize("pairs", [[1], [1, 4, 3, 2], [0, 0], [-1, 3], [14, 5], "1 2 x 3", [1.5, 2], [2**50, 1]])
@pytest.mark.parametrize("order", ["row", "column"])
def test_flat_pairs_that_are_malformed(pairs, order):
    with pytest.raises(RegionError):
        rle.counts_from_pairs(pairs, (4, 4), order)


@settings(max_examples=200)
@given(st.lists(st.integers(-3, 20) | st.integers(), max_size=8))
def test_any_numbers_are_runs_or_a_region_error(numbers):
    for read in (
        lambda: rle.counts_from_siim(" ".join(map(str, numbers)), (4, 4)),
        lambda: rle.counts_from_pairs(numbers, (4, 4), "column"),
        lambda: rle.checked_counts(numbers, (4, 4)),
    ):
        try:
            counts = read()
        except RegionError:
            continue
        assert int(counts.sum()) == 16
        assert (counts[1:] > 0).all()


def test_long_values_are_shortened_in_messages():
    with pytest.raises(RegionError, match=r"\.\.\.") as caught:
        rle.checked_counts(["x" * 500], (4, 4))
    assert len(str(caught.value)) < 300


def test_siim_sample_rows(data_root):
    """Every row of the sample: areas, and the union's fingerprint."""
    import csv

    folder = data_root / "siim"
    expected = {item["ImageId"]: item for item in json.loads((folder / "expected.json").read_text())["images"]}
    masks = {}
    for name in ("train-rle.csv", "stage_2_train.csv"):
        with (folder / name).open(newline="") as file:
            rows = [{k.strip(): v.strip() for k, v in row.items()} for row in csv.DictReader(file)]
        for row in rows:
            counts = rle.counts_from_siim(row["EncodedPixels"], (1024, 1024))
            empty = np.zeros((1024, 1024), bool)
            masks[name, row["ImageId"]] = masks.get((name, row["ImageId"]), empty) | rle.mask_from_counts(
                counts, (1024, 1024)
            )
    assert masks
    for (_, image), mask in masks.items():
        item = expected.get(image, {})
        if "union_area" in item:
            assert int(mask.sum()) == item["union_area"]
        if "mask_sha256_packbits_row_major" in item:
            packed = np.packbits(np.ascontiguousarray(mask)).tobytes()
            assert hashlib.sha256(packed).hexdigest() == item["mask_sha256_packbits_row_major"]
