"""The VinDr-CXR loader: boxes in DICOM pixels, three readers, two releases, empty and overhanging boxes."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from medground.datasets.vindr_cxr import KAGGLE, VindrCxr
from medground.errors import DataError, DatasetError

HEADER = "image_id,rad_id,class_name,x_min,y_min,x_max,y_max"


def dicom(width, height):
    """A DICOM file of zeros."""
    import io

    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage

    meta = FileMetaDataset()
    meta.TransferSyntaxUID, meta.MediaStorageSOPClassUID = ExplicitVRLittleEndian, SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = "1.2.3"
    data = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    data.Rows, data.Columns, data.SamplesPerPixel = height, width, 1
    data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 16, 12, 11, 0
    data.PhotometricInterpretation, data.PixelData = "MONOCHROME2", b"\0" * (width * height * 2)
    buffer = io.BytesIO()
    data.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


@pytest.fixture
def vindr(folder):
    folder.table(
        "annotations/annotations_train.csv",
        HEADER,
        "a,R1,Cardiomegaly,0,0,20,10",
        "a,R2,Cardiomegaly,10,0,30,10",
        "a,R2,Nodule/Mass,-5,35,10,60",
        "a,R3,No finding,,,,",
        "b,R1,Calcification,5,5,5,9",
        "b,R2,Other lesion,,,,",
        "b,R3,Pneumothorax,100,100,120,120",
    )
    folder.table(
        "annotations/image_labels_train.csv",
        "image_id,rad_id,Cardiomegaly,Nodule/Mass,Calcification,Other lesion,Pneumothorax,Other diseases,No finding",
        "a,R1,1,0,0,0,0,0,0",
        "a,R2,1,1,0,0,0,1,0",
        "a,R3,0,0,0,0,0,0,1",
        "b,R1,0,0,1,0,0,1,0",
        "b,R2,0,0,0,1,0,1,0",
        "b,R3,0,0,0,0,1,0,0",
    )
    for name in ("a", "b"):
        folder.write(f"train/{name}.dicom", dicom(40, 50))
    return folder


def train(folder, **options):
    return VindrCxr(folder.root, split="train", **options)


def test_readers_are_united_in_the_frame_of_the_header(vindr):
    first, second = train(vindr).cases()
    assert first.regions["Cardiomegaly"].frame == (40, 50)
    assert first.regions["Cardiomegaly"].area == 30 * 10
    assert first.regions["Nodule/Mass"].bbox() == (0, 35, 10, 50)
    assert [f for f, label in first.labels.items() if label] == ["Cardiomegaly", "Nodule/Mass"]
    assert [f for f, label in second.labels.items() if label] == ["Calcification", "Other lesion", "Pneumothorax"]
    assert "Calcification" not in second.regions
    assert second.regions["Pneumothorax"].is_empty  # outside its picture
    assert second.notes == ("2 rows without a usable box",)


def test_what_was_mended_is_counted(vindr):
    dataset = train(vindr)
    assert not dataset.check()
    text = "\n".join(dataset.report().lines())
    for words in (
        "boxes without area dropped: 1",
        "rows that name a finding, or none, without a box: 2",
        "boxes clipped at the edge of their picture: 1 (a)",
        "boxes outside their picture dropped: 1 (b)",
    ):
        assert words in text
    assert dataset.report().counts == {
        "train rows": 7,
        "train images": 2,
        "train images with boxes": 2,
        "train readers": 3,
    }


def test_agreement_of_two_readers(vindr):
    first, second = train(vindr, readers="majority", findings=["Cardiomegaly", "Nodule/Mass", "Other disease"]).cases()
    assert first.regions["Cardiomegaly"].area == 10 * 10
    assert set(first.regions) == {"Cardiomegaly"}
    assert first.labels == {"Cardiomegaly": True, "Nodule/Mass": False, "Other diseases": False}
    assert second.labels["Other diseases"] is True


def test_one_reader_alone(vindr):
    first, second = train(vindr, readers="R1").cases()
    assert first.regions["Cardiomegaly"].area == 20 * 10
    assert first.labels["Nodule/Mass"] is False
    assert second.labels["Pneumothorax"] is False
    vindr.table("annotations/annotations_train.csv", HEADER, "a,R7,Cardiomegaly,0,0,20,10")
    (vindr.root / "annotations/image_labels_train.csv").unlink()
    assert [c.case_id for c in train(vindr, readers="R7").cases()] == ["a"]
    with pytest.raises(DatasetError, match="no reader 'R9'"):
        train(vindr, readers="R9").cases()


@pytest.mark.parametrize("column", ["Other disease", "Other diseases", " Other diseases "])
def test_the_test_part_is_a_consensus(folder, column):
    folder.table("annotations/annotations_test.csv", "class_name,image_id,x_max,x_min,y_max,y_min", "ILD,c,9,1,8,2")
    folder.table("annotations/image_labels_test.csv", f"image_id,ILD,{column}", "c,1,1", "d,0,0")
    folder.write("test/c.dicom", dicom(10, 20))
    folder.write("test/d.dicom", dicom(10, 20))
    dataset = VindrCxr(folder.root, findings=["ILD", "Other disease", "Edema"])
    first, second = dataset.cases()
    assert first.labels == {"ILD": True, "Other diseases": True, "Edema": None}
    assert second.labels == {"ILD": False, "Other diseases": False, "Edema": None}
    assert first.regions["ILD"].area == 8 * 6
    with pytest.raises(DatasetError, match="consensus"):
        VindrCxr(folder.root, readers="majority").cases()


def test_without_a_label_table_global_findings_are_unknown(vindr):
    (vindr.root / "annotations/image_labels_train.csv").unlink()
    case = train(vindr, findings=["ILD", "Edema", "COPD", "Other lesion"]).cases()[1]
    assert case.labels == {"ILD": False, "Edema": False, "COPD": None, "Other lesion": True}


@pytest.fixture
def kaggle(folder):
    folder.table(
        "train.csv",
        "image_id,class_name,class_id,rad_id,x_min,y_min,x_max,y_max",
        "a,Cardiomegaly,3,R8,1,2,11,12",
        "a,Other lesion,9,R9,1.0,2.0,3.0,4.0",
        *(f"b,No finding,14,R{i},,,," for i in (8, 9, 10)),
        "a,ILD,5,R10,1,2,3,4",
    )
    folder.write("train/a.dicom", dicom(40, 50))
    folder.write("train/b.dicom", dicom(40, 50))
    return folder


def test_the_release_of_kaggle(kaggle):
    dataset = train(kaggle)
    assert tuple(dataset.findings) == KAGGLE
    first, second = dataset.cases()
    assert [f for f, label in first.labels.items() if label] == ["Cardiomegaly", "ILD", "Other lesion"]
    assert second.labels == dict.fromkeys(KAGGLE, False)
    assert dataset.report().counts == {
        "Kaggle rows": 6,
        "Kaggle images": 2,
        "Kaggle images with boxes": 1,
        "Kaggle readers": 3,
    }
    rare = train(kaggle, findings=["Rib fracture", "ILD"]).cases()
    assert rare[1].labels == {"Rib fracture": None, "ILD": False}  # folded into Other lesion: unknown, not absent
    with pytest.raises(DatasetError, match="test part of Kaggle") as caught:
        VindrCxr(kaggle.root).cases()
    assert "split: train" in str(caught.value)


def test_a_resized_copy_needs_the_original_size(kaggle, another):
    (kaggle.root / "train/a.dicom").unlink()
    kaggle.picture("train/a.png", size=(20, 25))
    dataset = train(kaggle)
    with pytest.raises(DataError, match="this copy may have another size"):
        dataset.cases()[0].regions["ILD"]
    assert len(dataset.check()) == 3
    assert train(kaggle, copies="original").cases()[0].regions["ILD"].frame == (20, 25)
    for header in ("image_id,width,height", " image_id, width ,height"):
        sizes = another.table("sizes.csv", header, "a,40,50", "a,40,50", "b,40,50")
        assert train(kaggle, sizes=sizes).cases()[0].regions["ILD"].frame == (40, 50)
    arrays = another.table("meta.csv", "image_id,dim0,dim1", "a,50,40")
    assert train(kaggle, sizes=arrays).cases()[0].regions["ILD"].frame == (40, 50)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["image_id,w,h", "a,1,2"], "lacks a column"),
        (["image_id,width,height", "a,1.5,2"], "whole numbers"),
        (["image_id,width,height", "a,,2"], "whole numbers"),
        (["image_id,width,height", "b,40,50"], "lacks an image"),
    ],
)
def test_a_bad_table_of_sizes(kaggle, another, rows, words):
    sizes = another.table("sizes.csv", *rows)
    with pytest.raises(DatasetError, match=words):
        train(kaggle, sizes=sizes).cases()[0].regions["ILD"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a,R1,Cardiomegalie,0,0,20,10", "names no class"),
        (",R1,Cardiomegaly,0,0,20,10", "lacks its image"),
        ("a,R1,Cardiomegaly,0,,20,10", "lacks a coordinate"),
    ],
)
def test_a_bad_row_is_named(vindr, row, words):
    vindr.table("annotations/annotations_train.csv", HEADER, "a,R1,Cardiomegaly,NaN,nan,,", row)
    with pytest.raises(DatasetError, match=words) as caught:
        train(vindr).cases()
    assert "row 3" in str(caught.value)


def test_tables_are_read_without_opening_pictures(vindr):
    for path in (vindr.root / "train").iterdir():
        path.write_bytes(b"no picture")
    dataset = train(vindr)
    cases = dataset.cases()
    assert "Cardiomegaly" in cases[0].regions
    assert dataset.fingerprint()
    with pytest.raises(DataError, match="neither PNG, JPEG nor DICOM"):
        cases[0].regions["Cardiomegaly"]
    assert len(dataset.check()) == 3


def test_cases_travel_to_other_processes(vindr):
    case = pickle.loads(pickle.dumps(train(vindr, readers="majority").cases()[0]))
    assert case.regions["Cardiomegaly"].area == 100


def test_the_fingerprint_follows_boxes_and_readers(vindr):
    seen = {train(vindr).fingerprint(), train(vindr, readers="majority").fingerprint()}
    path = vindr.root / "annotations/annotations_train.csv"
    path.write_text(path.read_text().replace("10,0,30,10", "10,0,31,10"))
    assert len(seen | {train(vindr).fingerprint()}) == 3


@pytest.mark.data
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_sample_folder(data_root, split):
    root = data_root / "vindr"
    expected = json.loads((root / "expected.json").read_text())
    everything = (*VindrCxr.info.findings, *VindrCxr.info.further)
    dataset = VindrCxr(root, split=split, findings=everything)
    assert dataset.report().counts[f"{split} rows"] == expected["counts"][f"annotation_rows_{split}"]
    cases = {c.case_id: c for c in dataset.cases()}
    assert cases.keys() == {i for i, image in expected["images"].items() if image["split"] == split}
    for name, case in cases.items():
        image = expected["images"][name]
        assert str(case.image.relative_to(root)) == image["file"]
        assert {f: r.area for f, r in case.regions.items()} == image["union_area"]
        assert {r.frame for r in case.regions.values()} <= {tuple(image["size_wh"])}
        for finding, boxes in image["boxes"].items():
            found = sorted(b.corners for b in case.regions[finding].boxes)
            assert np.array_equal(found, sorted(tuple(b["x0y0x1y1"]) for b in boxes))
        named = {f for f, label in case.labels.items() if label}
        assert named == {"Other diseases" if f == "Other disease" else f for f in image["image_labels_any_reader"]}
        assert sum(len(r.notes) for r in case.regions.values()) == image["rows_clipped_to_frame"]
        lost = int(case.notes[0].split()[0]) if case.notes else 0
        assert lost == image["rows_without_usable_box"]
    assert not dataset.check()


@pytest.mark.data
def test_agreement_in_the_sample_folder(data_root):
    root = data_root / "vindr"
    images = json.loads((root / "expected.json").read_text())["images"]
    for case in VindrCxr(root, split="train", readers="majority").cases():
        for finding, area in images[case.case_id]["agreement_mask_area_2_of_3"].items():
            region = case.regions.get(finding)
            assert (0 if region is None else region.area) == area


def test_what_a_label_table_does_not_tell_is_unknown(vindr):
    path = vindr.root / "annotations/image_labels_train.csv"
    path.write_text(path.read_text().replace("a,R1,1,0,0", "a,R1,1,0,") + "d,R1,,,,,,1,0\n")
    vindr.write("train/d.dicom", dicom(4, 4))
    annotations = vindr.root / "annotations/annotations_train.csv"
    annotations.write_text(annotations.read_text() + "e,R1,ILD,0,0,2,2\n")
    vindr.write("train/e.dicom", dicom(4, 4))
    dataset = train(vindr, findings=["Calcification", "Pneumothorax", "Other diseases"])
    labels = {c.case_id: c.labels for c in dataset.cases()}
    assert labels["a"] == {"Calcification": None, "Pneumothorax": False, "Other diseases": True}
    assert labels["d"] == {"Calcification": None, "Pneumothorax": None, "Other diseases": True}
    assert labels["e"] == {"Calcification": False, "Pneumothorax": False, "Other diseases": None}


def test_bad_label_tables_are_named(vindr):
    path = vindr.table("annotations/image_labels_train.csv", "image,Cardiomegaly", "a,1")
    with pytest.raises(DatasetError, match="lacks its columns"):
        train(vindr).cases()
    path.write_text("image_id,Cardiomegaly\n,1\n")
    with pytest.raises(DatasetError, match="lacks its image"):
        train(vindr).cases()
    path.write_text("image_id,rad_id,Cardiomegaly\na,R1,1\na,R2,1\na,R1,0\n")
    with pytest.raises(DatasetError, match="two rows of labels of one reader"):
        train(vindr).cases()


@pytest.mark.parametrize("kept", [0, 100, 200])
def test_a_damaged_header_is_a_problem_of_its_case(vindr, kept):
    (vindr.root / "train/a.dicom").write_bytes(dicom(40, 50)[:kept])
    found = train(vindr).check()
    assert {problem.where.partition(",")[0] for problem in found} == {"a"}


def test_a_release_may_be_asked_for(kaggle):
    with pytest.raises(DatasetError) as caught:
        train(kaggle, release="physionet").cases()
    assert "annotations_train.csv" in str(caught.value)


def test_sizes_as_other_programs_write_them(kaggle, another):
    sizes = another.write("sizes.csv", ";Image_ID;Width;Height\n0;a.dicom;40;50\n1;b.dicom;40;50\n")
    dataset = train(kaggle, sizes=sizes)
    assert dataset.cases()[0].regions["ILD"].frame == (40, 50)
    lines = "\n".join(dataset.report().lines())
    assert "semicolons" in lines
    assert "once ids were written one way" in lines


def test_two_sizes_of_one_image_are_refused(kaggle, another):
    sizes = another.table("sizes.csv", "image_id,width,height", "a,40,50", "b,40,50", "a,41,50")
    with pytest.raises(DatasetError, match="two sizes"):
        train(kaggle, sizes=sizes).cases()


def test_sizes_of_other_images_are_refused(kaggle, another):
    sizes = another.table("sizes.csv", "image_id,width,height", "z-1,40,50")
    with pytest.raises(DatasetError, match="nothing in the table of sizes fits"):
        train(kaggle, sizes=sizes).cases()
