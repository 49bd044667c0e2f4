"""Colours are kept where a file has any, and nothing else about a picture changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from medground.errors import ImageError
from medground.imaging.colour import read_picture
from medground.imaging.reading import Radiograph, read_radiograph
from medground.models.common.inputs import CLIP_MEAN, CLIP_STD, Preprocess
from medground.models.messages import picture_hash


def levels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P"])
def test_colours_of_a_png(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a.png"
    made = Image.fromarray(levels()).convert(mode)
    made.save(path)
    got = read_picture(path, case_id="c", patient_id="p")
    plain = read_radiograph(path, case_id="c", patient_id="p")
    assert np.array_equal(got.colour, np.asarray(made.convert("RGB")))
    assert np.array_equal(got.pixels, plain.pixels)
    assert (got.case_id, got.size, plain.colour) == ("c", (30, 20), None)
    assert picture_hash(got) != picture_hash(plain)


def test_grey_files_have_no_colours(tmp_path: Path) -> None:
    grey = levels()[..., 0]
    for name, array in (("g.png", grey), ("equal.png", np.repeat(grey[..., None], 3, axis=2))):
        Image.fromarray(array).save(tmp_path / name)
        got = read_picture(tmp_path / name)
        assert got.colour is None
        assert np.array_equal(got.pixels, read_radiograph(tmp_path / name).pixels)


def test_colours_of_a_jpeg(tmp_path: Path) -> None:
    Image.fromarray(levels()).save(tmp_path / "a.jpg")
    assert read_picture(tmp_path / "a.jpg").colour.shape == (20, 30, 3)
    (tmp_path / "b.jpg").write_bytes(b"nothing")
    with pytest.raises(ImageError):
        read_picture(tmp_path / "b.jpg")


@pytest.mark.parametrize("rule", ["squash", "center_crop", "pad_square"])
def test_networks_see_each_channel_as_they_see_grey(rule: str) -> None:
    colour = levels()
    prepare = Preprocess(rule, 16, "bicubic", CLIP_MEAN, CLIP_STD, fill=(1, 2, 3))
    picture = Radiograph(colour[..., 0].astype(np.float32) / 255, colour=colour)
    seen, geometry = prepare(picture)
    for c in range(3):
        alone = prepare.normalise(colour[..., c].astype(np.float32) / 255)
        assert np.array_equal(seen[c], alone[c])
    assert geometry == prepare.geometry((30, 20))
    grey, _ = prepare(Radiograph(picture.pixels))
    assert np.array_equal(grey, prepare.normalise(picture.pixels))
