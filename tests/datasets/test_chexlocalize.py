"""The CheXlocalize loader: [height, width], two names of one finding, keys that are no findings."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from medground.datasets.chexlocalize import CheXlocalize
from medground.errors import DatasetError
from medground.imaging import rle
from medground.imaging.regions import Region

SIZE_HW = [20, 30]
MASK = np.zeros(SIZE_HW, bool)
MASK[3:7, 10:29] = True
TRIANGLE = [[0.0, 0.0], [10.0, 0.0], [10.0, 8.0]]
HEADER = "Path,No Finding,Cardiomegaly,Lung Opacity,Pneumothorax,Fracture"


def code(mask):
    return {"size": SIZE_HW, "counts": rle.string_from_counts(rle.counts_from_mask(mask))}


@pytest.fixture
def stanford(folder):
    folder.table(
        "CheXpert/test_labels.csv",
        HEADER,
        "test/patient1/study1/view1_frontal.jpg,0.0,1.0,1.0,0.0,1.0",
        "test/patient1/study1/view2_lateral.jpg,0.0,0.0,0.0,0.0,0.0",
        "test/patient2/study1/view1_frontal.jpg,0.0,0.0,0.0,1.0,0.0",
        "test/patient3/study1/view1_frontal.jpg,1.0,0.0,0.0,0.0,0.0",
    )
    empty = code(np.zeros_like(MASK))
    folder.json(
        "CheXlocalize/gt_segmentations_test.json",
        {
            "patient1_study1_view1_frontal": {"Cardiomegaly": code(MASK), "Airspace Opacity": empty},
            "patient1_study1_view2_lateral": {"Cardiomegaly": code(MASK.copy()), "Airspace Opacity": empty},
        },
    )
    folder.json(
        "CheXlocalize/gt_annotations_test.json",
        {
            "patient1_study1_view1_frontal": {
                "img_size": SIZE_HW,
                "Cardiomegaly": [TRIANGLE],
                "Airspace Opacity": [[[20.5, 10.5], [40, 10], [40, 19]]],
                "Fracture": [TRIANGLE, [[20, 10], [25, 10], [25, 15]], [[1, 1], [2, 2]]],
            }
        },
    )
    for path in ("patient1/study1/view1_frontal", "patient1/study1/view2_lateral", "patient2/study1/view1_frontal"):
        folder.picture(f"CheXpert/test/{path}.jpg", size=(15, 10))
    folder.picture("CheXpert/test/patient3/study1/view1_frontal.png", size=(15, 10))
    return folder


def by_id(dataset):
    return {c.case_id.removesuffix("_frontal"): c for c in dataset.cases()}


def test_sizes_are_height_and_width_and_masks_go_before_outlines(stanford):
    case = by_id(CheXlocalize(stanford.root))["patient1_study1_view1"]
    assert case.regions["Cardiomegaly"].frame == (30, 20)
    assert np.array_equal(case.regions["Cardiomegaly"].mask(), MASK)
    assert case.regions["Fracture"].frame == (30, 20)
    assert len(case.regions["Fracture"].polygons) == 2
    assert case.regions["Airspace Opacity"].bbox() == (20, 10, 30, 15)  # an empty mask gives way to an outline


def test_labels_take_the_name_of_the_masks(stanford):
    case = by_id(CheXlocalize(stanford.root))["patient1_study1_view1"]
    assert case.labels["Airspace Opacity"] is True
    assert case.labels["Pneumothorax"] is False
    assert case.labels["Edema"] is None  # the table has no such column
    assert CheXlocalize(stanford.root, findings=["Lung Opacity"]).findings == ("Airspace Opacity",)


def test_a_positive_label_without_ground_truth_is_undefined(stanford):
    dataset = CheXlocalize(stanford.root)
    case = by_id(dataset)["patient2_study1_view1"]
    assert case.labels["Pneumothorax"] is True
    assert not case.regions
    assert any("undefined, not a miss" in line for line in dataset.report().lines())


def test_an_image_without_a_key_has_its_labels(stanford):
    case = by_id(CheXlocalize(stanford.root))["patient3_study1_view1"]
    assert case.labels["Cardiomegaly"] is False
    assert case.image.suffix == ".png"


def test_a_region_counts_against_a_label_of_zero(stanford):
    dataset = CheXlocalize(stanford.root)
    assert by_id(dataset)["patient1_study1_view2_lateral"].labels["Cardiomegaly"] is True
    assert any("the region counts" in line for line in dataset.report().lines())


def test_patients_and_views(stanford):
    cases = CheXlocalize(stanford.root).cases()
    assert [(c.patient_id, c.view) for c in cases] == [
        ("patient1", "FRONTAL"),
        ("patient1", "LATERAL"),
        ("patient2", "FRONTAL"),
        ("patient3", "FRONTAL"),
    ]
    assert len(CheXlocalize(stanford.root, views="frontal").cases()) == 3
    assert len(CheXlocalize(stanford.root, views="lateral").cases()) == 1


def test_one_file_of_ground_truth_alone(stanford):
    only = by_id(CheXlocalize(stanford.root, ground_truth="annotations"))["patient1_study1_view1"]
    assert only.regions["Cardiomegaly"] == Region.from_polygons((30, 20), [TRIANGLE])
    masks = by_id(CheXlocalize(stanford.root, ground_truth="segmentations"))["patient1_study1_view1"]
    assert set(masks.regions) == {"Cardiomegaly"}
    (stanford.root / "CheXlocalize/gt_annotations_test.json").unlink()
    dataset = CheXlocalize(stanford.root)
    assert len(dataset.cases()) == 4
    assert any("serves alone: 1 (gt_annotations_test.json)" in line for line in dataset.report().lines())
    with pytest.raises(DatasetError) as caught:
        CheXlocalize(stanford.root, ground_truth="annotations").cases()
    assert "gt_annotations_test.json" in str(caught.value)
    (stanford.root / "CheXlocalize/gt_segmentations_test.json").unlink()
    with pytest.raises(DatasetError, match="does not hold all of CheXlocalize"):
        CheXlocalize(stanford.root).cases()


def test_without_labels_only_regions_are_known(stanford):
    (stanford.root / "CheXpert/test_labels.csv").unlink()
    dataset = CheXlocalize(stanford.root)
    case = dataset.cases()[0]
    assert case.labels["Cardiomegaly"] is True
    assert case.labels["Pneumothorax"] is None
    assert any("table of labels is absent" in line for line in dataset.report().lines())


@pytest.mark.parametrize(
    ("labels", "path", "pictures"),
    [
        ("CheXpert/val_labels.csv", "val/", "CheXpert/val/"),
        ("valid.csv", "CheXpert-v1.0/valid/", "valid/"),
        ("CheXpert/val_labels.csv", "CheXpert-v1.0-small/valid/", "CheXpert/valid/"),
    ],
)
def test_the_other_part_under_its_other_names(folder, labels, path, pictures):
    folder.table(
        labels,
        "Path,Sex,Age,Frontal/Lateral,AP/PA,Cardiomegaly",
        f"{path}patient9/study1/view1_frontal.jpg,Male,73,Frontal,AP,1.0",
        f"{path}patient9/study1/view2_lateral.jpg,Male,73,Lateral,,0.0",
        f"{path}patient9/study2/view1_frontal.jpg,Male,73,Frontal,,-1.0",
    )
    folder.json("gt_segmentations_val.json", {"patient9_study1_view1_frontal": {"Cardiomegaly": code(MASK)}})
    for view in ("study1/view1_frontal", "study1/view2_lateral", "study2/view1_frontal"):
        folder.picture(f"{pictures}patient9/{view}.jpg")
    first, lateral, uncertain = CheXlocalize(folder.root, split="val").cases()
    assert (first.view, lateral.view, uncertain.view) == ("AP", "LATERAL", "FRONTAL")
    assert first.regions["Cardiomegaly"].area == MASK.sum()
    assert uncertain.labels["Cardiomegaly"] is None


@pytest.mark.parametrize(
    ("task", "value", "words"),
    [
        ("Cardiomegaly", {"size": [20, 31], "counts": code(MASK)["counts"]}, "do not fill"),
        ("Cardiomegaly", {"size": SIZE_HW, "counts": "~"}, "malformed"),
        ("Cardiomegaly", {"size": SIZE_HW}, "whole numbers"),
        ("Cardiomegaly", {"counts": "PP`k0"}, "COCO size"),
        ("Cardiomegaly", "PP`k0", "COCO size"),
        ("Cardiomegalie", code(MASK), "no finding"),
    ],
)
def test_a_bad_mask_is_named(stanford, task, value, words):
    stanford.json("CheXlocalize/gt_segmentations_test.json", {"patient1_study1_view1_frontal": {task: value}})
    with pytest.raises(DatasetError, match=words) as caught:
        CheXlocalize(stanford.root).cases()
    assert "patient1_study1_view1_frontal" in str(caught.value)


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ({"Fracture": [TRIANGLE]}, "malformed"),
        ({"img_size": [20], "Fracture": [TRIANGLE]}, "malformed"),
        ({"img_size": SIZE_HW, "Fracture": TRIANGLE[0]}, None),
        ({"img_size": SIZE_HW, "Fracture": [[[50, 50], [60, 50], [60, 60]]]}, "outside its frame"),
        ({"img_size": SIZE_HW, "Fracture": [[[1, 2], [None, 3], [4, 5]]]}, "degenerate"),
        ([], "no object"),
    ],
)
def test_a_bad_outline_is_named(stanford, tasks, words):
    stanford.json("CheXlocalize/gt_annotations_test.json", {"patient1_study1_view1_frontal": tasks})
    dataset = CheXlocalize(stanford.root)
    if words is None:
        assert any("three points dropped" in line for line in dataset.report().lines())
        return
    with pytest.raises(DatasetError, match=words):
        dataset.cases()


def test_human_points_are_cut_to_whole_numbers(stanford):
    stanford.json(
        "CheXlocalize/hb_salient_pt_test.json",
        {"patient1_study1_view1_frontal": {"Cardiomegaly": [[0, 0], [10.9, 6.9]], "Lung Opacity": [[3.0, 4.0]]}},
    )
    hits = CheXlocalize(stanford.root).human_hits()["patient1_study1_view1_frontal"]
    assert hits["Cardiomegaly"] is True
    assert hits["Airspace Opacity"] is False
    assert hits["Fracture"] is None  # a region, and no point
    assert hits["Edema"] is None  # no region


def check_masks(dataset, masks):
    cases = {c.case_id: c for c in dataset.cases()}
    for case_id, entry in masks.items():
        for task, expected in entry["tasks"].items():
            region = cases[case_id].regions.get(task)
            if expected["area"] == 0:
                assert region is None
                continue
            assert list(region.frame) == entry["size_wh"]
            assert region.area == expected["area"]
            assert list(region.bbox()) == expected["bbox_x0y0x1y1"]
            digest = hashlib.sha256(np.packbits(region.mask()).tobytes()).hexdigest()
            assert digest == expected["mask_sha256_packbits_row_major"]


@pytest.mark.data
@pytest.mark.parametrize("ground_truth", ["both", "annotations"])
def test_the_sample_folder(data_root, ground_truth):
    root = data_root / "chexlocalize"
    expected = json.loads((root / "expected.json").read_text())
    dataset = CheXlocalize(root, ground_truth=ground_truth)
    check_masks(dataset, expected["masks"])
    alias = {"Airspace Opacity": "Lung Opacity"}
    for case in dataset.cases():
        positives = {alias.get(f, f) for f, label in case.labels.items() if label}
        assert positives == set(expected["labels"][case.case_id]) - {"No Finding"}
        picture = expected["pictures"][case.case_id]
        assert str(case.image.relative_to(root)) == picture["file"]
        assert {region.frame for region in case.regions.values()} <= {tuple(picture["size_wh"])}
    hits = dataset.human_hits()
    for case_id, tasks in expected["human_points"]["hits"].items():
        assert {t: hits[case_id][t] for t in tasks} == {t: None if v is None else bool(v) for t, v in tasks.items()}


@pytest.mark.data
@pytest.mark.parametrize("ground_truth", ["both", "annotations"])
def test_the_real_annotations(data_root, ground_truth):
    root = data_root / "chexlocalize" / "real_sample_annotations"
    dataset = CheXlocalize(root, split="val", ground_truth=ground_truth, missing="keep")
    check_masks(dataset, json.loads((root / "expected.json").read_text())["masks"])
    assert [c.view for c in dataset.cases()] == ["AP", "PA"]


def test_a_label_table_without_paths_is_named(stanford):
    stanford.table("CheXpert/test_labels.csv", "File,Cardiomegaly", "a,1")
    with pytest.raises(DatasetError, match="no column 'Path'"):
        CheXlocalize(stanford.root).cases()


@pytest.mark.parametrize(
    ("more", "words"),
    [(",1", "lacks its image"), ("test/patient1/study1/view1_frontal.jpg,0", "two rows that differ")],
)
def test_a_bad_row_of_labels_is_named(stanford, more, words):
    same = "test/patient1/study1/view1_frontal.jpg,1"
    stanford.table("CheXpert/test_labels.csv", "Path,Cardiomegaly", same, same, more)
    with pytest.raises(DatasetError, match=words) as caught:
        CheXlocalize(stanford.root).cases()
    assert caught.value.where == "test_labels.csv row 4"


def test_ground_truth_without_a_row_of_labels_is_told(stanford):
    stanford.table("CheXpert/test_labels.csv", HEADER, "test/patient3/study1/view1_frontal.jpg,1.0,0.0,0.0,0.0,0.0")
    dataset = CheXlocalize(stanford.root)
    assert len(dataset.cases()) == 3
    assert any("without a row of labels" in line for line in dataset.report().lines())
