import csv
import json
import math
import pickle
from pathlib import Path

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image, ImageDraw

from medground.errors import RegionError
from medground.imaging import rle
from medground.imaging.picking import picked
from medground.imaging.regions import Box, Region

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics"
RULES = ["size_cut", "corner_cut", "rounded"]

sides = st.integers(1, 24)
frames = st.tuples(sides, sides)


@st.composite
def regions(draw, shapes=("box", "polygon", "mask")):
    """A region of one to four parts in a small frame."""
    frame = width, height = draw(frames)
    parts = []
    for shape in draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=4)):
        if shape == "box":
            x0, y0 = draw(st.floats(0, width - 0.6)), draw(st.floats(0, height - 0.6))
            w, h = draw(st.floats(0.5, max(0.5, width - x0))), draw(st.floats(0.5, max(0.5, height - y0)))
            box = Box.from_xywh(x0, y0, w, h) if draw(st.booleans()) else Box(x0, y0, x0 + w, y0 + h)
            parts.append(Region.from_boxes(frame, [box], clip=True))
        elif shape == "polygon":
            point = st.tuples(st.floats(0, width), st.floats(0, height))
            parts.append(Region.from_polygons(frame, [draw(st.lists(point, min_size=3, max_size=6))]))
        else:
            parts.append(Region.from_mask(draw(hnp.arrays(bool, (height, width)))))
    return Region.union(*parts)


def drawn_slowly(region, rule):
    """Every pixel asked one by one, polygons by Pillow."""
    width, height = region.frame
    canvas = np.zeros((height, width), bool)
    for box in region.boxes:
        x0, y0, x1, y1 = box.pixels(rule)
        for row in range(height):
            for column in range(width):
                canvas[row, column] |= x0 <= column < x1 and y0 <= row < y1
    for polygon in region.polygons:
        picture = Image.new("1", region.frame)
        ImageDraw.Draw(picture).polygon([tuple(point) for point in polygon], outline=1, fill=1)
        canvas |= np.asarray(picture)
    for counts in region.masks:
        canvas |= rle.mask_from_counts(counts, region.frame)
    return canvas


@given(regions(), st.sampled_from(RULES))
def test_mask_against_the_slow_oracle(region, rule):
    expected = drawn_slowly(region, rule)
    np.testing.assert_array_equal(region.mask(rule), expected)
    assert region.mask(rule).shape == region.frame[::-1]
    rows, columns = np.nonzero(expected)
    box = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1) if rows.size else None
    assert region.bbox(rule) == box


@given(regions(), frames, st.sampled_from(RULES), st.sampled_from(["floor", "centre"]))
def test_drawing_at_another_size_equals_drawing_then_picking(region, size, rule, resize):
    (width, height), mask = region.frame, region.mask(rule)
    expected = mask[np.ix_(picked(height, size[1], resize), picked(width, size[0], resize))]
    np.testing.assert_array_equal(region.mask_at(size, rule, resize), expected)


@given(regions(), st.integers(0, 6), st.sampled_from(RULES))
def test_widening_equals_dilating_by_a_square(region, margin, rule):
    mask = region.mask(rule)
    expected = np.zeros_like(mask)
    for row, column in zip(*np.nonzero(mask), strict=True):
        expected[max(row - margin, 0) : row + margin + 1, max(column - margin, 0) : column + margin + 1] = True
    wide = region.widened(margin, rule)
    assert wide.frame == region.frame
    np.testing.assert_array_equal(wide.mask(rule), expected)


@given(regions(), st.data())
def test_contains_asks_the_mask(region, data):
    width, height = region.frame
    x, y = data.draw(st.floats(-2, width + 2)), data.draw(st.floats(-2, height + 2))
    inside = 0 <= x < width and 0 <= y < height
    assert region.contains(x, y) == bool(inside and region.mask()[int(y), int(x)])


@given(regions())
def test_area_emptiness_and_identity(region):
    assert region.area == int(region.mask().sum())
    assert region.is_empty == (region.area == 0)
    copy = pickle.loads(pickle.dumps(region))
    assert copy == region
    assert hash(copy) == hash(region)
    assert copy.fingerprint() == region.fingerprint()
    assert len(region.fingerprint()) == 16


def test_fingerprints_tell_regions_apart():
    parts = [
        Region.from_boxes((9, 9), [(1, 1, 3, 3)]),
        Region.from_boxes((9, 8), [(1, 1, 3, 3)]),
        Region.from_boxes((9, 9), [Box.from_xywh(1, 1, 2, 2)]),
        Region.from_polygons((9, 9), [[(1, 1), (3, 1), (3, 3)]]),
        Region.from_mask(np.eye(9, dtype=bool)),
        Region((9, 9)),
    ]
    assert len({part.fingerprint() for part in parts}) == len(parts)


def test_numbers_of_any_kind_give_one_fingerprint():
    ours = Region.from_boxes((9, 9), [(1, 1, 3, 3)])
    theirs = Region.from_boxes(np.array([9, 9]), np.array([[1.0, 1.0, 3.0, 3.0]]))
    assert ours.fingerprint() == theirs.fingerprint()
    assert Region((9, 9), (Box(1, 1, 3, 3),)).fingerprint() == ours.fingerprint()
    assert Region((9, 9), (Box(*np.array([1, 1, 3, 3])),)).fingerprint() == ours.fingerprint()


def test_starred_box_axes():
    expected = json.loads((GOLDEN / "starred" / "T02_box_axes" / "expected.json").read_text())["expected"]
    with np.load(GOLDEN / "starred" / "T02_box_axes" / "input.npz") as archive:
        (saliency,) = (archive[name] for name in archive)
    row, column = np.unravel_index(saliency.argmax(), saliency.shape)
    assert [row, column] == expected["argmax_row_col"]
    frame = saliency.shape[1], saliency.shape[0]
    for name in ("box_one_pixel", "box_larger"):
        region = Region.from_boxes(frame, [expected[name]["x0y0x1y1"]])
        assert region.area == expected[name]["mask_area"]
        assert region.contains(column, row) == bool(expected[name]["hit"])
        assert region.mask()[row, column] == bool(expected[name]["hit"])
    with pytest.raises(RegionError, match="outside its frame"):
        Region.from_boxes(frame, [expected["swapped_axes"]["x0y0x1y1"]])


def test_a_box_beyond_its_frame_is_refused_with_both_sizes():
    with pytest.raises(RegionError) as caught:
        Region.from_boxes((100, 50), [(90, 10, 120, 40)])
    assert "100 x 50" in str(caught.value)
    assert "(90, 10, 120, 40)" in str(caught.value)


def test_clipping_tells():
    region = Region.from_boxes((100, 50), [(90, 10, 120, 40), (1, 1, 2, 2)], clip=True)
    assert region.boxes[0].corners == (90, 10, 100, 40)
    assert region.notes == ("box (90, 10, 120, 40) clipped to the frame 100 x 50",)
    assert region.area == 301
    with pytest.raises(RegionError, match="outside its frame"):
        Region.from_boxes((100, 50), [(101, 10, 120, 40)], clip=True)


def test_notes_are_no_part_of_identity():
    region = Region.from_boxes((100, 50), [(90, 10, 120, 40)], clip=True)
    assert region == Region(region.frame, region.boxes)
    assert region.fingerprint() == Region(region.frame, region.boxes).fingerprint()
    assert region.widened(1).notes == region.notes == Region.union(region, Region(region.frame)).notes


@pytest.mark.parametrize(
    "polygon",
    [
        [(1, 1), (2, 2)],
        [],
        [(1, 1), (2, 2), (math.nan, 3)],
        [(1, 1), (2, 2), (math.inf, 3)],
        [(1, 1, 1), (2, 2, 2), (3, 3, 3)],
        [(1, 1), (2, 2), (3,)],
        "abc",
        [1, 2, 3],
        [(1, 1), (1e9, 2), (3, 3)],
    ],
    ids=str,
)
def test_degenerate_polygons_are_refused(polygon):
    with pytest.raises(RegionError, match="degenerate"):
        Region.from_polygons((10, 10), [polygon], clip=True)


def test_polygons_beyond_their_frame():
    triangle = [(5, 5), (15, 5), (5, 9)]
    with pytest.raises(RegionError, match="beyond its frame"):
        Region.from_polygons((10, 10), [triangle])
    region = Region.from_polygons((10, 10), [triangle], clip=True)
    assert region.notes == ("polygon 0 clipped to the frame 10 x 10",)
    np.testing.assert_array_equal(region.mask(), Region.from_polygons((20, 20), [triangle]).mask()[:10, :10])
    for outside in ([(11, 1), (12, 1), (12, 2)], [(-3, 1), (-2, 1), (-2, 2)], [(1, -9), (2, -9), (2, -1)]):
        with pytest.raises(RegionError, match="outside its frame"):
            Region.from_polygons((10, 10), [outside], clip=True)


def test_overlapping_polygons_count_once():
    square = [(2, 2), (6, 2), (6, 6), (2, 6)]
    assert Region.from_polygons((10, 10), [square, square]).area == 25  # outline drawn: 5 by 5


@pytest.mark.parametrize(
    ("mask", "match"),
    [
        (np.zeros((4, 4, 3), bool), "shape"),
        (np.zeros(4, bool), "shape"),
        (np.zeros((0, 4), bool), "shape"),
        (np.zeros((4, 4)), "type"),
        (np.full((4, 4), np.nan), "type"),
        (np.full((4, 4), "x"), "type"),
    ],
)
def test_masks_that_are_no_masks(mask, match):
    with pytest.raises(RegionError, match=match):
        Region.from_mask(mask)


def test_masks_of_whole_numbers():
    assert Region.from_mask([[0, 255], [1, 0]]).mask().tolist() == [[False, True], [True, False]]


def test_coco_objects():
    height, width = 2, 3
    mask = [[True, False, False], [True, True, False]]
    for counts in ("021O1", b"021O1", [0, 2, 1, 1, 2], np.array([0, 2, 1, 1, 2])):
        region = Region.from_coco([height, width], counts)
        assert region.frame == (width, height)
        assert region.mask().tolist() == mask
    assert Region.from_coco(np.array([2, 3]), "021O1").area == 3


@pytest.mark.parametrize("size", [None, 4, [4], [4, 4, 4], "44"])
def test_coco_sizes_that_are_none(size):
    with pytest.raises(RegionError):
        Region.from_coco(size, [16])


def test_regions_of_different_frames_are_not_united():
    with pytest.raises(RegionError, match="different frames") as caught:
        Region.union(Region((4, 5)), Region((5, 4)))
    assert "4 x 5, 5 x 4" in str(caught.value)
    with pytest.raises(RegionError, match="no region"):
        Region.union()


def test_no_resize_allows_its_own_size_only():
    region = Region.from_boxes((8, 6), [(1, 1, 3, 3)])
    assert region.mask_at((8, 6), resize="none").sum() == 4
    with pytest.raises(RegionError, match="must not be resized") as caught:
        region.mask_at((6, 8), resize="none")
    assert "8 x 6" in str(caught.value)
    assert "6 x 8" in str(caught.value)


def test_a_negative_margin_is_refused():
    with pytest.raises(RegionError, match="margin"):
        Region((4, 4)).widened(-1)


def test_an_empty_region():
    region = Region((4, 3))
    assert region.is_empty
    assert region.bbox() is None
    assert not region.contains(1, 1)
    assert region.widened(2).is_empty


def test_golden_areas_of_the_heat_map_items():
    items = json.loads((GOLDEN / "heatmaps" / "items.json").read_text())
    expected = json.loads((GOLDEN / "heatmaps" / "expected.json").read_text())["items"]
    for item, wanted in zip(items, expected, strict=True):
        region = Region.from_boxes((1024, 1024), [Box.from_xywh(*box) for box in item["boxes_xywh"]])
        assert region.area == wanted["gt_area_1024"]
        assert int(region.mask_at((224, 224)).sum()) == wanted["gt_area_224"]


def all_foreground(areas, pixels):
    """Dice and IoU of a prediction that marks everything, in percent."""
    areas = np.array(areas, dtype=float)
    return 100 * np.mean(2 * areas / (areas + pixels)), 100 * np.mean(areas / pixels)


@pytest.mark.parametrize("rule", RULES)
def test_all_foreground_over_the_nih_boxes(rule, data_root):
    expected = json.loads((GOLDEN / "all_foreground" / "expected.json").read_text())["nih"][rule]["per_class"]
    (table,) = (data_root / "nih-chestxray14").rglob("BBox_List_2017.csv")
    with table.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    areas = {}
    for _, finding, *numbers in rows:
        region = Region.from_boxes((1024, 1024), [Box.from_xywh(*map(float, numbers[:4]))])
        for side in (1024, 224):
            areas.setdefault((finding, side), []).append(int(region.mask_at((side, side), rule).sum()))
    for finding, wanted in expected.items():
        for side in (1024, 224):
            dice, iou = all_foreground(areas[finding, side], side * side)
            assert dice == pytest.approx(wanted[f"dice_{side}"], abs=1e-6)
            assert iou == pytest.approx(wanted[f"iou_{side}"], abs=1e-6)


def test_all_foreground_over_the_rsna_boxes(data_root):
    expected = json.loads((GOLDEN / "all_foreground" / "expected.json").read_text())["rsna"]["macro"]
    boxes = {}
    with (data_root / "rsna" / "stage_2_train_labels.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["Target"] == "1":
                box = Box.from_xywh(*(float(row[key]) for key in ("x", "y", "width", "height")))
                boxes.setdefault(row["patientId"], []).append(box)
    for side in (1024, 224):
        masks = [Region.from_boxes((1024, 1024), found).mask_at((side, side)) for found in boxes.values()]
        dice, iou = all_foreground([mask.sum() for mask in masks], side * side)
        assert dice == pytest.approx(expected[f"dice_{side}"], abs=1e-6)
        assert iou == pytest.approx(expected[f"iou_{side}"], abs=1e-6)


def sha(mask):
    import hashlib

    return hashlib.sha256(np.packbits(np.ascontiguousarray(mask)).tobytes()).hexdigest()


def test_chexlocalize_masks_and_polygons(data_root):
    folder = data_root / "chexlocalize"
    expected = json.loads((folder / "expected.json").read_text())["masks"]
    masks = json.loads((folder / "CheXlocalize" / "gt_segmentations_test.json").read_text())
    outlines = json.loads((folder / "CheXlocalize" / "gt_annotations_test.json").read_text())
    for image, wanted in expected.items():
        for task, facts in wanted["tasks"].items():
            height, width = wanted["size_hw"]
            found = []
            if task in masks[image]:
                found.append(Region.from_coco(masks[image][task]["size"], masks[image][task]["counts"]))
            if task in outlines[image]:
                found.append(Region.from_polygons((width, height), outlines[image][task]))
            assert found
            for region in found:
                assert region.area == facts["area"]
                assert region.bbox() == (tuple(facts["bbox_x0y0x1y1"]) if facts["bbox_x0y0x1y1"] else None)
                assert sha(region.mask()) == facts["mask_sha256_packbits_row_major"]


def test_chexlocalize_public_sample(data_root):
    folder = data_root / "chexlocalize" / "real_sample_annotations"
    masks = json.loads((folder / "gt_segmentations_val.json").read_text())
    areas = {
        (image.split("_")[0], task): Region.from_coco(mask["size"], mask["counts"]).area
        for image, tasks in masks.items()
        for task, mask in tasks.items()
    }
    assert {key: area for key, area in areas.items() if area} == {
        ("patient64541", "Enlarged Cardiomediastinum"): 962_252,
        ("patient64541", "Cardiomegaly"): 867_107,
        ("patient64541", "Airspace Opacity"): 163_040,
        ("patient64542", "Support Devices"): 47_345,
    }
    assert len(areas) == 20


def test_covid_opacity_outlines(data_root):
    folder = data_root / "covid-rural"
    expected = json.loads((folder / "expected.json").read_text())["images"]
    assert expected
    for name, wanted in expected.items():
        outline = json.loads((folder / "covid_rural_annot" / "jpgs" / "jsons" / f"{name}.json").read_text())
        frame = outline["imageWidth"], outline["imageHeight"]
        polygons = [s["points"] for s in outline["shapes"] if not s["label"].endswith("_lung")]
        region = Region.from_polygons(frame, polygons, clip=True)
        assert region.area == wanted["opacity_area_fill_and_outline"]
        assert region.bbox() == (tuple(wanted["opacity_bbox_x0y0x1y1"]) if polygons else None)
        assert int(region.mask_at((224, 224)).sum()) == wanted["opacity_area_after_nearest_224"]


@settings(max_examples=200)
@given(st.tuples(st.integers() | st.floats(), st.integers()), st.lists(st.lists(st.floats(), max_size=5), max_size=3))
def test_any_numbers_make_a_region_or_a_region_error(frame, boxes):
    try:
        region = Region.from_boxes(frame, boxes, clip=True)
    except RegionError:
        return
    assert region.frame == tuple(frame)


@given(st.tuples(*[st.floats(0, 19.5)] * 2), st.tuples(*[st.floats(0.1, 12)] * 2))
def test_the_area_of_one_box_is_counted_without_drawing_it(corner, sides):
    region = Region.from_boxes((20, 20), [Box.from_xywh(*corner, *sides)], clip=True)
    assert region.area == np.count_nonzero(region.mask())
