"""Minimal causes and responsibilities against their definition, by trying every set of objects."""

from itertools import combinations

import pytest
from hypothesis import given, settings, strategies as st

from medground.errors import DataError
from medground.worlds.gridvqa.causes import minimal_causes, responsibility
from medground.worlds.gridvqa.checker import check
from medground.worlds.gridvqa.generate import fillable, scene
from medground.worlds.gridvqa.language import Clause, Kind, Question, Relation
from medground.worlds.gridvqa.world import Thing, buckets

SMALL = fillable(buckets([0.3]), 5)[0]
HOLDS = {
    "left of": lambda t, a: t.x < a.x,
    "right of": lambda t, a: t.x > a.x,
    "above": lambda t, a: t.y < a.y,
    "below": lambda t, a: t.y > a.y,
}


def answer(things, question):
    """Answer a question about what is left of a scene; beside an absent anchor lies nothing."""
    found = []
    for clause in question.clauses:
        inside = [t for t in things if clause.target.matches(t.colour, t.shape)]
        for relation in clause.relations:
            anchors = [t for t in things if relation.anchor.matches(t.colour, t.shape)]
            inside = [t for t in inside if any(HOLDS[relation.direction](t, a) for a in anchors)]
        found.append(len(inside))
    if question.form == "count":
        return found[0]
    return "yes" if found[0] > (0 if question.form == "exists" else found[1]) else "no"


def table(made):
    """The answer without every set of objects."""
    n = len(made.things)
    return {
        gone: answer([t for i, t in enumerate(made.things) if i not in gone], made.question)
        for size in range(n + 1)
        for gone in map(frozenset, combinations(range(n), size))
    }


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SMALL), st.integers(0, 10**9), st.sampled_from(["pure", "spurious"]))
def test_causes_and_responsibilities_follow_their_definitions(bucket, seed, variant):
    made = scene(variant, bucket, 0, seed=seed)
    truth, without = check(made.things, made.question, 5), table(made)
    changing = {gone for gone, reply in without.items() if reply != made.answer}
    minimal = {gone for gone in changing if not any(gone - {i} in changing for i in gone)}
    minimal = {gone for gone in minimal if not any(other < gone for other in changing)}
    cells = [t.cell for t in made.things]
    families = minimal_causes(made.question, truth)
    spelt = {frozenset(some) for cause in families for some in combinations(sorted(cause.cells), cause.take)}
    assert spelt == {frozenset(cells[i] for i in gone) for gone in minimal}
    weights = {}
    for i, cell in enumerate(cells):
        sizes = [len(gone) for gone in without if i not in gone and gone not in changing and gone | {i} in changing]
        if sizes:
            weights[cell] = 1 / (1 + min(sizes))
    assert responsibility(made.question, truth) == pytest.approx(weights)


def test_one_of_three_is_a_third_of_there_is_one_and_all_of_three():
    things = [Thing(x, 0, "red", "circle") for x in range(3)] + [Thing(4, 4, "blue", "square")]
    relation = Relation("left of", Kind("blue", "square"))
    for form, weight in (("count", 1.0), ("exists", 1 / 3)):
        question = Question(form, (Clause(Kind("red", "circle"), (relation,)),))
        weights = responsibility(question, check(things, question, 5))
        assert weights == pytest.approx({(0, 0): weight, (1, 0): weight, (2, 0): weight, (4, 4): 1.0})


def test_no_has_no_cause_among_objects_and_overlapping_descriptions_are_refused():
    things = [Thing(0, 0, "blue", "square")]
    no = Question("exists", (Clause(Kind("red", "circle")),))
    assert minimal_causes(no, check(things, no, 5)) == ()
    twice = Question("exists", (Clause(Kind("blue"), (Relation("left of", Kind("blue", "square")),)),))
    with pytest.raises(DataError, match="can fit one object"):
        minimal_causes(twice, check(things, twice, 5))
