"""The NIH loader: its two odd headers, its two names of one class, and copies of its pictures."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from medground.datasets.nih_chestxray14 import NihChestXray14
from medground.errors import DatasetError

NINE_FIELDS = "Image Index,Finding Label,Bbox [x,y,w,h],,,"
LABEL_HEADER = (
    "Image Index,Finding Labels,Follow-up #,Patient ID,Patient Age,Patient Gender,View Position,"
    "OriginalImage[Width,Height],OriginalImagePixelSpacing[x,y]"
)


@pytest.fixture
def nih(folder):
    folder.table(
        "BBox_List_2017.csv",
        NINE_FIELDS,
        "00000005_001.png,Infiltrate,10.5,20.25,100,50",
        "00000005_001.png,Effusion,600,700,90.0,80.0",
        "00000007_000.png,Nodule,1000,1000,24,24",
    )
    folder.table(
        "Data_Entry_2017_v2020.csv",
        LABEL_HEADER,
        "00000005_001.png,Infiltration|Pleural_Thickening|Effusion,1,5,60,F,AP,2500,2048,0.168,0.168",
        "00000007_000.png,Nodule,0,7,61,M,PA,2500,2048,0.168,0.168",
        "00000009_000.png,No Finding,0,9,62,M,PA,2500,2048,0.168,0.168",
    )
    folder.picture("images/00000005_001.png", "images/00000007_000.png", "images/00000009_000.png")
    return folder


def test_boxes_keep_the_published_frame_and_names(nih):
    first, second = NihChestXray14(nih.root).cases()
    assert (first.case_id, first.patient_id, first.view) == ("00000005_001", "5", "AP")
    assert list(first.regions) == ["Effusion", "Infiltration"]
    region = first.regions["Infiltration"]
    assert region.frame == (1024, 1024)
    assert region.boxes[0].corners == (10.5, 20.25, 110.5, 70.25)
    assert region.bbox() == (10, 20, 110, 70)
    assert second.regions["Nodule"].boxes[0].corners == (1000, 1000, 1024, 1024)


def test_labels_are_those_of_the_image_table(nih):
    case = NihChestXray14(nih.root, findings=["Pleural_Thickening", "Infiltrate", "Hernia"]).cases()[0]
    assert case.labels == {"Pleural Thickening": True, "Infiltration": True, "Hernia": False}


def test_without_image_labels_only_boxes_are_known(nih):
    (nih.root / "Data_Entry_2017_v2020.csv").unlink()
    dataset = NihChestXray14(nih.root)
    case = dataset.cases()[0]
    assert case.labels["Infiltration"] is True
    assert case.labels["Mass"] is None
    assert case.patient_id == "5"
    assert "only boxed findings are known" in "\n".join(dataset.report().lines())


@pytest.mark.parametrize(
    "header",
    [
        "Image Index,Finding Label,Bbox [x,y,w,h]",
        'Image Index,Finding Label,"Bbox [x,y,w,h]"',
        "\ufeff" + NINE_FIELDS,
        " Image Index , Finding Label , x , y , w , h ",
    ],
)
@pytest.mark.parametrize("tail", ["", ",,,"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\n\n"])
def test_every_circulating_form_of_the_box_file(nih, header, tail, newline):
    row = f"00000007_000.png , Infiltrate ,1.5, 2,3,4{tail}"
    nih.write("BBox_List_2017.csv", newline.join([header, row, ""]))
    (case,) = NihChestXray14(nih.root).cases()
    assert case.regions["Infiltration"].boxes[0].corners == (1.5, 2, 4.5, 6)


@pytest.mark.parametrize(
    "header",
    [
        LABEL_HEADER + ",",
        LABEL_HEADER.replace("OriginalImage[Width,Height]", '"OriginalImage[Width,Height]"'),
        LABEL_HEADER.replace("Gender", "Sex"),
        LABEL_HEADER.replace("Finding Labels", " Finding Labels "),
    ],
)
def test_every_circulating_form_of_the_label_file(nih, header):
    (nih.root / "Data_Entry_2017_v2020.csv").unlink()
    nih.table("Data_Entry_2017.csv", header, "00000007_000.png,Mass|Nodule,0,7,61,M,AP,2500,2048,0.168,0.168,")
    case = NihChestXray14(nih.root).cases()[1]
    assert case.labels["Mass"] is True
    assert case.labels["Pneumonia"] is False
    assert case.view == "AP"


@pytest.mark.parametrize("name", ["BBox_List_2017.csv", "Data_Entry_2017_v2020.csv"])
def test_compressed_tables_are_read(nih, name):
    import gzip

    path = nih.root / name
    expected = NihChestXray14(nih.root).fingerprint()
    nih.write(name + ".gz", gzip.compress(path.read_bytes()))
    path.unlink()
    assert NihChestXray14(nih.root).fingerprint() == expected


def test_several_boxes_of_one_class_are_united(nih):
    nih.table("BBox_List_2017.csv", NINE_FIELDS, "00000007_000.png,Mass,0,0,2,2", "00000007_000.png,Mass,1,1,2,2")
    (case,) = NihChestXray14(nih.root).cases()
    assert case.regions["Mass"].area == 7


def test_a_box_that_the_image_labels_lack_still_counts_and_is_told(nih):
    nih.table("BBox_List_2017.csv", NINE_FIELDS, "00000009_000.png,Mass,0,0,2,2")
    dataset = NihChestXray14(nih.root)
    assert dataset.cases()[0].labels["Mass"] is True
    assert any("the box counts" in line for line in dataset.report().lines())


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("00000005_001.png,Infiltrat,1,2,3,4", "cannot be read"),
        ("00000005_001.png,Mass,1,2,3", "cannot be read"),
        ("00000005_001.png,Mass,1,2,3,nan", "cannot be read"),
        ("00000005_001.png,Mass,1,2,0,4", "degenerate"),
        ("00000005_001.png,Mass,2000,1000,300,300", "outside its frame"),
        ("00000005_001.png,Mass,1000,1000,300,300", "beyond its frame"),
    ],
)
def test_a_bad_box_stops_and_is_named(nih, row, words):
    nih.table("BBox_List_2017.csv", NINE_FIELDS, "00000007_000.png,Mass,1,2,3,4", row)
    dataset = NihChestXray14(nih.root)
    with pytest.raises(DatasetError, match=words) as caught:
        dataset.cases()
    assert "line 3" in str(caught.value)
    assert any(words in str(problem) for problem in dataset.check())


def test_rows_that_contradict_each_other_stop(nih):
    row = "00000005_001.png,Mass,1,5,60,F,AP,2500,2048,0.168,0.168"
    path = nih.root / "Data_Entry_2017_v2020.csv"
    path.write_text(path.read_text() + row + "\n")
    with pytest.raises(DatasetError, match="differ"):
        NihChestXray14(nih.root).cases()


def test_a_misspelt_image_label_stops(nih):
    path = nih.root / "Data_Entry_2017_v2020.csv"
    path.write_text(path.read_text().replace("No Finding", "No Finding|Masss"))
    with pytest.raises(DatasetError) as caught:
        NihChestXray14(nih.root).cases()
    assert "Masss" in str(caught.value)


def test_splits(nih):
    nih.table("test_list.txt", "00000007_000.png", "00000009_000.png", "00000011_000.png")
    dataset = NihChestXray14(nih.root, split="test")
    assert [c.case_id for c in dataset.cases()] == ["00000007_000", "00000009_000"]
    assert dataset.report().missing == ("00000011_000",)
    assert dataset.cases()[1].labels == dict.fromkeys(dataset.findings, False)
    assert len(NihChestXray14(nih.root, split="all").cases()) == 3
    with pytest.raises(DatasetError) as caught:
        NihChestXray14(nih.root, split="train_val").cases()
    assert "train_val_list.txt" in str(caught.value)


@pytest.mark.parametrize(
    "layout", ["images/{}.jpg", "images_001/images/{}.png", "images_007/{}.jpeg", "images/a/b/{}.DCM"]
)
def test_pictures_are_found_in_every_layout(nih, layout):
    shutil.rmtree(nih.root / "images")
    for stem in ("00000005_001", "00000007_000"):
        nih.write(layout.format(stem), b"")
    assert [c.image.name.partition(".")[0] for c in NihChestXray14(nih.root).cases()] == [
        "00000005_001",
        "00000007_000",
    ]


def test_a_stem_found_twice_is_an_error_unless_the_folder_is_named(nih):
    nih.picture("images_small/00000005_001.jpg")
    with pytest.raises(DatasetError, match="2 times") as caught:
        NihChestXray14(nih.root).cases()
    assert "image_dir" in str(caught.value)
    dataset = NihChestXray14(nih.root, image_dir="images_small")
    assert [c.image.suffix for c in dataset.cases()] == [".jpg"]
    assert dataset.report().missing == ("00000007_000",)


def test_image_dir_may_lie_elsewhere_and_must_exist(nih, another):
    another.picture("00000005_001.png", "00000007_000.png")
    assert len(NihChestXray14(nih.root, image_dir=str(another.root)).cases()) == 2
    with pytest.raises(DatasetError, match="names no folder"):
        NihChestXray14(nih.root, image_dir="picures").cases()


def test_missing_pictures_are_told_refused_or_kept(nih):
    (nih.root / "images/00000007_000.png").unlink()
    skipping = NihChestXray14(nih.root)
    assert len(skipping.cases()) == 1
    text = "\n".join(skipping.report().lines())
    for words in ("pictures missing: 1", "not negatives: 1 (00000007_000)", "images_*", "nihcc.app.box.com", "Licence"):
        assert words in text
    with pytest.raises(DatasetError, match="1 of 2 pictures"):
        NihChestXray14(nih.root, missing="error").cases()
    kept = NihChestXray14(nih.root, missing="keep").cases()
    assert not kept[1].image.exists()


def test_no_picture_at_all_says_where_they_come_from(nih):
    shutil.rmtree(nih.root / "images")
    with pytest.raises(DatasetError) as caught:
        NihChestXray14(nih.root).cases()
    assert "nihcc.app.box.com" in str(caught.value)
    assert "images_*" in str(caught.value)


def test_a_wrong_root_says_what_was_sought_what_is_there_and_where_it_comes_from(nih):
    for root in (nih.root.parent, nih.root / "images"):
        with pytest.raises(DatasetError) as caught:
            NihChestXray14(root).cases()
        text = str(caught.value)
        assert "BBox_List_2017.csv" in text
        assert f"root: {nih.root}" in text
        assert "nihcc.app.box.com" in text
        assert "attribution" in text
    with pytest.raises(DatasetError, match="does not exist"):
        NihChestXray14(nih.root / "nowhere" / "at all").cases()


def test_links_must_stay_inside_unless_allowed(nih, another):
    another.picture("00000005_001.png", "deep/00000007_000.png")
    shutil.rmtree(nih.root / "images")
    nih.picture("images/other.png")
    (nih.root / "images/00000005_001.png").symlink_to(another.root / "00000005_001.png")
    with pytest.raises(DatasetError, match="outside"):
        NihChestXray14(nih.root).cases()
    assert len(NihChestXray14(nih.root, allow_outside=[another.root]).cases()) == 1
    (nih.root / "images/linked").symlink_to(another.root / "deep")
    (nih.root / "images/loop").symlink_to(nih.root / "images")
    assert len(NihChestXray14(nih.root, allow_outside=[another.root]).cases()) == 2


def test_the_fingerprint_follows_the_truth_and_not_the_place(nih, tmp_path):
    before = NihChestXray14(nih.root).fingerprint()
    moved = Path(shutil.copytree(nih.root, tmp_path / "copy"))
    assert NihChestXray14(moved).fingerprint() == before
    table = moved / "BBox_List_2017.csv"
    table.write_text(table.read_text().replace("10.5", "10.6"))
    assert NihChestXray14(moved).fingerprint() != before


@pytest.mark.data
def test_the_sample_folder(data_root):
    root = data_root / "nih-chestxray14"
    expected = json.loads((root / "expected.json").read_text())
    dataset = NihChestXray14(root, image_dir="images")
    cases = {f"{c.case_id}.png": c for c in dataset.cases()}
    assert cases.keys() == expected["boxes"].keys()
    alias = {"Infiltrate": "Infiltration"}
    for image, boxes in expected["boxes"].items():
        assert {alias.get(b["label"], b["label"]) for b in boxes} == set(cases[image].regions)
        for box in boxes:
            (found,) = cases[image].regions[alias.get(box["label"], box["label"])].boxes
            assert [found.x0, found.y0, found.width, found.height] == pytest.approx(box["xywh"])
    counts = Counter(f for c in cases.values() for f in c.regions)
    assert [counts[f] for f in dataset.findings] == [180, 146, 153, 123, 85, 79, 120, 98]
    report = dataset.report().counts
    assert (report["boxes"], report["images"]) == (expected["counts"]["boxes"], expected["counts"]["images"])
    assert report["patients"] == expected["counts"]["patients"]
    assert report["patients with boxes"] == expected["counts"]["patients_with_boxes"]
    assert not dataset.check()


@pytest.mark.data
def test_the_image_labels_of_the_sample_folder(data_root):
    root = data_root / "nih-chestxray14"
    expected = json.loads((root / "expected.json").read_text())["image_level_positives"]
    everything = (*NihChestXray14.info.findings, *NihChestXray14.info.further)
    cases = NihChestXray14(root, image_dir="images", split="all", findings=everything).cases()
    positives = Counter(f for c in cases for f, label in c.labels.items() if label)
    spelt = {name.replace(" ", "_"): count for name, count in positives.items()}
    assert spelt == {k: v for k, v in expected.items() if k != "No Finding"}
    assert sum(not any(c.labels.values()) for c in cases) == expected["No Finding"]


def test_a_boxed_image_without_a_row_of_labels_is_told(nih):
    path = nih.root / "Data_Entry_2017_v2020.csv"
    path.write_text("\n".join(line for line in path.read_text().splitlines() if "00000005" not in line))
    dataset = NihChestXray14(nih.root)
    labels = dataset.cases()[0].labels
    assert (labels["Infiltration"], labels["Mass"]) == (True, None)
    assert any("without a row of image labels" in line for line in dataset.report().lines())


def test_image_labels_of_other_images_are_refused(nih):
    path = nih.root / "Data_Entry_2017_v2020.csv"
    path.write_text(path.read_text().replace("0000000", "P-000000"))
    with pytest.raises(DatasetError, match="nothing in the table of image labels fits"):
        NihChestXray14(nih.root).cases()
