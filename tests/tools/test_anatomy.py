"""Masks from a folder, what is refused there, and the overlay of what was measured."""

import json

import numpy as np
import pytest
from PIL import Image

from medground.errors import DataError, RegistryError
from medground.imaging import rle
from medground.imaging.reading import Radiograph
from medground.tools import Anatomy, Folder, Measurement, Segmented, measure, tool
from medground.tools.overlay import COLOURS, caption, overlay
from medground.worlds.phantom.scene import make_scene
from medground.worlds.phantom.structures import structures


@pytest.fixture(scope="module")
def anatomy():
    scene = make_scene(1, 2, population="tasks")
    found = structures(scene, 256)
    return Anatomy(256, 256, scene.view, found.masks, found.landmarks)


def written(folder, anatomy, case="a"):
    place = folder / case
    place.mkdir(parents=True)
    for name, mask in anatomy.masks.items():
        Image.fromarray(mask.astype(np.uint8) * 255).save(place / f"{name}.png")
    landmarks = {k: np.asarray(v).tolist() for k, v in anatomy.landmarks.items()}
    (place / "case.json").write_text(json.dumps({"view": anatomy.view, "landmarks": landmarks}))
    return place


def test_a_folder_gives_the_same_measurements(tmp_path, anatomy):
    written(tmp_path, anatomy)
    read = measure(Folder(tmp_path).anatomy("a"))
    own = measure(anatomy)
    assert {t: (m.status, m.rounded) for t, m in read.items()} == {t: (m.status, m.rounded) for t, m in own.items()}


def coded(mask):
    counts = rle.string_from_counts(rle.counts_from_mask(mask))
    return {"size": list(mask.shape), "counts": counts}


@pytest.mark.parametrize("form", ["npz", "rle", "mixed"])
def test_arrays_and_run_length_codes_give_the_same_masks(tmp_path, anatomy, form):
    place = tmp_path / "a"
    place.mkdir()
    names = list(anatomy.masks)
    half = {"npz": names, "rle": [], "mixed": names[::2]}[form]
    if half:
        np.savez_compressed(place / "masks.npz", **{name: anatomy.masks[name] for name in half})
    codes = {name: coded(anatomy.masks[name]) for name in names if name not in half}
    if codes:
        (place / "masks.json").write_text(json.dumps(codes))
    read = Folder(tmp_path).anatomy("a")
    assert set(read.masks) == set(names)
    assert all((read.masks[name] == anatomy.masks[name]).all() for name in names)
    assert read.view is None


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("masks.npz", b"PK no archive", "cannot be read"),
        ("masks.json", b"{", "no JSON"),
        ("masks.json", b"[1]", "mapping"),
        ("masks.json", b'{"heart": {"counts": "x"}}', "is not one"),
        ("masks.json", b'{"heart": {"size": [99999999, 99999999], "counts": [1]}}', "too large"),
        ("masks.json", b'{"heart": {"size": [4, 4], "counts": [99]}}', "run"),
    ],
)
def test_damaged_masks_are_refused(tmp_path, name, content, problem):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / name).write_bytes(content)
    with pytest.raises(DataError, match=problem):
        Folder(tmp_path).anatomy("a")


def test_arrays_of_another_kind_and_masks_that_stand_twice_are_refused(tmp_path, anatomy):
    place = written(tmp_path, anatomy)
    np.savez(place / "masks.npz", heart=anatomy.masks["heart"])
    with pytest.raises(DataError, match="stands twice"):
        Folder(tmp_path).anatomy("a")
    np.savez(place / "masks.npz", other=np.zeros((3, 3), dtype=object))
    with pytest.raises(DataError, match="cannot be read"):
        Folder(tmp_path).anatomy("a")
    np.savez(place / "masks.npz", other=np.zeros((3, 3, 3)))
    with pytest.raises(DataError, match="no mask"):
        Folder(tmp_path).anatomy("a")


class Finds:
    """A segmenter that knows one phantom."""

    def __init__(self, masks):
        self.known = masks

    def masks(self, radiograph):
        return self.known


def test_a_segmenter_gives_masks_under_its_own_names(tmp_path, anatomy):
    place = tmp_path / "a"
    place.mkdir()
    landmarks = {k: np.asarray(v).tolist() for k, v in anatomy.landmarks.items()}
    (place / "case.json").write_text(json.dumps({"view": anatomy.view, "landmarks": landmarks}))
    picture = Radiograph(np.zeros((256, 256), np.float32), "a")
    theirs = {"Heart!" if name == "heart" else name: mask for name, mask in anatomy.masks.items()}
    found = Segmented(Finds(theirs), {"Heart!": "heart"}, Folder(tmp_path)).find(picture)
    own = measure(anatomy)
    assert {t: m.rounded for t, m in measure(found).items()} == {t: m.rounded for t, m in own.items()}
    alone = Segmented(Finds(theirs), {"Heart!": "heart"}).find(picture)
    assert (alone.view, dict(alone.landmarks)) == (None, {})
    assert measure(alone, ["rotation"])["rotation"].status == "dropped"
    with pytest.raises(DataError, match="size of its picture"):
        Segmented(Finds({"heart": np.zeros((9, 9), bool)})).find(picture)


def test_a_case_stays_inside_its_folder(tmp_path, anatomy):
    written(tmp_path / "masks", anatomy)
    written(tmp_path, anatomy, "secret")
    for case in ("../secret", "missing", ""):
        with pytest.raises(DataError):
            Folder(tmp_path / "masks").anatomy(case)
    (tmp_path / "masks" / "a" / "heart.png").unlink()
    (tmp_path / "masks" / "a" / "heart.png").symlink_to(tmp_path / "secret" / "heart.png")
    with pytest.raises(DataError, match="outside"):
        Folder(tmp_path / "masks").anatomy("a")


def test_masks_of_two_sizes_and_damaged_facts_are_refused(tmp_path, anatomy):
    place = written(tmp_path, anatomy)
    Image.new("L", (9, 9)).save(place / "heart.png")
    with pytest.raises(DataError, match="one size"):
        Folder(tmp_path).anatomy("a")
    (place / "heart.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match="cannot be read"):
        Folder(tmp_path).anatomy("a")


def test_a_mask_of_another_size_and_an_unknown_task_are_refused():
    odd = Anatomy(8, 8, None, {"heart": np.ones((4, 4), bool)})
    with pytest.raises(DataError, match="size of its picture"):
        tool("cardiomegaly").measure(odd)
    with pytest.raises(DataError, match="view"):
        Anatomy(8, 8, "lateral")
    with pytest.raises(RegistryError):
        tool("heart_size")


def test_the_overlay_draws_every_task(anatomy):
    picture = np.full((256, 256), 0.5, np.float32)
    for task, measurement in measure(anatomy).items():
        drawn = overlay(picture, measurement, anatomy)
        assert drawn.shape == (256, 256, 3)
        colours = {tuple(c) for c in drawn.reshape(-1, 3)}
        assert COLOURS["value"] in colours, task
        assert task.split("_", maxsplit=1)[0] in caption(measurement)
    with pytest.raises(DataError, match="differ in size"):
        overlay(picture[:100], measurement, anatomy)
    dropped = overlay(picture, Measurement("rotation", "dropped", "too_few_spinous_points"), anatomy)
    assert dropped.shape == (256, 256, 3)
