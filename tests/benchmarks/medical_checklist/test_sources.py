"""Readers of captions, with the flaws that the published files have."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from medground.benchmarks.medical_checklist.sources import medicat, roco, rocov2, table
from medground.benchmarks.medical_checklist.sources.base import may_be_used
from medground.errors import DataError


def test_roco(tmp_path: Path) -> None:
    part = tmp_path / "data" / "test" / "radiology"
    part.mkdir(parents=True)
    (part / "captions.txt").write_text("ROCO_1\t Axial MRI \u2028(naïve).\nROCO_2\tTwo\ttabs.\n", encoding="utf-8")
    (part / "dlinks.txt").write_text("ROCO_1\twget -r ftp://x/PMC77.tar.gz -P d\ta-g01.jpg\n")
    (part / "licences.txt").write_text("ROCO_ID,PMC_ID,CC\nROCO_1,PMC77_a,b-g01.jpg,CC BY\nROCO_2,PMC78_x.jpg,\n")
    one, two = roco.read(tmp_path)
    assert (one.caption, one.paper, one.licence, one.image) == (
        "Axial MRI \u2028(naïve).", "PMC77", "CC BY", "test/radiology/images/ROCO_1.jpg",
    )  # fmt: skip
    assert (two.caption, two.paper, two.licence) == ("Two\ttabs.", "PMC78", "")
    (part / "captions.txt").write_text("ROCO_1 no tab\n")
    with pytest.raises(DataError, match="no tab"):
        list(roco.read(tmp_path))
    (part / "captions.txt").write_bytes("ROCO_1\tM\xe9ni\xe8re\n".encode("latin-1"))
    with pytest.raises(DataError, match="UTF-8"):
        list(roco.read(tmp_path))
    with pytest.raises(DataError, match="does not hold"):
        list(roco.read(tmp_path / "none"))


def test_rocov2(tmp_path: Path) -> None:
    (tmp_path / "test_captions.csv").write_text('ID,Caption\nROCOv2_1,"A ""big"" lung, left."\n')
    (tmp_path / "license_information.csv").write_text("ID,link,licence\nROCOv2_1,x,CC BY\n")
    (only,) = rocov2.read(tmp_path)
    assert (only.caption, only.licence, only.split, only.image) == (
        'A "big" lung, left.',
        "CC BY",
        "test",
        "ROCOv2_1.jpg",
    )
    other = tmp_path / "p"
    other.mkdir()
    pl.DataFrame({"image_id": ["a"], "caption": [" x "]}).write_parquet(other / "train-0.parquet")
    assert [(c.caption, c.split) for c in rocov2.read(other)] == [("x", "train")]
    (tmp_path / "test_captions.csv").write_text("A,B\n1,2\n")
    with pytest.raises(DataError, match="columns"):
        list(rocov2.read(tmp_path))


def test_medicat(tmp_path: Path) -> None:
    row = {
        "pdf_hash": "ab", "fig_uri": "1-Figure1-1.png", "s2_caption": "Figure 1. A lung.", "s2orc_caption": None,
        "oa_info": {"doi": "10.1/x", "oa": {"license": "cc-by"}},
    }  # fmt: skip
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps(row | {"oa_info": None, "pdf_hash": "cd"}) + "\n")
    one, two = medicat.read(path)
    assert (one.caption, one.paper, one.licence, one.image) == (
        "A lung.",
        "10.1/x",
        "cc-by",
        "figures/ab_1-Figure1-1.png",
    )
    assert (two.paper, two.licence) == ("cd", "")
    path.write_text('{"a": 1}\n')
    with pytest.raises(DataError, match="line 1"):
        list(medicat.read(path))


def test_own_tables(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        'id,image,caption,licence\n1,x.png,"A ""lung"",\nleft.",CC0\n', encoding="utf-8-sig"
    )
    (only,) = table.read(tmp_path / "a.csv")
    assert (only.caption, only.source, only.paper, only.licence) == ('A "lung",\nleft.', "a", "x.png", "CC0")
    (tmp_path / "a.jsonl").write_text('{"id": 1, "caption": "A lung.", "paper": "P"}\n')
    assert next(iter(table.read(tmp_path / "a.jsonl"))).paper == "P"
    for bad in ("id,caption\n1\n", "id,caption\n1,a,b\n", "name\nx\n"):
        (tmp_path / "a.csv").write_text(bad)
        with pytest.raises(DataError):
            list(table.read(tmp_path / "a.csv"))
    (tmp_path / "a.jsonl").write_text("[1]\n")
    with pytest.raises(DataError, match="no JSON object"):
        list(table.read(tmp_path / "a.jsonl"))


@pytest.mark.parametrize(
    ("licence", "rule", "may"),
    [("CC BY", "open", True), ("CC0", "open", True), ("CC BY-SA", "open", True), ("CC BY-NC", "open", False),
     ("", "open", False), ("CC BY-ND", "derivatives", False), ("cc-by-nc-nd", "derivatives", False),
     ("", "derivatives", True), ("CC BY-ND", "any", True)],
)  # fmt: skip
def test_licences(licence: str, rule: str, may: bool) -> None:
    assert may_be_used(licence, rule) is may
