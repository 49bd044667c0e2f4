"""Who may be called best."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from medground.reporting.tables import best_two
from medground.reporting.xbench.standing import standing

TASK = {"kind": "zero-shot", "seen": None, "unverified": None, "cases_seen": 0}


@pytest.mark.parametrize(
    ("changes", "ranked", "baseline", "marks"),
    [
        ({}, True, False, ()),
        ({"kind": None}, False, False, ("training unknown",)),
        ({"kind": "baseline"}, False, True, ("baseline",)),
        ({"kind": "supervised"}, False, False, ("supervised",)),
        ({"seen": "boxes"}, False, False, ("seen in training: boxes; scored on all",)),
        ({"cases_seen": 3}, False, False, ("seen in training: patients; scored on the rest",)),
        ({"unverified": "no weights"}, True, False, ("not the published model: no weights",)),
    ],
)
def test_only_zero_shot_models_that_have_not_seen_the_data_are_ranked(
    changes: dict, ranked: bool, baseline: bool, marks: tuple[str, ...]
) -> None:
    place = standing(TASK | changes)
    assert (place.ranked, place.baseline, place.marks) == (ranked, baseline, marks)


def test_best_and_second_with_ties() -> None:
    values = {"a": 3.0, "b": 5.0, "c": 5.0, "d": 4.0, "prior": 9.0}
    assert best_two(values, "abcd") == {"b": "best", "c": "best", "d": "second"}
    assert best_two(values, "abcd", low_is_good=True) == {"a": "best", "d": "second"}


def test_one_model_alone_is_not_the_best() -> None:
    assert best_two({"a": 1.0, "b": 2.0}, {"a"}) == {}
    assert best_two({}, {"a", "b"}) == {}


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 5).map(float)), st.sets(st.sampled_from("abcdef")))
def test_nobody_ranked_beats_the_best(values: dict[str, float], ranked: set[str]) -> None:
    marks = best_two(values, ranked)
    known = {name: values[name] for name in ranked if name in values}
    assert set(marks) <= set(known)
    for name, mark in marks.items():
        above = {v for v in known.values() if v > values[name]}
        assert len(above) == (0 if mark == "best" else 1)
