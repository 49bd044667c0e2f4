"""Swapped quartets: what ignores words, region or picture is at exactly 50."""

from __future__ import annotations

from collections import Counter

import pytest

from medground.benchmarks.heal_medvqa.baselines import floors, known_from
from medground.benchmarks.heal_medvqa.draw import Draw
from medground.benchmarks.heal_medvqa.phantoms import PhantomGallery
from medground.benchmarks.heal_medvqa.plan import Asked, build
from medground.benchmarks.heal_medvqa.quartets import quartets


@pytest.fixture(scope="module")
def asked() -> list[Asked]:
    built = build(PhantomGallery(cases=4, size=64, quartets=12), Draw(), compared=False)
    return [one for one in built.asked if one.part == "quartets"]


def test_eight_questions_each_answered_once_yes_and_once_no(asked: list[Asked]) -> None:
    for cluster, n in Counter(one.cluster for one in asked).items():
        assert n == 8, cluster
    words = Counter((one.cluster, one.question.pair, one.question.wording, one.question.gold) for one in asked)
    assert set(words.values()) == {1}
    both = {(cluster, pair, wording) for cluster, pair, wording, _ in words}
    assert 2 * len(both) == len(words)


def test_truth_agrees_with_the_masks(asked: list[Asked]) -> None:
    assert all((one.share > 0.5) == (one.question.gold == "yes") for one in asked)
    assert all(one.share < 0.25 for one in asked if one.question.gold == "no")


def test_every_shortcut_is_at_fifty(asked: list[Asked]) -> None:
    rows = [
        {
            "anatomy": one.question.anatomy,
            "finding": one.question.finding,
            "wanted": one.question.gold,
            "cluster": one.cluster,
            "anywhere": one.anywhere,
            "abnormal": one.abnormal,
        }
        for one in asked
    ]
    assert {floor.balanced_accuracy for floor in floors(known_from(rows))} == {50.0}


def test_names_of_pictures_do_not_tell_the_scene() -> None:
    first = [quartet.members[0][0].rpartition("-")[2] for quartet in quartets(0, 12)]
    assert set(first) == {"m", "n"}
    assert quartets(0, 12) == quartets(0, 12)
