"""The circulating Parquet layout: kinds, findings out of the words, pixel order out of the masks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.heal_medvqa.released import picture_bytes, read_release, taken_apart
from medground.errors import DatasetError

ORDERS = {"row_major": "row", "column_major": "column"}


def rows(masks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    words = ["Does {} have Pneumonia?", "Is there Lung Opacity present in {}?", "Is the picture fine?"]
    return [
        {
            "image": {"bytes": b"picture", "path": None},
            "image_id": f"i{n // 2}",
            "question_id": f"q{n}",
            "question": words[n % 3].format(one["anatomy"]),
            "answer": "The answer is Yes",
            "anatomy": one["anatomy"],
            "question_type": 1,
            "mask_rle": one["mask_rle"],
            "mask_h": one["mask_h"],
            "mask_w": one["mask_w"],
        }
        for n, one in enumerate(masks)
    ]


@pytest.fixture
def masks(heal_golden: Path) -> list[dict[str, Any]]:
    return json.loads((heal_golden / "relation/run_lengths.json").read_text())


@pytest.mark.parametrize("written", ORDERS)
def test_a_release_is_read_and_its_order_told(tmp_path: Path, masks: list, written: str, heal_golden: Path) -> None:
    chosen = [one for one in masks if one["order"] in (written, "either")]
    pl.DataFrame(rows(chosen)).write_parquet(tmp_path / "test-00000-of-00001.parquet")
    release = read_release(tmp_path)
    assert release.order == ORDERS[written]
    assert release.counts["rows"] == release.counts["closed_yes"] == 5
    assert release.counts["empty masks"] == 2
    assert release.counts["closed questions of no known form"] == 1
    assert [row.finding for row in release.rows][:3] == ["Pneumonia", "Lung Opacity", ""]
    assert {row.split for row in release.rows} == {"test"}
    golden = np.load(heal_golden / "relation/masks.npz")
    for one, row in zip(chosen, release.rows, strict=True):
        if one["pixels"]:
            assert np.array_equal(row.mask.read(release.order), golden[f"{one['image']}/{one['anatomy']}"] != 0)
    assert picture_bytes(tmp_path / "test-00000-of-00001.parquet", "q0") == b"picture"


def test_words_are_taken_apart_by_the_printed_forms() -> None:
    assert taken_apart("Does right lower lung have pleural effusion?") == ("right lower lung", "pleural effusion")
    assert taken_apart("Is there pneumonia present in the heart ?") == ("heart", "pneumonia")
    assert taken_apart("List all abnormalities in the aorta.") is None


def test_what_is_no_release_is_refused(tmp_path: Path, masks: list) -> None:
    with pytest.raises(DatasetError, match="no shard"):
        read_release(tmp_path)
    pl.DataFrame({"question": ["x"]}).write_parquet(tmp_path / "train-0.parquet")
    with pytest.raises(DatasetError, match="cannot be read"):
        read_release(tmp_path)
    strange = rows(masks[:1])
    strange[0]["question_type"] = 9
    pl.DataFrame(strange).write_parquet(tmp_path / "train-0.parquet")
    with pytest.raises(DatasetError, match="row cannot be read"):
        read_release(tmp_path)
