"""Perturbations and controls: what is swapped is truly absent, donors lack what they should, nothing is replaced."""

from __future__ import annotations

import pytest

from medground.benchmarks.heal_medvqa.draw import Draw, draw
from medground.benchmarks.heal_medvqa.questions import Question, worded
from medground.benchmarks.heal_medvqa.table import ImageFacts, RelationTable
from medground.benchmarks.heal_medvqa.variants import CONTROLS, FLIPS, Planner, Surroundings

WHOLE = {"right upper lung": "right lung", "right lower lung": "right lung"}


def image(name: str, *related: tuple[str, str], **more: object) -> ImageFacts:
    return ImageFacts(name, frozenset(related), patient_id=name, **{"view": "PA", **more})  # type: ignore[arg-type]


@pytest.fixture
def small() -> RelationTable:
    """Three patients to ask about and two to count over."""
    upper, lower = "right upper lung", "right lower lung"
    images = (
        image("a", (upper, "Mass"), ("heart", "Cardiomegaly")),
        image("b"),
        image("c", (upper, "Mass")),
        image("d", (lower, "Mass"), (upper, "Nodule"), split="train"),
        image("e", (upper, "Mass"), split="train"),
    )
    return RelationTable((upper, lower, "right lung", "heart"), ("Mass", "Nodule", "Cardiomegaly"), images)


AROUND = Surroundings(lambda image, anatomy: True, lambda image, a, b: "lung" not in a or "lung" not in b, WHOLE)
ASKED = Question("a#0", "a", "closed_yes", "right upper lung", "Mass")


def test_every_variant_of_a_question_that_holds(small: RelationTable) -> None:
    plan = Planner(small, AROUND).plan(ASKED)
    made = {variant.name: variant for variant in plan.variants}
    assert (made["tpt_anatomy"].anatomy, made["tpt_anatomy"].finding) == ("right lower lung", "Mass")
    assert (made["tpt_disease"].anatomy, made["tpt_disease"].finding) == ("right upper lung", "Nodule")
    assert (made["swap_to_positive"].anatomy, made["swap_to_positive"].finding) == ("heart", "Cardiomegaly")
    assert made["vpt"].donor == "b"  # nothing was found in it
    assert made["vpt"].region == "right upper lung"
    assert made["vpt_lung"].region == "right lung"
    assert made["positive_donor"].donor == "c"
    assert made["own_region_back"].donor == "a"
    assert made["other_region"].region == "heart"
    assert {v.name for v in plan.variants if v.expected == "no"} <= set(FLIPS)
    assert {v.name for v in plan.variants if v.expected == "yes"} <= set(CONTROLS)
    assert not plan.not_made


def test_a_paraphrase_is_the_other_printed_form(small: RelationTable) -> None:
    made = {v.name: v for v in Planner(small, AROUND).plan(ASKED).variants}
    assert worded(*ASKED.pair, 0) == "Does the right upper lung have mass?"
    assert worded(*ASKED.pair, made["paraphrase"].wording) == "Is there mass present in the right upper lung?"


def test_what_cannot_be_made_has_a_reason(small: RelationTable) -> None:
    alone = Question("c#0", "c", "closed_yes", "right upper lung", "Mass")
    far = Surroundings(lambda image, anatomy: anatomy != "heart", lambda image, a, b: False, {})
    plan = Planner(small, far).plan(alone)
    assert {"swap_to_positive", "vpt_lung", "other_region"} <= set(plan.not_made)
    blind = Surroundings(lambda image, anatomy: False, AROUND.apart, WHOLE)
    assert Planner(small, blind).plan(ASKED).not_made["vpt"] == "there is no mask of the right upper lung"


def test_questions_that_do_not_hold_are_not_perturbed(small: RelationTable) -> None:
    no = Question("b#0", "b", "closed_no", "heart", "Mass")
    assert not Planner(small, AROUND).plan(no).variants


@pytest.mark.parametrize("rule", ["prefers_normal", "normal", "region_normal", "lacks_finding"])
def test_no_donor_has_the_finding_nor_is_of_the_same_patient_or_another_view(rule: str, table: RelationTable) -> None:
    images = tuple(
        ImageFacts(**{**vars(i), "patient_id": f"p{n // 2}", "view": ("PA", "AP")[n % 3 == 0]})
        for n, i in enumerate(table.images)
    )
    wide = RelationTable(table.anatomies, table.findings, images)
    everywhere = Surroundings(lambda image, anatomy: True, lambda image, a, b: a != b)
    planner = Planner(wide, everywhere, donor=rule, splits=("train", "test"))  # type: ignore[arg-type]
    donors = 0
    for question in draw(wide, Draw(samplers=("random",)), ("train", "test"))[0]:
        own = wide[question.image_id]
        for variant in planner.plan(question).variants:
            if variant.name in ("vpt", "positive_donor", "other_region"):
                donor = wide[variant.donor]
                holds = (variant.region, question.finding) in donor.related
                assert holds == (variant.name == "positive_donor")
                assert donor.patient_id != own.patient_id
                assert donor.view == own.view
                donors += 1
    assert donors or rule == "normal"


def test_swapped_pairs_are_absent_and_known_from_other_pictures(table: RelationTable) -> None:
    everywhere = Surroundings(lambda image, anatomy: True, lambda image, a, b: a != b)
    planner, swaps = Planner(table, everywhere, splits=("train", "test")), 0
    for question in draw(table, Draw(samplers=("random",)), ("train", "test"))[0]:
        facts = table[question.image_id]
        for variant in planner.plan(question).variants:
            pair = (variant.anatomy, variant.finding)
            if variant.name.startswith("tpt"):
                assert pair in table.negatives(facts) & table.valid_pairs()
                swaps += 1
            elif variant.name == "swap_to_positive":
                assert pair in facts.related - {question.pair}
    assert swaps
