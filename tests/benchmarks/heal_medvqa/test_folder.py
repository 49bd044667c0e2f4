"""The build on disk: the same questions as a run asks, in JSONL and Parquet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.heal_medvqa.choices import Choices
from medground.benchmarks.heal_medvqa.folder import build_folder
from medground.benchmarks.heal_medvqa.pixel_order import CodedMask
from medground.commands.offers import mapping
from medground.datasets.phantom import Phantom
from medground.errors import ConfigError


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("build") / "heal"
    return build_folder(out, Phantom(cases=8, size=64), Choices(quartets=1), pictures=True)


def test_questions_are_the_same_in_both_files(built: Path) -> None:
    lines = [json.loads(line) for line in (built / "questions.jsonl").read_text().splitlines()]
    table = pl.read_parquet(built / "questions.parquet")
    assert table["question_id"].to_list() == [line["question_id"] for line in lines]
    assert {line["question_type"] for line in lines} >= {"closed_yes", "closed_no"}
    assert sum(line["part"] == "quartets" for line in lines) == 8
    for line in lines:
        mask = CodedMask(line["anatomy"], line["mask_rle"], line["mask_h"], line["mask_w"]).read("row")
        assert mask.shape == (64, 64)
        assert mask.any()
        assert line["picture"]
        assert all((built / variant["picture"]).is_file() for variant in line["variants"])
        assert all(variant["question"].endswith("?") for variant in line["variants"])


def test_the_build_says_what_it_did(built: Path) -> None:
    about = json.loads((built / "build.json").read_text())
    assert "drawn with" in about["statement"]
    assert {"finding_anywhere", "by_pair"} <= {floor["name"] for floor in about["floors"]}
    assert len(about["by_sampler"]) == 7
    assert about["counts"]["questions"]
    assert np.isfinite(about["counts"]["images"])


def test_a_second_build_into_the_folder_is_refused(built: Path) -> None:
    with pytest.raises(ConfigError, match="holds a build"):
        build_folder(built, Phantom(cases=2, size=64), Choices())


def test_options_of_the_command_line_become_a_mapping() -> None:
    assert mapping(["a.b=1", "a.c=[x, y]", "d=no"]) == {"a": {"b": 1, "c": ["x", "y"]}, "d": False}
    for wrong in (
        "a",
        "=1",
        "a=[",
    ):
        with pytest.raises(ConfigError):
            mapping([wrong])
    with pytest.raises(ConfigError, match="twice"):
        mapping(["a=1", "a.b=2"])
