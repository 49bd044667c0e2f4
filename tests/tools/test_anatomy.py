"""Masks from a folder, what is refused there, and the overlay of what was measured."""

import json

import numpy as np
import pytest
from PIL import Image

from medground.errors import DataError, RegistryError
from medground.tools import Anatomy, Folder, Measurement, measure, tool
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


def test_twelve_tools_are_quick_on_a_large_case(anatomy):
    import time

    scene = make_scene(1, 2, population="tasks")
    found = structures(scene, 1024)
    large = Anatomy(1024, 1024, scene.view, found.masks, found.landmarks)
    started = time.process_time()
    measure(large)
    assert time.process_time() - started < 0.5
