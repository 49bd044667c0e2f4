"""Findings from free answers: golden answers and their scores, vocabularies of the datasets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from medground.readers.base import Question
from medground.readers.findings import Findings
from medground.readers.lexicon import term

GOLDEN = Path(__file__).parents[1] / "golden" / "readers"
EXPECTED = json.loads((GOLDEN / "findings_expected.json").read_text())
CASES = [json.loads(line) for line in (GOLDEN / "findings.jsonl").read_text(encoding="utf-8").splitlines()]
READER = Findings()


def read(case: dict[str, Any]) -> Any:
    return READER.read(Question("", region=case["anatomy"], vocabulary=tuple(EXPECTED["vocabulary"])), case["reply"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_golden_answers(case: dict[str, Any]) -> None:
    reading = read(case)
    admissible = case["also_admissible"]
    assert reading.details["anywhere"] in [case["findings"], *admissible]
    assert list(reading.value or ()) in [case["findings_in_region"], *admissible]
    assert reading.details["uncertain"] == case["uncertain"]
    assert reading.details["states_normal"] == case["states_normal"]
    assert reading.details["states_normal_in_region"] == case["states_normal_in_region"]
    assert (reading.value is None) == (reading.outcome != "read")


def test_micro_scores_of_the_golden_answers() -> None:
    tp = fp = fn = 0
    for case in CASES:
        if case["also_admissible"] or not case["gold"]:
            continue
        found, gold = set(read(case).details["anywhere"]), set(case["gold"])
        tp, fp, fn = tp + len(found & gold), fp + len(found - gold), fn + len(gold - found)
    expected = [case for case in CASES if case["gold"] and not case["also_admissible"]]
    assert tp == sum(len(set(case["findings"]) & set(case["gold"])) for case in expected)
    assert fp == sum(len(set(case["findings"]) - set(case["gold"])) for case in expected)
    assert fn == sum(len(set(case["gold"]) - set(case["findings"])) for case in expected)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Effusion", "a small pleural effusion"),
        ("Pleural Effusion", "pleural fluid"),
        ("Nodule/Mass", "two masses"),
        ("Lung Lesion", "a nodule"),
        ("Airspace Opacity", "patchy opacities"),
        ("Enlarged Cardiomediastinum", "the mediastinum is widened"),
        ("Support Devices", "an endotracheal tube"),
        ("Pleural_Thickening", "pleural thickening"),
        ("COVID-19", "typical of COVID-19"),
        ("Fracture", "a rib fracture"),
        ("Enlarged PA", "prominent pulmonary artery"),
    ],
)
def test_names_of_every_dataset_are_known(name: str, words: str) -> None:
    reading = READER.read(Question(vocabulary=(name,)), f"There is {words}.")
    assert reading.value == (name,)
    assert term(name).name == name


def test_a_refusal_is_no_empty_set() -> None:
    assert READER.read(Question(), "I'm sorry, I can't interpret medical images.").outcome == "refusal"
    assert READER.read(Question(), "").outcome == "unreadable"
    assert READER.read(Question(), "Possible pneumonia.").outcome == "uncertain"
