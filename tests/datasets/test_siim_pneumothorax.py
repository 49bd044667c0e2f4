"""The SIIM loader: a relative column-major code, several rows an image, blanks in names and values."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from medground.datasets.siim_pneumothorax import SiimPneumothorax
from medground.errors import DatasetError, RegionError


@pytest.fixture
def siim(folder):
    folder.table(
        "train-rle.csv",
        "ImageId, EncodedPixels",
        "1.2.a,1025 2 1022 1",  # column 1, rows 1 and 2; then column 2, row 1
        "1.2.b, -1",
        "1.2.a, 0 1",
        "1.2.c,-1",
    )
    for name in ("a", "b", "unlabelled"):
        folder.write(f"dicom-images-train/9.{name}/8.{name}/1.2.{name}.dcm", b"")
    return folder


def test_the_code_is_relative_column_major_and_united(siim):
    case = SiimPneumothorax(siim.root).cases()[0]
    assert case.labels == {"Pneumothorax": True}
    mask = case.regions["Pneumothorax"].mask()
    assert mask.shape == (1024, 1024)
    assert sorted(zip(*np.nonzero(mask), strict=True)) == [(0, 0), (1, 1), (1, 2), (2, 1)]


def test_images_without_rows_are_unknown_and_absent_ones_are_missing(siim):
    dataset = SiimPneumothorax(siim.root)
    assert [c.case_id for c in dataset.cases()] == ["1.2.a", "1.2.b"]
    assert dataset.cases()[1].labels == {"Pneumothorax": False}
    report = dataset.report()
    assert report.missing == ("1.2.c",)
    assert report.counts == {"rows": 4, "images": 3, "positive images": 1}
    assert any("unknown, not negatives: 1 (1.2.unlabelled)" in line for line in report.lines())


def test_stage_two_goes_before_stage_one(siim):
    siim.table("stage_2_train.csv", "ImageId,EncodedPixels", "1.2.a, -1", "1.2.b, 5 5")
    assert [c.labels["Pneumothorax"] for c in SiimPneumothorax(siim.root).cases()] == [False, True]
    assert [c.labels["Pneumothorax"] for c in SiimPneumothorax(siim.root, stage=1).cases()] == [True, False]


def test_a_row_of_minus_one_beside_a_mask_is_told(siim):
    siim.table("train-rle.csv", "ImageId,EncodedPixels", "1.2.a,-1", "1.2.a,5 5")
    dataset = SiimPneumothorax(siim.root)
    assert dataset.cases()[0].labels == {"Pneumothorax": True}
    assert any("the mask counts" in line for line in dataset.report().lines())


def test_split_by_rows_or_by_images(siim, another):
    split = another.table("test.csv", "ImageId,EncodedPixels", "1.2.a, 0 1", "1.2.b, -1", "1.2.a, 1025 2 1022 1")
    images = SiimPneumothorax(siim.root, split_file=split).cases()
    assert [c.case_id for c in images] == ["1.2.a", "1.2.b"]
    rows = SiimPneumothorax(siim.root, split_file=split, cases_are="rows").cases()
    assert [c.case_id for c in rows] == ["1.2.a", "1.2.b", "1.2.a#2"]
    assert {c.patient_id for c in rows} == {"1.2.a", "1.2.b"}
    assert [c.regions["Pneumothorax"].area for c in rows if c.regions] == [4, 4]
    assert rows[0].image == rows[2].image


def test_masks_are_united_over_the_tables_that_the_user_names(siim, another):
    parts = [another.table(f"{i}.csv", "ImageId,EncodedPixels", f"1.2.a,{i} 1") for i in (3, 5, 7)]
    (siim.root / "train-rle.csv").unlink()
    (case,) = SiimPneumothorax(siim.root, tables=parts[:2], split_file=parts[2]).cases()
    assert case.regions["Pneumothorax"].area == 3


@pytest.mark.parametrize(
    ("code", "words"),
    [("5 5 5", "malformed"), ("1048570 7", "leaves its picture"), ("5 0", "empty run"), ("5 x", "whole numbers")],
)
def test_a_bad_code_is_named_by_its_image(siim, code, words):
    siim.table("train-rle.csv", "ImageId,EncodedPixels", f"1.2.a,{code}")
    dataset = SiimPneumothorax(siim.root)
    with pytest.raises(RegionError, match=words) as caught:
        dataset.cases()[0].regions["Pneumothorax"]
    assert "1.2.a" in str(caught.value)
    (problem,) = dataset.check()
    assert words in str(problem)


def test_a_row_without_a_code_is_no_negative(siim):
    siim.table("train-rle.csv", "ImageId,EncodedPixels", "1.2.a,5 5", "1.2.b,")
    with pytest.raises(DatasetError, match="lacks its image or its code"):
        SiimPneumothorax(siim.root).cases()


@pytest.mark.data
@pytest.mark.parametrize("stage", [1, 2, None])
def test_the_sample_folder(data_root, stage):
    root = data_root / "siim"
    expected = json.loads((root / "expected.json").read_text())
    dataset = SiimPneumothorax(root, stage=stage)
    counts, report = expected["counts"], dataset.report()
    assert report.counts["rows"] == counts["csv_rows"]
    assert report.counts["images"] == counts["ids"]
    assert report.counts["positive images"] == counts["positive_ids"]
    assert report.missing == (expected["id_without_dicom"],)
    cases = {c.case_id: c for c in dataset.cases()}
    for image in expected["images"]:
        case = cases.get(image["ImageId"])
        if image["state"] == "no label row":
            assert case is None
            continue
        assert str(case.image.relative_to(root)) == image["file"]
        assert case.labels["Pneumothorax"] is (image["state"] == "positive")
        if image["state"] == "positive":
            mask = case.regions["Pneumothorax"].mask()
            digest = hashlib.sha256(np.packbits(mask).tobytes()).hexdigest()
            assert digest == image["mask_sha256_packbits_row_major"]
            assert int(case.regions["Pneumothorax"].mask_at((224, 224)).sum()) == image["area_after_nearest_224"]
