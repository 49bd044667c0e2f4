"""The ChestX-Det loader: parallel lists, repeated classes, two variants with different classes."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from medground.datasets.chestx_det import ChestXDet
from medground.errors import DatasetError

TEN = [
    {
        "file_name": "36302.png",
        "syms": ["Effusion", "Nodule", "Effusion"],
        "boxes": [[1, 2, 5, 8], [0, 0, 9, 9], [4, 7, 6, 9]],
    },
    {"file_name": "36303.png", "syms": [], "boxes": []},
    {"file_name": "36304.png", "syms": ["Mass"], "boxes": [[1000, 1000, 1024, 1024]]},
]
THIRTEEN = [
    {
        "file_name": "36302.png",
        "syms": ["Cardiomegaly", "Diffuse Nodule"],
        "boxes": [[1, 2, 11, 12], [20, 20, 24, 24]],
        "polygons": [[[1, 2], [10, 2], [10, 11], [1, 11]], [[20, 20], [23, 20], [23, 23]]],
    }
]


@pytest.fixture
def ten(folder):
    folder.json("test.json", TEN)
    folder.picture("test_data/36302.png", "test_data/test_data/36303.png")
    return folder


def test_boxes_are_corners_and_united_by_class(ten):
    positive, negative = ChestXDet(ten.root).cases()
    assert positive.case_id == "36302"
    assert [f for f, label in positive.labels.items() if label] == ["Effusion", "Nodule"]
    assert positive.regions["Effusion"].frame == (1024, 1024)
    assert positive.regions["Effusion"].area == 4 * 6 + 2 * 2 - 1
    assert negative.labels == dict.fromkeys(ChestXDet.info.findings, False)


def test_absent_pictures_are_missing(ten):
    report = ChestXDet(ten.root).report()
    assert report.missing == ("36304",)
    assert report.counts == {"ChestX-Det10 test images": 3, "ChestX-Det10 test boxes": 4}


def test_classes_of_the_other_variant_are_unknown_not_absent(ten):
    dataset = ChestXDet(ten.root, findings=["Cardiomegaly", "Effusion"])
    assert dataset.cases()[1].labels == {"Cardiomegaly": None, "Effusion": False}


def test_the_variant_that_is_there_is_taken_the_paper_s_first(ten):
    ten.json("ChestX_Det_test.json", THIRTEEN)
    assert len(ChestXDet(ten.root).findings) == 10
    dataset = ChestXDet(ten.root, variant="chestx_det")
    assert len(dataset.findings) == 13
    assert list(dataset.findings) == sorted(dataset.findings)
    (ten.root / "test.json").unlink()
    (case,) = ChestXDet(ten.root).cases()
    assert [f for f, label in case.labels.items() if label] == ["Cardiomegaly", "Diffuse Nodule"]


def test_polygons(ten):
    with pytest.raises(DatasetError, match="no polygons"):
        ChestXDet(ten.root, shapes="polygons").cases()
    ten.json("ChestX_Det_test.json", THIRTEEN)
    (case,) = ChestXDet(ten.root, variant="chestx_det", shapes="polygons").cases()
    assert case.regions["Cardiomegaly"].area == 100  # filled, with its outline
    assert case.regions["Diffuse Nodule"].area == 10


def test_splits(ten):
    ten.json("train.json", [{"file_name": "7.png", "syms": ["Mass"], "boxes": [[1, 2, 3, 4]]}])
    ten.picture("train_data/7.png")
    assert [c.case_id for c in ChestXDet(ten.root, split="train").cases()] == ["7"]
    assert [c.case_id for c in ChestXDet(ten.root, split="all").cases()] == ["36302", "36303", "7"]


def test_records_of_one_image_are_united_and_told(ten):
    ten.json("test.json", [*TEN, {"file_name": "36303.png", "syms": ["Mass"], "boxes": [[1, 2, 3, 4]]}])
    dataset = ChestXDet(ten.root)
    assert dataset.cases()[1].regions["Mass"].area == 4
    assert any("boxes are united: 1 (36303)" in line for line in dataset.report().lines())


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"file_name": "1.png", "syms": ["Pleural Effusion"], "boxes": [[1, 2, 3, 4]]}, "no class"),
        ({"file_name": "1.png", "syms": ["Mass"], "boxes": []}, "differ in number"),
        ({"file_name": "1.png", "syms": ["Mass"], "boxes": [[5, 5, 3, 9]]}, "degenerate"),
        ({"file_name": "1.png", "syms": ["Mass"], "boxes": [[800, 800, 300, 300]]}, "degenerate"),
        ({"file_name": "1.png", "syms": ["Mass"], "boxes": [[800, 800, 1300, 900]]}, "beyond its frame"),
        ({"file_name": "1.png", "syms": "Mass", "boxes": [[1, 2, 3, 4]]}, "malformed"),
        ({"syms": [], "boxes": []}, "malformed"),
        ([], "malformed"),
    ],
)
def test_a_bad_record_is_named(ten, record, words):
    ten.json("test.json", [TEN[1], record])
    with pytest.raises(DatasetError, match=words) as caught:
        ChestXDet(ten.root).cases()
    assert "record 1" in str(caught.value)


@pytest.mark.parametrize("content", [b"{", b"{}", b"[[[[[[" * 60_000])
def test_a_file_that_is_no_list_is_named(ten, content):
    ten.write("test.json", content)
    with pytest.raises(DatasetError) as caught:
        ChestXDet(ten.root).cases()
    assert "test.json" in str(caught.value)


@pytest.mark.data
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_sample_folder(data_root, split):
    root = data_root / "chestx-det"
    expected = json.loads((root / "expected.json").read_text())
    dataset = ChestXDet(root, split=split, missing="keep")
    cases, counts = dataset.cases(), expected["splits"][split]
    assert len(cases) == counts["images"]
    assert sum(not any(c.labels.values()) for c in cases) == counts["empty_images"]
    assert dataset.report().counts[f"ChestX-Det {split} boxes"] == counts["objects"]
    assert Counter(f for c in cases for f in c.regions) == counts["images_per_class"]
    boxes = Counter({f: sum(len(c.regions[f].boxes) for c in cases if f in c.regions) for f in dataset.findings})
    assert boxes == counts["boxes_per_class"]


@pytest.mark.data
def test_the_pictures_of_the_sample_folder(data_root):
    root = data_root / "chestx-det"
    pictures = json.loads((root / "expected.json").read_text())["pictures"]
    boxes, outlines = (
        {c.image.name: c for split in ("train", "test") for c in ChestXDet(root, split=split, shapes=shapes).cases()}
        for shapes in ("boxes", "polygons")
    )
    assert boxes.keys() == pictures.keys()
    for name, picture in pictures.items():
        assert boxes[name].image.parent.name == picture["folder"]
        assert set(boxes[name].regions) == {o["label"] for o in picture["objects"]}
        for item in picture["objects"]:
            (box,) = boxes[name].regions[item["label"]].boxes
            assert list(box.corners) == item["x1y1x2y2"]
            assert outlines[name].regions[item["label"]].area == item["polygon_area_fill_and_outline"]
