"""The seeded draw: what must hold for any seed, and what no blind reader may gain from it."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from medground.benchmarks.heal_medvqa.baselines import floors, known
from medground.benchmarks.heal_medvqa.draw import Draw, draw
from medground.benchmarks.heal_medvqa.samplers import SAMPLERS, Sampler, admissible
from medground.benchmarks.heal_medvqa.streams import drawn
from medground.benchmarks.heal_medvqa.table import ImageFacts, RelationTable

BOTH = ("train", "test")
LOCAL = [sampler for sampler in SAMPLERS if sampler != "same_question_other_picture"]


@pytest.fixture(scope="module")
def many() -> RelationTable:
    """Two thousand pictures whose findings have places of their own, as in life."""
    rng = random.Random(5)
    anatomies, findings = ("right lung", "left lung", "heart"), ("Mass", "Nodule", "Effusion", "Cardiomegaly")
    places = {"Mass": anatomies, "Nodule": anatomies, "Effusion": anatomies[:2], "Cardiomegaly": anatomies[2:]}
    images = []
    for number in range(2000):
        held = rng.sample(findings, rng.choice((0, 1, 1, 2)))
        related = frozenset((rng.choice(places[finding]), finding) for finding in held)
        images.append(
            ImageFacts(f"x{number}", related, split=BOTH[number % 2], patient_id=f"p{number // 2}", view="PA")
        )
    return RelationTable(anatomies, findings, tuple(images))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_invariants_of_one_draw(table: RelationTable, sampler: Sampler) -> None:
    choices = Draw(samplers=(sampler,), seed=3)
    questions, shortfall = draw(table, choices, BOTH)
    by_image = defaultdict(list)
    for question in questions:
        by_image[question.image_id].append(question)
    assert shortfall.short == sum(len(by_image[i.image_id]) < 2 for i in table.images)
    for image in table.images:
        asked = by_image[image.image_id]
        assert len(asked) <= 5
        closed = [q for q in asked if not q.is_open]
        assert len({q.pair for q in closed}) == len(closed)
        for q in closed:
            if q.gold == "yes":
                assert q.pair in image.related
            elif sampler in LOCAL:
                assert q.pair in admissible(image, table, sampler)
            else:
                assert q.pair in table.negatives(image)
    assert len({q.question_id for q in questions}) == len(questions)


def test_the_same_seed_draws_the_same_and_another_one_another(table: RelationTable) -> None:
    for sampler in ("random", "adversarial"):
        first, second, other = (draw(table, Draw(samplers=(sampler,), seed=seed), BOTH)[0] for seed in (1, 1, 2))
        assert first == second
        assert [q for q in first if q.gold == "no"] != [q for q in other if q.gold == "no"]


@pytest.mark.parametrize("sampler", LOCAL)
def test_taking_a_test_image_away_changes_no_other(
    drawn_tables: Mapping[str, Any], table: RelationTable, table_from: Callable[..., RelationTable], sampler: Sampler
) -> None:
    gone = next(image.image_id for image in table.images if image.split == "test")
    fewer = table_from(drawn_tables, [one for one in drawn_tables["images"] if one["image_id"] != gone])
    choices = Draw(samplers=(sampler,))
    left = [q for q in draw(table, choices, BOTH)[0] if q.image_id != gone]
    assert left == draw(fewer, choices, BOTH)[0]


def test_no_order_of_the_input_matters(
    drawn_tables: Mapping[str, Any], table: RelationTable, table_from: Callable[..., RelationTable]
) -> None:
    turned = {key: list(reversed(value)) for key, value in drawn_tables.items()}
    for sampler in SAMPLERS:
        choices = Draw(samplers=(sampler,))
        plain, other = (draw(t, choices, BOTH)[0] for t in (table, table_from(turned)))
        assert sorted(map(str, plain)) == sorted(map(str, other)), sampler


def test_random_negatives_are_drawn_evenly(table: RelationTable) -> None:
    weights = admissible(table["s01"], table, "random")
    counts = Counter(drawn(weights, 1, seed, "s01", "no")[0] for seed in range(2000))
    share = 2000 / len(weights)
    assert set(counts) == set(weights)
    assert all(0.5 * share <= n <= 1.6 * share for n in counts.values())


def test_the_same_question_of_another_picture_leaves_the_words_without_meaning(many: RelationTable) -> None:
    questions, shortfall = draw(many, Draw(samplers=("same_question_other_picture",)))
    counts = Counter((q.pair, q.gold) for q in questions if not q.is_open)
    assert shortfall.partners == 0
    assert all(counts[pair, "yes"] == counts[pair, "no"] for pair, _ in counts)


def test_each_sampler_shows_the_shortcut_that_it_opens(many: RelationTable) -> None:
    def floor(sampler: Sampler) -> dict[str, float]:
        choices = Draw(samplers=(sampler,))
        questions, others = draw(many, choices)[0], draw(many, choices, ["train"])[0]
        return {one.name: one.balanced_accuracy for one in floors(known(questions, many), known(others, many))}

    assert floor("same_image_other_region")["finding_anywhere"] == 50
    assert floor("same_region_other_finding")["region_abnormal"] == 50
    assert floor("popular_by_frequency")["by_pair"] == pytest.approx(50, abs=6)
    assert floor("random")["by_pair"] > 60
    assert floor("random")["finding_anywhere"] > 85


def test_floors_without_both_answers_are_undefined(table: RelationTable) -> None:
    questions = [q for q in draw(table, Draw(samplers=("random",)), BOTH)[0] if q.gold != "no"]
    assert all(one.balanced_accuracy is None for one in floors(known(questions, table)))
