"""Probabilities, credit and parsing against values computed elsewhere."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from medground.benchmarks.medical_checklist.scoring import parsing, probabilities
from medground.metrics import calibration


def column(rows: list[dict[str, str]], name: str) -> np.ndarray:
    return np.array([float(r[name]) for r in rows])


def chances(golden: Any) -> dict[str, np.ndarray]:
    rows = golden.rows("scoring/items.csv")
    scales = golden.load("scoring/expected.json")["scales"]
    pair = {s: np.stack([column(rows, f"itm_{s}_no"), column(rows, f"itm_{s}_match")], axis=1) for s in ("pos", "neg")}
    first = probabilities.chat_choice(column(rows, "chat_pos_first_A"), column(rows, "chat_pos_first_B"))
    second = probabilities.chat_choice(column(rows, "chat_pos_second_A"), column(rows, "chat_pos_second_B"))
    sides = np.array([r["side_of_positive"] for r in rows])
    return {
        "itc": probabilities.contrastive(column(rows, "itc_pos"), column(rows, "itc_neg"), scales["itc"]),
        "itc2": probabilities.contrastive(column(rows, "itc2_pos"), column(rows, "itc2_neg"), scales["itc2"]),
        "itm": probabilities.matching(pair["pos"], pair["neg"]),
        "itm_margin_link": probabilities.matching(pair["pos"], pair["neg"], "margin"),
        "chat_both_orders": probabilities.both_orders(first, second),
        "chat_single_order": np.where(sides == "A", first, 1 - second),
        "first": first,
        "second": second,
    }


def test_probabilities(golden: Any) -> None:
    expected = golden.load("scoring/expected.json")
    held = chances(golden)
    for kind, values in expected["probabilities_of_positive"].items():
        assert held[kind][: len(values)] == pytest.approx(values, abs=1e-9)


def test_overall(golden: Any) -> None:
    held = chances(golden)
    for kind, wanted in golden.load("scoring/expected.json")["overall"].items():
        p = held[kind]
        right = probabilities.credit(p)
        ones = np.ones_like(p)
        assert right.mean() == pytest.approx(wanted["accuracy"], abs=1e-9)
        assert int((right == 0.5).sum()) == wanted["n_ties"]
        assert calibration.brier(ones, p).value == pytest.approx(wanted["brier"], abs=1e-9)
        for eps in (1e-12, 1e-7):
            got = calibration.log_loss(ones, p, clip=eps).value
            assert got == pytest.approx(wanted[f"log_loss_eps_{eps:.0e}"], abs=1e-9)


def test_order_effects(golden: Any) -> None:
    held = chances(golden)
    got = probabilities.order(held["first"], held["second"])
    wanted = golden.load("scoring/expected.json")["order"]
    assert got._asdict() == pytest.approx({k.lower(): v for k, v in wanted.items()}, abs=1e-9)


def test_edge_cases(golden: Any) -> None:
    for case in golden.load("scoring/edge_cases.json"):
        if "p" in case:
            p = np.array(case["p"])
            right = probabilities.credit(p)
            assert right.mean() == pytest.approx(case["accuracy"])
            assert int((right == 0.5).sum()) == case["ties"] if "ties" in case else True
        else:
            a, b = case["similarities"]
            p = probabilities.contrastive(a, b, case.get("scale", 1))
            assert float(p) == case["p_positive"]
    assert float(probabilities.matching([1000.0, -1000.0], [1000.0, -1000.0])) == 0.5


def test_answers(golden: Any) -> None:
    held = golden.load("scoring/answers.json")
    for answer in held["answers"]:
        got = parsing.lenient(answer["text"], held["caption_a"], held["caption_b"]) or "unparsed"
        assert got in answer["accept"], (answer["text"], got)
        if answer["strict"] is not None:
            assert (parsing.strict(answer["text"]) or "unparsed") == answer["strict"], answer["text"]


def test_parse_policies(golden: Any) -> None:
    rows = golden.rows("scoring/items.csv")
    expected = golden.load("scoring/expected.json")
    for reader, name in ((parsing.lenient, "parsing"), (parsing.strict, "parsing_strict")):
        choices = [reader(json.loads(r["answer"])) for r in rows]
        right = sum(c == r["side_of_positive"] for c, r in zip(choices, rows, strict=True))
        parsed = sum(c is not None for c in choices)
        wanted = expected[name]
        assert (parsed, parsed / len(rows)) == (wanted["parsed"], pytest.approx(wanted["coverage"]))
        flat = (
            wanted
            if name == "parsing_strict"
            else {f"{k}_accuracy": wanted[k]["accuracy"] for k in ("excluded", "as_wrong", "half_credit")}
        )
        assert right / parsed == pytest.approx(flat["excluded_accuracy"])
        assert right / len(rows) == pytest.approx(flat["as_wrong_accuracy"])
        assert (right + (len(rows) - parsed) / 2) / len(rows) == pytest.approx(flat["half_credit_accuracy"])


@pytest.mark.parametrize(
    "answer", ["", " ", "Both.", "The lesion B cells", "a", "vitamin A deficiency", "Hepatitis B is seen"]
)
def test_prose_is_not_a_choice(answer: str) -> None:
    assert parsing.lenient(answer) in ((None, "A") if answer == "a" else (None,))


def test_swapping_sides_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=200), rng.normal(size=200)
    assert probabilities.contrastive(a, b, 20) == pytest.approx(1 - probabilities.contrastive(b, a, 20))
    assert probabilities.contrastive(a + 3, b + 3, 20) == pytest.approx(probabilities.contrastive(a, b, 20))
    assert probabilities.contrastive(5 * a, 5 * b, 4) == pytest.approx(probabilities.contrastive(a, b, 20))
