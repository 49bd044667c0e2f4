"""Admissible positives, negatives and open questions of twenty golden tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from medground.benchmarks.heal_medvqa.samplers import SAMPLERS, admissible, cooccurrence, falls_back
from medground.benchmarks.heal_medvqa.table import ImageFacts, RelationTable, open_questions
from medground.errors import DatasetError


@pytest.fixture(scope="module")
def expected(heal_golden: Path) -> Mapping[str, Any]:
    return json.loads((heal_golden / "questions/expected.json").read_text())


def pairs(listed: Any) -> set[tuple[str, str]]:
    return set(map(tuple, listed))


def test_counts_over_the_train_split(table: RelationTable, expected: Mapping[str, Any]) -> None:
    assert {f: table.image_frequency[f] for f in table.findings} == expected["train_image_frequency"]
    assert table.valid_pairs() == pairs(expected["pairs_seen_in_train"])
    for first, others in expected["cooccurrence"].items():
        assert {second: table.together[first, second] for second in others} == others


@pytest.mark.parametrize("valid_only", [False, True])
def test_every_sampler_admits_what_the_golden_table_says(
    table: RelationTable, expected: Mapping[str, Any], valid_only: bool
) -> None:
    for one in expected["images"]:
        image = table[one["image_id"]]
        assert image.related == pairs(one["positives"])
        for sampler, listed in one["negatives_valid_pairs_only" if valid_only else "negatives"].items():
            found = set(admissible(image, table, sampler, valid_only=valid_only))
            assert found == pairs(listed), (image.image_id, sampler)


def test_what_is_dropped_is_counted_under_its_first_reason(table: RelationTable, expected: Mapping[str, Any]) -> None:
    for one in expected["images"]:
        dropped = table.dropped(table[one["image_id"]])
        assert {reason: set(listed) for reason, listed in dropped.items()} == {
            reason: pairs(listed) for reason, listed in one["dropped"].items()
        }


def test_cooccurrence_scores_and_the_fallback(table: RelationTable, expected: Mapping[str, Any]) -> None:
    for one in expected["images"]:
        image = table[one["image_id"]]
        assert falls_back(image) == one["adversarial_falls_back_to_popular"]
        if not falls_back(image):
            assert cooccurrence(image, table) == one["cooccurrence_score"]


def test_open_questions(table: RelationTable, expected: Mapping[str, Any]) -> None:
    for one in expected["images"]:
        asked = open_questions(table[one["image_id"]], table.anatomies)
        assert [(q.anatomy, q.kind, list(q.findings), q.doubtful, list(q.partial)) for q in asked] == [
            (o["anatomy"], o["question_type"], o["findings"], o["doubtful"], o["partial"]) for o in one["open"]
        ]


def test_no_sampler_admits_what_holds_or_is_dropped(table: RelationTable) -> None:
    for image in table.images:
        barred = image.related.union(*table.dropped(image).values())
        for sampler in SAMPLERS:
            assert not barred & set(admissible(image, table, sampler))


def test_same_region_other_finding_asks_of_abnormal_regions_alone(table: RelationTable) -> None:
    image = table["s03"]
    found = admissible(image, table, "same_region_other_finding")
    assert found
    assert all(image.on(anatomy) and finding not in image.on(anatomy) for anatomy, finding in found)


def test_a_table_refuses_doubles_and_strangers() -> None:
    with pytest.raises(DatasetError, match="twice"):
        RelationTable(("heart",), ("Mass",), (ImageFacts("a"), ImageFacts("a")))
    with pytest.raises(DatasetError, match="outside"):
        RelationTable(("heart",), ("Mass",), (ImageFacts("a", frozenset({("aorta", "Mass")})),))
