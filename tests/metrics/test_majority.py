"""The majority's answer: against counting by hand, and never from one's own patient."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from medground.metrics.folds import patient_folds
from medground.metrics.majority import majorities, majority_by_key

QUESTIONS = st.lists(st.tuples(st.booleans(), st.sampled_from("abc"), st.sampled_from("pqrst")), max_size=30)


@pytest.mark.parametrize("balanced", [False, True])
@given(questions=QUESTIONS)
def test_each_answer_is_the_majority_of_other_folds(questions: list[tuple[bool, str, str]], balanced: bool) -> None:
    right, keys, patients = ([q[i] for q in questions] for i in range(3))
    told = majority_by_key(right, keys, patients, folds=3, balanced=balanced)
    fold = patient_folds(patients, 3)
    for index, (_, key, _) in enumerate(questions):
        others = [(a, k) for (a, k, _), f in zip(questions, fold, strict=True) if f != fold[index]]
        weight = {answer: Fraction(1) for answer in (True, False)}
        if balanced:
            weight = {a: Fraction(1, max(1, sum(x == a for x, _ in others))) for a in (True, False)}
        votes = {a: sum(weight[a] for x, k in others if (x, k) == (a, key)) for a in (True, False)}
        expected = 0.5 if votes[True] == votes[False] else float(votes[True] > votes[False])
        assert told[index] == expected


def test_a_patient_does_not_answer_for_itself() -> None:
    # Only "p" was ever asked about "a": nothing is known of it elsewhere.
    told = majority_by_key([True, True, False, False], ["a", "a", "b", "b"], ["p", "p", "q", "r"], folds=3)
    assert told[:2].tolist() == [0.5, 0.5]


def test_rare_answers_weigh_more_where_asked() -> None:
    answers, keys = [True] * 2 + [False] * 8, ["a", "b"] + ["a"] * 2 + ["b"] * 6
    assert majorities(answers, keys) == {"a": 0.0, "b": 0.0}
    assert majorities(answers, keys, balanced=True) == {"a": 1.0, "b": 0.0}
