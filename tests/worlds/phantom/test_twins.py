"""Facts, and pairs and quartets of scenes in which one of them is exchanged."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.ndimage import binary_dilation

from medground.worlds.phantom.drawing import draw
from medground.worlds.phantom.facts import ZONED, facts
from medground.worlds.phantom.findings import LESIONS
from medground.worlds.phantom.scene import make_scene
from medground.worlds.phantom.twins import (
    Quartet,
    other_side,
    other_size,
    other_third,
    other_view,
    placed,
    quartet,
    replaced,
)


@pytest.mark.parametrize("population", ["default", "tasks"])
def test_facts_have_the_masks_that_are_drawn(population: str) -> None:
    for case in range(4):
        scene = make_scene(41, case, ["Cardiomegaly", "Mass", "Effusion"], population=population)
        told, drawing = facts(scene, 128), draw(scene, 128)
        assert told.masks.keys() == drawing.findings.keys()
        for name, mask in {**told.masks, **told.anatomies}.items():
            assert np.array_equal(mask, drawing.masks[name])


def test_sides_thirds_and_regions_agree() -> None:
    for case in range(40):
        told = facts(make_scene(42, case))
        for finding, fact in told.findings.items():
            if fact.side in ("right", "left") and fact.third is not None:
                assert told.on_side(finding, fact.side) is True
                assert told.in_third(finding, fact.third) is True
                assert told.in_region(finding, f"{fact.side} {fact.third} lung") is True
            if fact.side == "both":
                assert told.on_side(finding, "right") is None
            assert told.inside(finding, ["right lung", "left lung"]) > 0.9 or finding == "Cardiomegaly"
        absent = next(finding for finding in LESIONS if finding not in told.present)
        assert told.in_region(absent, "heart") is False
        assert told.on_side(absent, "left") is False


def changed(one: object, two: object) -> np.ndarray:
    return np.asarray(draw(one, 128).pixels != draw(two, 128).pixels)


def test_mirrored_pairs_differ_where_the_finding_was_and_is() -> None:
    for case in range(8):
        scene = placed(make_scene(43, case, ["Mass", "Effusion"]), "Mass", side="right")
        assert scene is not None
        twin = other_side(scene, "Mass")
        assert twin is not None
        assert facts(twin).findings["Mass"].side == "left"
        assert facts(twin).findings["Mass"].third == facts(scene, 64).findings["Mass"].third
        reach = facts(scene).masks["Mass"] | facts(twin).masks["Mass"]
        reach = binary_dilation(reach, iterations=4, structure=np.ones((3, 3)))
        assert not (changed(scene, twin) & ~reach).any()


def test_each_fact_has_a_twin_without_it() -> None:
    scene = placed(make_scene(44, 2, ["Nodule"]), "Nodule", "left", "mid")
    assert scene is not None
    upper = other_third(scene, "Nodule", "upper")
    assert upper is not None
    assert facts(upper).in_third("Nodule", "mid") is False
    assert facts(upper).in_third("Nodule", "upper") is True
    small = scene.sized("Nodule", 0.1)
    large = other_size(small, "Nodule")
    assert large is not None
    assert facts(small).sized("Nodule", "small") is True
    assert facts(large).sized("Nodule", "large") is True
    mass = replaced(scene, "Nodule", "Mass")
    assert mass is not None
    assert mass.findings == ("Mass",)
    assert facts(mass).on_side("Mass", "left") is True
    assert replaced(scene, "Nodule", "Cardiomegaly") is None
    assert replaced(scene, "Effusion", "Mass") is None


def test_another_view_is_the_same_patient() -> None:
    scene = make_scene(45, 1, ["Mass"])
    twin = other_view(scene)
    assert {scene.view, twin.view} == {"PA", "AP"}
    assert scene.anatomy.cage_half_width == twin.anatomy.cage_half_width
    assert scene.lesions["Mass"][0].a == twin.lesions["Mass"][0].a
    pa, ap = (make_scene(45, 1, view=view) for view in ("PA", "AP"))
    assert [device.kind for device in pa.devices] == [device.kind for device in ap.devices]
    assert pa.marker == ap.marker


@cache
def quartets() -> list[Quartet]:
    rng = np.random.default_rng(0)
    pairs = [tuple(str(name) for name in rng.choice(LESIONS, 2, replace=False)) for _ in range(40)]
    made = [quartet(46, case, *pair, population="tasks") for case, pair in enumerate(pairs)]
    return [one for one in made if one is not None]


def questions(made: Quartet) -> list[tuple[str, str]]:
    first, second = made.first, made.second
    a, b = made.first_region, made.second_region
    return [(first, a), (second, b), (first, b), (second, a)]


def test_quartets_exchange_two_regions_and_nothing_else() -> None:
    made = quartets()
    assert len(made) >= 16
    for one in made:
        answers = [[facts(scene).in_region(*asked) for asked in questions(one)] for scene in (one.one, one.two)]
        assert answers == [[True, True, False, False], [False, False, True, True]]
    one = made[0]
    told = [facts(scene).masks[finding] for scene in (one.one, one.two) for finding in (one.first, one.second)]
    reach = binary_dilation(np.logical_or.reduce(told), iterations=26, structure=np.ones((3, 3)))
    assert not (changed(one.one, one.two) & ~reach).any()


def test_blind_scorers_are_at_half_on_quartets() -> None:
    """A scorer that learns the answer from the words, and two that look without the region, get exactly half."""
    items = []
    for number, made in enumerate(quartets()):
        for scene, said in ((made.one, (1, 1, 0, 0)), (made.two, (0, 0, 1, 1))):
            present = set(scene.findings)
            items += [(number, asked, answer, present) for asked, answer in zip(questions(made), said, strict=True)]
    train = [item for item in items if item[0] % 2 == 0]
    test = [item for item in items if item[0] % 2 == 1]
    weights: dict[str, float] = {}
    for _, asked, answer, _ in train:  # log odds of every word and of every pair of words
        for word in (*asked, *asked[1].split(), "|".join(asked)):
            weights[word] = weights.get(word, 0.0) + (answer - 0.5)
    guesses = [
        sum(weights.get(w, 0.0) for w in (*asked, *asked[1].split(), "|".join(asked))) for _, asked, _, _ in test
    ]
    right = [
        0.5 if guess == 0 else float((guess > 0) == answer)
        for guess, (_, _, answer, _) in zip(guesses, test, strict=True)
    ]
    assert np.mean(right) == 0.5
    assert np.mean([(asked[0] in present) == answer for _, asked, answer, present in test]) == 0.5


def test_a_zone_is_only_said_of_what_may_lie_anywhere() -> None:
    for case in range(12):
        told = facts(make_scene(47, case, ["Effusion", "Pneumothorax", "Cardiomegaly"]))
        assert all(told.in_third(finding, "upper") is None for finding in told.present)
        assert not set(told.present) & set(ZONED)


def test_devices_are_told_and_asked_for() -> None:
    scene = make_scene(48, 0, [], devices=["tube", "pacemaker"])
    told = facts(scene)
    assert told.has_device("tube")
    assert not told.has_device("line")
    assert {device.kind: device.side for device in told.devices}["tube"] == ""
    bare = make_scene(48, 0, [], devices=[])
    assert changed(scene, bare).any()
    tube = next(device for device in told.devices if device.kind == "tube")
    assert 0 < tube.tip[1] < scene.anatomy.carina + 0.2
