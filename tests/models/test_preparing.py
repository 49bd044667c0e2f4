"""Prepared pictures: made in a worker, kept to the last bit, keyed by the pixels and the preparation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image

from medground.imaging.cache import DecodeCache
from medground.imaging.reading import Radiograph, read_radiograph
from medground.models.base import ModelInfo, Prepared, Preparing, Repeatable
from medground.models.common.inputs import IMAGENET_MEAN, IMAGENET_STD, Preprocess
from medground.models.common.preparing import load
from medground.models.controls.blind import Blind
from medground.models.radiology.reference import Reference


class Sees:
    """Prepares as a published model does, and counts how often."""

    name: ClassVar[str] = "sees"
    info: ClassVar[ModelInfo] = ModelInfo("Sees")

    def __init__(self, size: int = 32, equalise: bool = False) -> None:
        self.rule = Preprocess("squash", size, "bilinear", IMAGENET_MEAN, IMAGENET_STD, equalise=equalise)
        self.prepared = 0

    def prepare(self, image: Radiograph) -> Prepared:
        self.prepared += 1
        content, geometry = self.rule(image)
        return Prepared(image.case_id, image.patient_id, image.size, content, geometry)

    def preparation(self) -> str:
        return str(self.rule.describe())

    def predict(self, images: Any, findings: Any) -> Any:
        raise AssertionError("nobody asks")


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "picture.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (70, 50), dtype=np.uint8)).save(path)
    return path


def same(one: Any, other: Any) -> bool:
    return (one.case_id, one.patient_id, one.size, one.geometry) == (
        other.case_id,
        other.patient_id,
        other.size,
        other.geometry,
    ) and one.content.tobytes() == other.content.tobytes()


@pytest.mark.parametrize("model", [Sees(), Sees(equalise=True), Reference()], ids=["plain", "equalised", "reference"])
def test_a_kept_picture_is_the_prepared_one(model: Any, picture: Path, tmp_path: Path) -> None:
    assert isinstance(model, Repeatable)
    expected = model.prepare(read_radiograph(picture, case_id="c", patient_id="p"))
    cache = DecodeCache(tmp_path / "cache")
    for _ in range(2):
        assert same(load(model, picture, cache, case_id="c", patient_id="p"), expected)
    assert same(load(model, picture, case_id="c", patient_id="p"), expected)
    assert load(model, picture, cache, case_id="another").case_id == "another"


def test_a_kept_picture_is_prepared_once_for_all_models_that_prepare_alike(picture: Path, tmp_path: Path) -> None:
    first, alike, other = Sees(), Sees(), Sees(equalise=True)
    for model in (first, alike, first, other, other):
        load(model, picture, DecodeCache(tmp_path / "cache"))
    assert (first.prepared, alike.prepared, other.prepared) == (1, 0, 1)


def test_another_picture_or_a_damaged_entry_is_prepared_anew(picture: Path, tmp_path: Path) -> None:
    model, cache = Sees(), DecodeCache(tmp_path / "cache")
    load(model, picture, cache)
    for entry in (tmp_path / "cache").glob("*.radiograph"):
        entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    assert same(load(model, picture, cache), Sees().prepare(read_radiograph(picture)))
    Image.fromarray(np.full((70, 50), 7, np.uint8)).save(picture)
    load(model, picture, cache)
    assert model.prepared == 3


def test_a_model_that_takes_radiographs_is_given_them(picture: Path, tmp_path: Path) -> None:
    assert isinstance(load(object(), picture, DecodeCache(tmp_path / "cache"), case_id="c"), Radiograph)


def test_a_blind_twin_prepares_what_it_shows_and_is_kept_nowhere(picture: Path, tmp_path: Path) -> None:
    twin = Blind(of=Sees(), picture="noise")
    assert isinstance(twin, Preparing)
    assert not isinstance(twin, Repeatable), "noise depends on the case, not on the pixels"
    cache = DecodeCache(tmp_path / "cache")
    one, two = (load(twin, picture, cache, case_id=case) for case in "ab")
    assert not np.array_equal(one.content, two.content)
    assert not isinstance(Blind(of=object(), picture="grey"), Preparing)
