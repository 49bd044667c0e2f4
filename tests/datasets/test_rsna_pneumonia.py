"""The RSNA loader: a row a box in two tables, and the split file of the paper."""

from __future__ import annotations

import json

import pytest

from medground.datasets.rsna_pneumonia import RsnaPneumonia
from medground.errors import DatasetError

HEADER = "patientId,x,y,width,height,Target"


@pytest.fixture
def rsna(folder):
    folder.table(
        "stage_2_train_labels.csv", HEADER, "a,,nan,,NaN,0", "b,10.0,20.0,30.0,40.0,1", "b,500,500,524,524,1", "c,,,,,0"
    )
    folder.table(
        "stage_2_detailed_class_info.csv",
        "patientId,class",
        "a,Normal",
        "b,Lung Opacity",
        "b,Lung Opacity",
        "c,No Lung Opacity / Not Normal",
    )
    folder.picture("stage_2_train_images/a.png", "stage_2_train_images/b.png")
    folder.picture("stage_2_test_images/t.png")
    return folder


def test_rows_of_one_image_are_united(rsna):
    negative, positive = RsnaPneumonia(rsna.root).cases()
    assert negative.labels == {"Pneumonia": False}
    assert not negative.regions
    assert positive.labels == {"Pneumonia": True}
    assert positive.regions["Pneumonia"].frame == (1024, 1024)
    assert positive.regions["Pneumonia"].area == 30 * 40 + 524 * 524
    assert positive.patient_id == "b"


def test_counts_are_of_images_not_of_rows(rsna):
    report = RsnaPneumonia(rsna.root).report()
    assert report.counts == {
        "rows": 4,
        "images": 3,
        "positive images": 1,
        "boxes": 2,
        "class Lung Opacity": 1,
        "class No Lung Opacity / Not Normal": 1,
        "class Normal": 1,
    }
    assert report.missing == ("c",)
    text = "\n".join(report.lines())
    assert "images: 3 (published: 26,684)" in text
    assert "pictures that no table names; they are unknown, not negatives: 1 (t)" in text


def test_the_nih_patient_by_a_cross_reference(rsna, another):
    crossref = another.table("x.csv", "patientId,nih_image", "b,00000123_004.png")
    assert [c.patient_id for c in RsnaPneumonia(rsna.root, crossref=crossref).cases()] == ["a", "123"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("d,1,2,3,4,0", "contradict each other"),
        ("d,,,,,1", "contradict each other"),
        ("b,,,,,0", "rows of one image contradict"),
        ("d,1,2,3,,1", "not four numbers"),
        ("d,1000,2,30,4,1", "beyond its frame"),
        ("d,,,,,", "no label"),
        (",,,,,0", "no image"),
    ],
)
def test_a_bad_row_stops_and_is_named(rsna, row, words):
    rsna.table("stage_2_train_labels.csv", HEADER, "b,10.0,20.0,30.0,40.0,1", row)
    dataset = RsnaPneumonia(rsna.root)
    with pytest.raises(DatasetError, match=words) as caught:
        dataset.cases()
    assert "row 3" in str(caught.value)


@pytest.mark.parametrize("negative", ["nan", ""])
@pytest.mark.parametrize("prefix", ["", "/home/somebody/"])
def test_the_split_of_the_paper(rsna, another, negative, prefix):
    path = "mdai_rsna_project_x9N20BZa_images_2018-07-20-153330/1.2/1.3/{}.dcm"
    split = another.table(
        "test.csv",
        "ID,img_path,boxes,classes",
        f"b,{prefix}{path.format('1.2.840.1')},611.0;553.0;206.0;205.0|10.0;10.0;20.0;20.0,1",
        f"q,{prefix}{path.format('1.2.840.2')},{negative},0",
    )
    rsna.write(path.format("1.2.840.2"), b"")
    first, second = RsnaPneumonia(rsna.root, split_file=split).cases()
    assert first.image.name == "b.png"  # a Kaggle download serves by id
    assert first.regions["Pneumonia"].area == 206 * 205 + 400
    assert second.image.name == "1.2.840.2.dcm"  # and one of md.ai by the path
    assert second.labels == {"Pneumonia": False}


def test_a_split_of_ids_takes_its_truth_from_the_table(rsna, another):
    split = another.table("ids.csv", "patientId", "b")
    (case,) = RsnaPneumonia(rsna.root, split_file=split).cases()
    assert case.regions["Pneumonia"].area == 30 * 40 + 524 * 524
    split = another.table("ids.csv", "patientId", "b", "unheard")
    with pytest.raises(DatasetError) as caught:
        RsnaPneumonia(rsna.root, split_file=split).cases()
    assert "unheard" in str(caught.value)


def test_a_bad_box_in_a_split_is_named(rsna, another):
    split = another.table("t.csv", "ID,boxes,classes", "b,1;2;3,1")
    with pytest.raises(DatasetError, match="not four numbers"):
        RsnaPneumonia(rsna.root, split_file=split).cases()


def test_a_column_that_is_missing_is_named(rsna):
    rsna.table("stage_2_train_labels.csv", "patientid,x,y,width,heigth,Target", "a,,,,,0")
    with pytest.raises(DatasetError, match="'height'") as caught:
        RsnaPneumonia(rsna.root).cases()
    assert "did you mean 'heigth'?" in str(caught.value)


@pytest.mark.data
def test_the_sample_folder(data_root):
    expected = json.loads((data_root / "rsna" / "expected.json").read_text())
    dataset = RsnaPneumonia(data_root / "rsna", crossref=data_root / "rsna" / "nih_crossref.csv")
    counts, found = expected["counts"], dataset.report().counts
    assert (found["rows"], found["images"]) == (counts["label_rows"], counts["patients"])
    assert (found["positive images"], found["boxes"]) == (counts["positive_patients"], counts["boxes"])
    assert {k.removeprefix("class "): v for k, v in found.items() if k.startswith("class")} == counts[
        "classes_per_patient"
    ]
    assert len(dataset.report().missing) == counts["labelled_without_dicom"]
    cases = {str(c.image.relative_to(data_root / "rsna")): c for c in dataset.cases()}
    assert cases.keys() == {f["file"] for f in expected["files"]}
    for file in expected["files"]:
        if "boxes_xywh" in file:
            region = cases[file["file"]].regions.get("Pneumonia")
            boxes = [] if region is None else [[b.x0, b.y0, b.width, b.height] for b in region.boxes]
            assert boxes == file["boxes_xywh"]
            assert (region.area if region else 0) == file["union_mask_area_1024"]
    assert not dataset.check()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (("b,00000123_004.png", "b,00000124_004.png"), "two lines of a table are about one patientId"),
        (("z-9,00000123_004.png",), "nothing in the cross-reference to NIH fits"),
        (("b",), "fewer fields"),
    ],
)
def test_a_cross_reference_that_cannot_be_right(rsna, another, rows, words):
    crossref = another.table("x.csv", "patientId,nih_image", *rows)
    with pytest.raises(DatasetError, match=words):
        RsnaPneumonia(rsna.root, crossref=crossref).cases()
