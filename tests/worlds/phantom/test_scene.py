"""Seeds and streams: every cause draws from its own, so a control differs in one finding and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import binary_dilation

from medground.errors import ConfigError
from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.findings import LESIONS
from medground.worlds.phantom.scene import COUNTS, Scene, make_scene
from medground.worlds.phantom.streams import CAUSES, FINDINGS, stream
from medground.worlds.phantom.tissue import LEFT_LUNG, RIGHT_LUNG

SIZE = 128

REACH = {
    "Atelectasis": 0.04,
    "Cardiomegaly": 0.05,
    "Effusion": 0.20,
    "Infiltration": 0.10,
    "Mass": 0.02,
    "Nodule": 0.02,
    "Pneumonia": 0.12,
}
"""How far a finding changes pixels beyond its mask, image widths: soft rims below the mask's level."""


def reach(scene: Scene, finding: str, size: int = SIZE) -> np.ndarray:
    """Where a finding may change the picture; a collapse also makes the remaining lung a little denser."""
    drawing = draw(scene, size)
    if finding == "Pneumothorax":
        lung = RIGHT_LUNG << scene.lesions[finding][0].side
        return (drawing.labels & lung) > 0
    steps = int(np.ceil(REACH[finding] * size)) + 1
    return binary_dilation(drawing.findings[finding], iterations=steps, structure=np.ones((3, 3)))


def test_the_same_seed_draws_the_same_picture() -> None:
    one, two = draw(make_scene(3, 7), SIZE), draw(make_scene(3, 7), SIZE)
    assert np.array_equal(one.pixels, two.pixels)
    assert np.array_equal(one.labels, two.labels)
    assert one.findings.keys() == two.findings.keys()


@pytest.mark.parametrize(("seed", "case"), [(4, 7), (3, 8)])
def test_another_seed_or_case_draws_another_picture(seed: int, case: int) -> None:
    assert not np.array_equal(draw(make_scene(3, 7), SIZE).pixels, draw(make_scene(seed, case), SIZE).pixels)


def test_streams_differ_by_cause_and_repeat() -> None:
    first = {cause: stream(1, 2, cause).integers(2**62) for cause in CAUSES}
    assert len(set(first.values())) == len(CAUSES)
    assert first == {cause: stream(1, 2, cause).integers(2**62) for cause in reversed(CAUSES)}
    assert stream(1, 2, "Mass", "place", 1).integers(2**62) != first["Mass"]


@pytest.mark.parametrize("finding", FINDINGS)
@pytest.mark.parametrize("case", range(4))
def test_a_finding_changes_no_pixel_outside_its_reach(finding: str, case: int) -> None:
    others = ("Mass",) if finding != "Mass" else ("Effusion",)
    with_it = make_scene(11, case, [finding, *others])
    without = with_it.without(finding)
    assert without.findings == others
    changed = draw(with_it, SIZE).pixels != draw(without, SIZE).pixels
    assert changed.any()
    assert not (changed & ~reach(with_it, finding)).any()


@pytest.mark.parametrize("finding", LESIONS)
def test_moving_a_finding_changes_only_where_it_was_and_is(finding: str) -> None:
    here = make_scene(12, 1, [finding, "Cardiomegaly"])
    there = here.moved(finding)
    before, after = draw(here, SIZE), draw(there, SIZE)
    changed = before.pixels != after.pixels
    assert not (changed & ~(reach(here, finding) | reach(there, finding))).any()
    assert np.array_equal(before.findings["Cardiomegaly"], after.findings["Cardiomegaly"])


def test_a_moved_lesion_keeps_its_shape_and_goes_to_the_other_lung() -> None:
    here = make_scene(12, 2, ["Mass"])
    there, back = here.moved("Mass", 1), here.moved("Mass", 2)
    (a,), (b,), (c,) = (scene.lesions["Mass"] for scene in (here, there, back))
    assert (a.a, a.b, a.turn, a.amount, a.key) == (b.a, b.b, b.turn, b.amount, b.key)
    assert a.side != b.side
    assert a.side == c.side
    assert (a.x, a.y) != (c.x, c.y)
    mine, other = draw(here, SIZE), draw(there, SIZE)
    lungs = {0: RIGHT_LUNG, 1: LEFT_LUNG}
    assert ((mine.labels & lungs[a.side]) > 0)[mine.findings["Mass"]].all()
    assert ((other.labels & lungs[b.side]) > 0)[other.findings["Mass"]].all()


def test_noise_and_exposure_do_not_depend_on_the_size() -> None:
    """A scene has no resolution: its small drawing is the large one, averaged."""
    scene = make_scene(5, 3)
    small, large = draw(scene, 128), draw(scene, 256)
    averaged = large.pixels.reshape(128, 2, 128, 2).mean((1, 3))
    assert abs(averaged - small.pixels).mean() < 4
    for finding, mask in small.findings.items():
        share = large.findings[finding].reshape(128, 2, 128, 2).mean((1, 3))
        assert (mask != (share >= 0.5)).mean() < 0.01


def test_findings_are_drawn_with_the_stated_frequencies() -> None:
    drawn = [make_scene(0, case).findings for case in range(400)]
    counts = np.bincount([len(findings) for findings in drawn], minlength=4) / len(drawn)
    assert np.allclose(counts, COUNTS, atol=0.07)
    for finding in FINDINGS:
        assert 0.09 < np.mean([finding in findings for findings in drawn]) < 0.22


def test_findings_can_be_asked_for_in_any_order() -> None:
    one, two = make_scene(1, 1, ["Mass", "Effusion"]), make_scene(1, 1, ["Effusion", "Mass"])
    assert one.findings == two.findings == ("Effusion", "Mass")
    assert np.array_equal(draw(one, 64).pixels, draw(two, 64).pixels)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="no finding 'Masss'"):
        make_scene(0, 0, ["Masss"])
    with pytest.raises(ConfigError, match="no 'Nodule' to remove"):
        make_scene(0, 0, ["Mass"]).without("Nodule")
    with pytest.raises(ConfigError, match="no 'Cardiomegaly' to remove or move"):
        make_scene(0, 0, ["Cardiomegaly"]).moved("Cardiomegaly")
