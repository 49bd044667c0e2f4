"""The MIMIC-CXR loader: JPG and DICOM layouts, study labels, the official split, MS-CXR's boxes."""

from __future__ import annotations

import gzip

import pytest

from medground.datasets.mimic_cxr import MimicCxr
from medground.errors import DatasetError

A, B, C, D = "aaaa-1", "bbbb-2", "cccc-3", "dddd-4"


@pytest.fixture
def mimic(folder):
    split = "\n".join(
        [
            "dicom_id,study_id,subject_id,split",
            f"{A},50000001,10000032,test",
            f"{B},50000001,10000032,test",
            f"{C},50000002,11000764,test",
            f"{D},50000003,12000123,train",
        ]
    )
    folder.write("mimic-cxr-2.0.0-split.csv.gz", gzip.compress(split.encode()))
    folder.table(
        "mimic-cxr-2.0.0-metadata.csv",
        "dicom_id,subject_id,study_id,ViewPosition,Rows,Columns",
        f"{A},10000032,50000001,PA,20,30",
        f"{B},10000032,50000001,LATERAL,20,30",
        f"{C},11000764,50000002,AP,20,30",
        f"{D},12000123,50000003,AP,20,30",
    )
    folder.table(
        "mimic-cxr-2.0.0-chexpert.csv",
        "subject_id,study_id,Atelectasis,Cardiomegaly,No Finding,Pleural Effusion,Pneumothorax,Support Devices",
        "10000032,50000001,1.0,0.0,,-1.0,,",
        "11000764,50000002,,,1.0,,,",
        "12000123,50000003,,,,1.0,,1.0",
    )
    folder.table(
        "MS_CXR_Local_Alignment_v1.1.0.csv",
        "dicom_id,category_name,label_text,path,x,y,w,h,image_width,image_height,split",
        f"{A},Atelectasis,left base,files/p10/x.jpg,3,4,10,6,30,20,train",
        f"{A},Atelectasis,again,files/p10/x.jpg,3,4,10,6,30,20,train",
        f"{A},Pneumothorax,,files/p10/x.jpg,25,0,9,5,30,20,train",
        f"{D},Edema,,files/p12/x.jpg,0,0,5,5,30,20,test",
    )
    for image, place in (
        (A, "p10/p10000032/s50000001"),
        (B, "p10/p10000032/s50000001"),
        (C, "p11/p11000764/s50000002"),
        (D, "p12/p12000123/s50000003"),
    ):
        folder.picture(f"files/{place}/{image}.jpg", size=(30, 20))
    return folder


def test_frontal_images_of_the_official_split_with_study_labels(mimic):
    first, second = MimicCxr(mimic.root).cases()
    assert (first.case_id, first.patient_id, first.view) == (A, "10000032", "PA")
    assert first.labels["Atelectasis"] is True
    assert first.labels["Cardiomegaly"] is False
    assert first.labels["Pleural Effusion"] is None  # uncertain
    assert first.labels["Pneumothorax"] is True  # by its box
    assert first.labels["Edema"] is None  # not mentioned
    assert second.case_id == C
    told = ("Atelectasis", "Cardiomegaly", "Pleural Effusion", "Pneumothorax")
    assert all(second.labels[finding] is False for finding in told)  # read as normal
    assert second.labels["Edema"] is None  # no column


def test_boxes_are_united_once_and_clipped(mimic):
    first = MimicCxr(mimic.root).cases()[0]
    assert first.regions["Atelectasis"].area == 60
    assert first.regions["Pneumothorax"].frame == (30, 20)
    assert first.regions["Pneumothorax"].area == 25


def test_the_boxed_images_whatever_their_split_and_another_split(mimic):
    assert [c.case_id for c in MimicCxr(mimic.root, split="boxed").cases()] == [A, D]
    assert [c.case_id for c in MimicCxr(mimic.root, split="train", findings=["Edema"]).cases()] == [D]
    assert [c.case_id for c in MimicCxr(mimic.root, split="test", views="all").cases()] == [A, B, C]


def test_the_dicom_layout_and_a_folder_of_copies(mimic, another):
    for picture in mimic.root.rglob("*.jpg"):
        picture.rename(picture.with_suffix(".dcm"))
    assert MimicCxr(mimic.root).cases()[0].image.suffix == ".dcm"
    another.picture(f"p10/p10000032/s50000001/{A}.png", size=(3, 2))
    (case,) = MimicCxr(mimic.root, image_dir=str(another.root)).cases()
    assert case.image.suffix == ".png"
    assert case.regions["Atelectasis"].frame == (30, 20)


def test_without_boxes_or_labels(mimic):
    (mimic.root / "MS_CXR_Local_Alignment_v1.1.0.csv").unlink()
    cases = MimicCxr(mimic.root, labels="none").cases()
    assert all(not c.regions and set(c.labels.values()) == {None} for c in cases)
    with pytest.raises(DatasetError, match=r"MS-CXR are absent"):
        MimicCxr(mimic.root, split="boxed").cases()


def test_boxes_from_a_folder_elsewhere(mimic, another):
    table = mimic.root / "MS_CXR_Local_Alignment_v1.1.0.csv"
    table.rename(another.root / table.name)
    assert len(MimicCxr(mimic.root, split="boxed", boxes=another.root).cases()) == 2


def test_a_table_cannot_lead_outside(mimic):
    mimic.table(
        "mimic-cxr-2.0.0-split.csv",
        "dicom_id,study_id,subject_id,split",
        f"{A},50000001,10000032,test",
        "../../../../../etc/x,1,10000032,test",
    )
    with pytest.raises(DatasetError, match="outside"):
        MimicCxr(mimic.root).cases()


@pytest.mark.parametrize(
    ("table", "lines"),
    [
        ("mimic-cxr-2.0.0-split.csv", ("dicom_id,study_id,subject_id,split", f"{A},1,10,exam")),
        (
            "MS_CXR_Local_Alignment_v1.1.0.csv",
            ("dicom_id,category_name,x,y,w,h,image_width,image_height", f"{A},Gallstone,1,1,2,2,30,20"),
        ),
        (
            "MS_CXR_Local_Alignment_v1.1.0.csv",
            ("dicom_id,category_name,x,y,w,h,image_width,image_height", f"{A},Edema,40,1,2,2,30,20"),
        ),
    ],
)
def test_rows_that_cannot_be_read_are_problems(mimic, table, lines):
    mimic.table(table, *lines)
    with pytest.raises(DatasetError):
        MimicCxr(mimic.root).cases()


def test_label_tables_of_other_studies_are_refused(mimic):
    table = mimic.root / "mimic-cxr-2.0.0-chexpert.csv"
    table.write_text(table.read_text().replace(",5000000", ",s5000000"))
    with pytest.raises(DatasetError, match=r"nothing in mimic-cxr-2\.0\.0-chexpert\.csv fits") as caught:
        MimicCxr(mimic.root).cases()
    assert "a9 there" in str(caught.value)


def test_studies_written_as_decimal_numbers_are_the_same(mimic):
    table = mimic.root / "mimic-cxr-2.0.0-chexpert.csv"
    plain = [case.labels for case in MimicCxr(mimic.root).cases()]
    table.write_text(table.read_text().replace("50000001", "50000001.0").replace("50000002", "50000002.0"))
    dataset = MimicCxr(mimic.root)
    assert [case.labels for case in dataset.cases()] == plain
    assert any("once ids were written one way" in line for line in dataset.report().lines())
