"""Anatomy masks: stand-ins that say so, and every layout of a user's folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from medground.benchmarks.heal_medvqa.lesions import lesions_of, pieces, touching
from medground.benchmarks.heal_medvqa.mask_folders import MaskFolder
from medground.benchmarks.heal_medvqa.masks import CXAS, Stripes, resized, with_lungs
from medground.errors import DatasetError, RegionError
from medground.imaging.regions import Region

SIZE = (12, 9)


@pytest.fixture
def lower() -> np.ndarray:
    mask = np.zeros((9, 12), bool)
    mask[6:9, 1:4] = True
    return mask


def picture(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array.astype(np.uint8)).save(path)


def test_halves_and_thirds_part_the_picture_and_say_so() -> None:
    masks = Stripes().masks("x", SIZE)
    thirds = [mask for name, mask in masks.items() if len(name.split()) == 3]
    assert len(thirds) == 6
    assert np.array_equal(np.sum(thirds, axis=0), np.ones((9, 12)))
    assert masks["right lung"][:, :6].all()
    assert not masks["right lung"][:, 6:].any()
    assert masks["left upper lung"][0, -1]
    assert "crude stand-in" in Stripes().statement
    assert set(Stripes(thirds=False).masks("x", SIZE)) == {"right lung", "left lung"}


def test_masks_by_case_and_by_anatomy(tmp_path: Path, lower: np.ndarray) -> None:
    picture(tmp_path / "one/c1/right_lower_lung.png", lower * 255)
    picture(tmp_path / "one/c1/heart.png", ~lower * 255)
    picture(tmp_path / "two/right lower lung/c1.png", lower * 255)
    for name in ("one", "two"):
        masks = MaskFolder(tmp_path / name).masks("c1", SIZE)
        assert np.array_equal(masks["right lower lung"], lower)
        assert np.array_equal(masks["right lung"], lower)  # made from its thirds
        assert MaskFolder(tmp_path / name).masks("unknown", SIZE) == {}


def test_arrays_and_label_maps(tmp_path: Path, lower: np.ndarray) -> None:
    (tmp_path / "npz").mkdir()
    np.savez(tmp_path / "npz/c1.npz", **{"right lower lung": lower, "heart": ~lower})
    picture(tmp_path / "map/c1.png", lower * 7)
    labels = MaskFolder(tmp_path / "map", labels={7: "right lower lung"})
    for source in (MaskFolder(tmp_path / "npz"), labels):
        assert np.array_equal(source.masks("c1", SIZE)["right lower lung"], lower)
    with pytest.raises(DatasetError, match="what their numbers are"):
        MaskFolder(tmp_path / "map").masks("c1", SIZE)


def test_run_lengths_in_an_order_that_is_told_or_found(tmp_path: Path, lower: np.ndarray) -> None:
    runs = [number for row in (6, 7, 8) for number in (row * 12 + 1, 3)]
    line = {"case_id": "c1", "anatomy": "right lower lung", "mask_rle": runs, "mask_h": 9, "mask_w": 12}
    empty = {"case_id": "c1", "anatomy": "heart", "mask_rle": [], "mask_h": 9, "mask_w": 12}
    (tmp_path / "masks.jsonl").write_text("\n".join(map(json.dumps, (line, empty))))
    for source in (MaskFolder(tmp_path), MaskFolder(tmp_path, order="row")):
        masks = source.masks("c1", SIZE)
        assert np.array_equal(masks["right lower lung"], lower)
        assert "heart" not in masks
    (tmp_path / "masks.jsonl").write_text('{"case_id": "c1"}')
    with pytest.raises(DatasetError, match=r"line of run lengths"):
        MaskFolder(tmp_path).masks("c1", SIZE)


def test_the_labels_of_cxas_become_ours(tmp_path: Path, lower: np.ndarray) -> None:
    for label, mask in (("right lung base", lower), ("aortic arch", lower), ("descending aorta", ~lower)):
        picture(tmp_path / f"c1/{label}.png", mask * 255)
    masks = MaskFolder(tmp_path, names=CXAS).masks("c1", SIZE)
    assert np.array_equal(masks["right lower lung"], lower)
    assert masks["aorta"].all()
    assert "heart" not in masks


@pytest.mark.parametrize("array", [np.zeros((4, 4, 3)), None])
def test_pictures_that_are_no_masks_are_refused(tmp_path: Path, array: np.ndarray | None) -> None:
    if array is None:
        (tmp_path / "c1").mkdir()
        (tmp_path / "c1/heart.png").write_bytes(b"no picture")
    else:
        picture(tmp_path / "c1/heart.png", array)
    with pytest.raises(RegionError):
        MaskFolder(tmp_path).masks("c1", SIZE)


def test_a_case_cannot_lead_out_of_the_folder(tmp_path: Path, lower: np.ndarray) -> None:
    picture(tmp_path / "in/c1/heart.png", lower)
    picture(tmp_path / "out/heart.png", lower)
    with pytest.raises(DatasetError, match="outside"):
        MaskFolder(tmp_path / "in").masks("../out", SIZE)


def test_a_folder_without_masks_says_what_it_looked_for(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no anatomy masks"):
        MaskFolder(tmp_path).masks("c1", SIZE)


def test_single_lesions_of_boxes_and_masks() -> None:
    mask = np.zeros((20, 20), bool)
    mask[1:5, 1:5], mask[10:14, 10:14], mask[19, 0] = True, True, True
    assert len(pieces(mask)) == 3
    mask[10:18, 10:18] = True
    assert len(pieces(mask)) == 2  # the single pixel is now a crumb
    region = Region.union(Region.from_boxes((20, 20), [(0, 0, 5, 5), (9, 9, 12, 12)]), Region.from_mask(mask))
    assert [lesion.box is not None for lesion in lesions_of("Mass", region, (20, 20))] == [True, True, False, False]


def test_only_the_lesion_of_the_region_counts_for_its_residue() -> None:
    mask, region = np.zeros((8, 8), bool), np.zeros((8, 8), bool)
    mask[1:3, 1:3], mask[5:7, 5:7], region[:4, :2] = True, True, True
    here = touching(mask, region)
    assert here[1:3, 1:3].all()
    assert not here[5:7, 5:7].any()


def test_masks_are_resized_by_nearest_pixels(lower: np.ndarray) -> None:
    assert np.array_equal(resized(lower, (24, 18)), np.kron(lower, np.ones((2, 2), bool)))
    assert resized(lower, SIZE) is lower
    assert "right lung" in with_lungs({"right lower lung": lower})
