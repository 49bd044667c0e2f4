"""The share of a lesion on an anatomy: golden boxes and masks, and the readings that the paper leaves open."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from medground.benchmarks.heal_medvqa.relation import Lesion, RelationRule, place
from medground.errors import RegionError


@pytest.fixture(scope="module")
def cases(heal_golden: Path) -> list[tuple[dict, list[Lesion], dict]]:
    folder = heal_golden / "relation"
    masks, expected = np.load(folder / "masks.npz"), json.loads((folder / "expected.json").read_text())
    listed = []
    for kind, prefix in (("tiny", "tiny/"), ("images", "")):
        for case in expected[kind]:
            anatomies = {name: masks[f"{prefix}{case['id']}/{name}"] != 0 for name in case["anatomies"]}
            lesions = [Lesion(b["finding"], tuple(b["box"]), tuple(case["frame"])) for b in case["boxes"]]
            listed.append((case, lesions, anatomies))
    return listed


def same(shares: dict, expected: dict) -> bool:
    return all(
        shares[name] is None if value is None else shares[name] == pytest.approx(value, abs=1e-9)
        for name, value in expected.items()
    )


def test_shares_and_pairs_of_all_golden_cases(cases: list) -> None:
    for case, lesions, anatomies in cases:
        placed = place(lesions, anatomies)
        for box, shares in zip(case["boxes"], placed.shares, strict=True):
            assert same(shares, box["share"]), case["id"]
        assert sorted(map(list, placed.related)) == case["related_pairs"], case["id"]
        counted = placed.on_none, placed.on_several, placed.undefined
        assert counted == (case["on_none"], case["on_two_or_more"], case["undefined"]), case["id"]
        assert sorted(placed.empty) == sorted(case.get("empty_masks", [])), case["id"]


def test_regions_that_would_be_called_normal_though_touched(cases: list) -> None:
    for case, lesions, anatomies in cases:
        placed = place(lesions, anatomies)
        with_finding = {anatomy for anatomy, _ in placed.related}
        touched = {anatomy for anatomy, _ in placed.partial} - with_finding
        assert sorted(touched) == sorted(case["regions_without_finding_but_touched"]), case["id"]


@pytest.mark.parametrize(
    ("key", "rule"),
    [
        ("share_of_unclipped_box", RelationRule(denominator="whole")),
        ("share_by_pixel_centres", RelationRule(counting="centres")),
    ],
)
def test_other_readings_of_a_box(cases: list, key: str, rule: RelationRule) -> None:
    compared = 0
    for case, lesions, anatomies in cases:
        for box, shares in zip(case["boxes"], place(lesions, anatomies, rule).shares, strict=True):
            if key in box:
                assert same(shares, box[key]), case["id"]
                compared += 1
    assert compared


def test_all_boxes_of_a_finding_together(cases: list) -> None:
    compared = 0
    for case, lesions, anatomies in cases:
        placed = place(lesions, anatomies, RelationRule(lesions="union"))
        for finding, shares in case["share_of_union_of_boxes"].items():
            assert same(placed.shares[placed.findings.index(finding)], shares), case["id"]
            compared += 1
    assert compared


def test_a_mask_is_a_lesion_like_its_box() -> None:
    anatomies = {"left lung": np.zeros((8, 8), bool)}
    anatomies["left lung"][:, 4:] = True
    mask = np.zeros((8, 8), bool)
    mask[2:4, 3:7] = True
    drawn = place([Lesion("Mass", mask=mask)], anatomies)
    boxed = place([Lesion("Mass", (3, 2, 7, 4))], anatomies)
    assert drawn.shares == boxed.shares == ({"left lung": 0.75},)


def test_a_finding_on_both_sides_is_lost_only_under_the_union() -> None:
    anatomies = {side: np.zeros((4, 8), bool) for side in ("right lung", "left lung")}
    anatomies["right lung"][:, :4], anatomies["left lung"][:, 4:] = True, True
    lesions = [Lesion("Infiltration", (0, 0, 2, 2)), Lesion("Infiltration", (6, 0, 8, 2))]
    assert place(lesions, anatomies).lost == frozenset()
    assert place(lesions, anatomies, RelationRule(lesions="union")).lost == {"Infiltration"}


@pytest.mark.parametrize(
    ("lesions", "anatomies"),
    [
        ([], {}),
        ([], {"a": np.zeros((2, 2), bool), "b": np.zeros((2, 3), bool)}),
        ([Lesion("Mass")], {"a": np.zeros((2, 2), bool)}),
        ([Lesion("Mass", (0, 0, float("nan"), 1))], {"a": np.zeros((2, 2), bool)}),
        ([Lesion("Mass", mask=np.zeros((3, 3), bool))], {"a": np.zeros((2, 2), bool)}),
    ],
)
def test_what_cannot_be_placed_is_refused(lesions: list, anatomies: dict) -> None:
    with pytest.raises(RegionError):
        place(lesions, anatomies)
