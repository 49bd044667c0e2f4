"""What is drawn: masks, anatomies, landmarks, measurements, grey levels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import binary_fill_holes, label

from medground.worlds.phantom.drawing import ANATOMIES, Drawing, draw
from medground.worlds.phantom.scene import make_scene
from medground.worlds.phantom.streams import FINDINGS
from medground.worlds.phantom.tissue import LEFT_LUNG, RIGHT_LUNG

AREAS = {
    "Atelectasis": (0.1, 5.0),
    "Cardiomegaly": (11.0, 26.0),
    "Effusion": (0.2, 12.0),
    "Infiltration": (1.5, 22.0),
    "Mass": (0.25, 4.5),
    "Nodule": (0.03, 0.6),
    "Pneumonia": (0.7, 9.0),
    "Pneumothorax": (1.0, 12.0),
}
"""Bounds of the masks' areas, percent of the picture."""


@pytest.fixture(scope="module")
def drawings() -> list[Drawing]:
    return [draw(make_scene(0, case), 224) for case in range(48)]


@pytest.mark.parametrize("finding", FINDINGS)
def test_masks_have_plausible_areas_and_lie_where_the_finding_lies(finding: str) -> None:
    for case in range(12):
        drawing = draw(make_scene(21, case, [finding]), 224)
        mask = drawing.findings[finding]
        low, high = AREAS[finding]
        assert low <= 100 * mask.mean() <= high
        lungs = (drawing.labels & (RIGHT_LUNG | LEFT_LUNG)) > 0
        assert finding == "Cardiomegaly" or lungs[mask].all()


def test_a_nodule_is_never_smaller_than_a_few_pixels() -> None:
    smallest = min(draw(make_scene(22, case, ["Nodule"]), 224).findings["Nodule"].sum() for case in range(30))
    assert smallest >= 12


@pytest.mark.parametrize("finding", sorted(set(FINDINGS) - {"Pneumothorax", "Cardiomegaly"}))
def test_an_opacity_is_brighter_than_the_same_place_without_it(finding: str) -> None:
    for case in range(6):
        with_it = make_scene(23, case, [finding])
        mask = draw(with_it, 224).findings[finding]
        gain = draw(with_it, 224).pixels[mask].mean() - draw(with_it.without(finding), 224).pixels[mask].mean()
        assert gain > 5


def test_free_air_is_darker_than_the_same_place_without_it() -> None:
    for case in range(6):
        with_it = make_scene(23, case, ["Pneumothorax"])
        mask = draw(with_it, 224).findings["Pneumothorax"]
        assert draw(with_it, 224).pixels[mask].mean() < draw(with_it.without("Pneumothorax"), 224).pixels[mask].mean()


def test_eight_anatomies_lie_where_they_belong(drawings: list[Drawing]) -> None:
    for drawing in drawings:
        assert tuple(drawing.anatomies) == ANATOMIES
        centre = {name: np.argwhere(mask).mean(0) for name, mask in drawing.anatomies.items()}
        for side in ("right", "left"):
            heights = [centre[f"{side} {zone} lung"][0] for zone in ("upper", "mid", "lower")]
            assert heights == sorted(heights)
        for zone in ("upper", "mid", "lower"):
            assert centre[f"right {zone} lung"][1] < centre[f"left {zone} lung"][1]
        assert centre["heart"][1] > 112 - 25
        assert drawing.trachea.any()


def test_heart_and_lungs_are_in_one_piece(drawings: list[Drawing]) -> None:
    for drawing in drawings[:12]:
        for mask in (drawing.anatomies["heart"], (drawing.labels & RIGHT_LUNG) > 0, (drawing.labels & LEFT_LUNG) > 0):
            # The thin corner of a costophrenic angle may end in a pixel that touches the rest by its corner alone.
            assert label(mask, np.ones((3, 3)))[1] == 1
            assert np.array_equal(binary_fill_holes(mask), mask)


@pytest.mark.parametrize("findings", [[], ["Cardiomegaly"]])
def test_measured_heart_width_is_that_of_the_mask(findings: list[str]) -> None:
    for case in range(8):
        scene = make_scene(24, case, findings)
        drawing, size = draw(scene, 512), 512
        rows, columns = np.nonzero(drawing.findings.get("Cardiomegaly", drawing.anatomies["heart"]))
        pose = scene.anatomy.pose
        across = pose.a * (columns + 0.5) / size - pose.b * (rows + 0.5) / size
        width = (across.max() - across.min()) / np.hypot(pose.a, pose.b)
        assert width == pytest.approx(drawing.measurements["heart_width"], abs=0.012)
        assert (drawing.measurements["cardiothoracic_ratio"] > 0.55) == bool(findings)


def test_landmarks_lie_on_what_they_name(drawings: list[Drawing]) -> None:
    def at(drawing: Drawing, name: str) -> tuple[int, int]:
        x, y = drawing.landmarks[name]
        return int(y), int(x)

    for drawing in drawings:
        assert drawing.anatomies["aorta"][at(drawing, "aortic_knob")]
        assert drawing.trachea[at(drawing, "carina")]
        points = drawing.landmarks
        assert points["clavicle_right_inner"][0] < points["carina"][0] < points["clavicle_left_inner"][0]
        ribs = [points[name][1] for name in points if name.startswith("rib_left_")]
        assert 8 <= len(ribs) <= 12
        assert ribs == sorted(ribs)
        assert drawing.measurements["ribs_above_diaphragm"] <= len(ribs)
        heart = np.nonzero(drawing.anatomies["heart"].any(0))[0]
        assert points["heart_left"][0] == pytest.approx(heart[-1] + 1, abs=3)
        assert points["heart_right"][0] == pytest.approx(heart[0], abs=3)


def test_grey_levels_are_those_of_real_radiographs(drawings: list[Drawing]) -> None:
    """Mean 121, standard deviation 63, quartiles 79, 126, 169 in 110 pictures of ChestX-ray14."""
    grey = np.stack([drawing.pixels for drawing in drawings])
    assert grey.mean() == pytest.approx(121, abs=12)
    assert grey.std() == pytest.approx(63, abs=9)
    assert np.allclose(np.percentile(grey, [25, 50, 75]), [79, 126, 169], atol=24)
    means = grey.mean((1, 2))
    assert means.std() > 8


def test_pixels_and_masks_have_the_stated_types(drawings: list[Drawing]) -> None:
    for drawing in drawings[:8]:
        assert drawing.pixels.dtype == np.uint8
        assert drawing.pixels.shape == (224, 224)
        assert all(mask.dtype == np.bool_ and mask.shape == (224, 224) for mask in drawing.masks.values())


def test_both_views_and_markers_occur() -> None:
    scenes = [make_scene(0, case) for case in range(120)]
    assert 0.3 < np.mean([scene.anatomy.view == "AP" for scene in scenes]) < 0.5
    portable = [s.anatomy.view for s in scenes if any(text == "PORTABLE" for text, *_ in s.marker.words)]
    assert portable
    assert set(portable) == {"AP"}
    assert all(scene.marker.words[0][0] == "L" and scene.marker.words[0][1] > 0.8 for scene in scenes)


def test_high_domes_and_wide_lesions_still_find_a_place() -> None:
    for case in range(80):
        scene = make_scene(25, case, ["Mass", "Infiltration", "Pneumonia", "Nodule", "Atelectasis"])
        if scene.anatomy.dome_peaks[0] < 0.62:
            assert all(mask.any() for mask in draw(scene, 96).findings.values())
