import dataclasses

import pytest
from hypothesis import given, settings, strategies as st

from medground.errors import DataError
from medground.worlds.gridvqa.checker import check
from medground.worlds.gridvqa.generate import fillable, scene
from medground.worlds.gridvqa.language import COLOURS, SHAPES, Clause, Kind, Question, Relation, parse
from medground.worlds.gridvqa.masks import (
    position_mask,
    shortcut_text_mask,
    text_mask,
    vision_mask,
    word_roles,
)
from medground.worlds.gridvqa.records import listed, neutral
from medground.worlds.gridvqa.world import Thing, buckets


def test_everything_derived_equals_the_golden_scenes(golden_scenes):
    for record, made in golden_scenes:
        derived = neutral(made)
        for field, expected in record.items():
            if field not in ("png", "objects"):
                assert derived[field] == expected, (record["id"], field)


def test_questions_are_read_as_the_golden_structure(golden_scenes):
    for record, made in golden_scenes:
        question = made.question
        assert (question.depth, question.type, question.form) == (
            record["depth"],
            record["qtype"],
            record["form"],
        )
        assert question.text == record["question"]


def brute(things, question, grid, *, without=None, blind=False):
    """Walk over the question in words, not over its structure: an answer by another road."""
    counts = []
    for c, clause in enumerate(question.clauses):
        n = 0
        for thing in things:
            ok = clause.target.matches(thing.colour, thing.shape)
            for r, relation in enumerate(clause.relations):
                if blind or (c, r) == without:
                    continue
                (anchor,) = [t for t in things if relation.anchor.matches(t.colour, t.shape)]
                dx, dy = thing.x - anchor.x, thing.y - anchor.y
                ok &= {"left of": dx < 0, "right of": dx > 0, "above": dy < 0, "below": dy > 0}[relation.direction]
            n += ok
        counts.append(n)
    if question.form == "count":
        return counts, counts[0]
    yes = counts[0] > (0 if question.form == "exists" else counts[1])
    return counts, "yes" if yes else "no"


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(fillable(buckets(), 5)[0]),
    st.sampled_from(["pure", "spurious"]),
    st.sampled_from([{}, {"edition": "first"}, {"confusers": "released"}]),
    st.integers(0, 10**6),
)
def test_the_checker_agrees_with_brute_force(bucket, variant, options, seed):
    made = scene(variant, bucket, 0, seed=seed, **options)
    truth = check(made.things, made.question, made.grid)
    assert (list(truth.counts), truth.answer) == brute(made.things, made.question, 5)
    blind = brute(made.things, made.question, 5, blind=True)
    assert (list(truth.bag_of_words[0]), truth.bag_of_words[1]) == blind
    for dropped in truth.drop_one:
        counts, answer = brute(made.things, made.question, 5, without=(dropped.clause, dropped.relation))
        assert (dropped.count, dropped.answer) == (counts[dropped.clause], answer)
        assert (dropped.status == "filled") == (counts[dropped.clause] != truth.counts[dropped.clause])


def test_moving_a_distractor_within_its_class_changes_nothing_and_into_the_region_does():
    (bucket,) = [b for b in buckets([0.7]) if b.key == "D2-M-count-d07"]
    made = scene("pure", bucket, 3, grid=6)
    truth = check(made.things, made.question, 6)
    target = made.question.clauses[0].target
    named = {*made.question.anchors, target}
    for i, thing in enumerate(made.things):
        if thing.role not in ("distractor", "lure"):
            continue
        for colour in COLOURS:
            for shape in SHAPES:
                if any(kind.matches(colour, shape) for kind in named):
                    continue
                other = dataclasses.replace(thing, colour=colour, shape=shape)
                swapped = [*made.things[:i], other, *made.things[i + 1 :]]
                assert check(swapped, made.question, 6).answer == truth.answer
    taken = {thing.cell for thing in made.things}
    free = next(cell for cell in truth.clauses[0].region if cell not in taken)
    more = [*made.things, Thing(*free, target.colour, target.shape)]
    assert check(more, made.question, 6).answer == truth.answer + 1


@pytest.mark.parametrize(
    ("things", "problem"),
    [
        ([Thing(0, 0, "red", "circle"), Thing(0, 0, "blue", "circle")], "share a cell"),
        ([Thing(5, 0, "red", "circle")], "outside the board"),
        ([Thing(0, 0, "red", "circle")], "must be unique"),
        ([Thing(0, 0, "blue", "square"), Thing(1, 0, "blue", "square")], "must be unique"),
    ],
)
def test_impossible_scenes_are_refused(things, problem):
    with pytest.raises(DataError, match=problem):
        check(things, parse("How many red circles are left of blue square?"), 5)


def test_text_masks_differ_only_in_the_words_of_two_word_directions():
    text = "How many blue squares that are left of blue circle, right of red square, and below green circle?"
    words, right, old = text.split(), text_mask(text), text_mask(text, "released")
    assert {words[i] for i in range(len(words)) if right[i] != old[i]} == {"left", "right", "of"}
    assert [w for w, m in zip(words, right, strict=True) if not m] == ["many", "that", "are", "and"]


def test_the_shortcut_reads_no_anchor_and_no_direction():
    text = "Are there more red squares left of red circle than red circles above blue square?"
    told = [w for w, m in zip(text.split(), shortcut_text_mask(text), strict=True) if m]
    assert told == ["Are", "more", "red", "squares", "than", "red", "circles"]
    roles = dict(zip(enumerate(text.split()), word_roles(text), strict=True))
    assert roles[(5, "left")] == roles[(6, "of")] == "direction"
    assert roles[(7, "red")] == roles[(8, "circle")] == "anchor"
    assert roles[(10, "red")] == "target"


def test_a_vision_mask_is_whole_cells():
    mask = vision_mask({(1, 0), (4, 3)}, 5, 64)
    assert mask.shape == (320, 320)
    assert mask.sum() == 2 * 64 * 64
    assert mask[:64, 64:128].all()
    assert mask[192:256, 256:].all()


def test_no_answers_of_attribute_questions_have_no_explanation():
    question = Question("exists", (Clause(Kind("red", "circle")),))
    truth = check([Thing(0, 0, "blue", "circle")], question, 5)
    assert truth.answer == "no"
    assert not truth.causal
    assert truth.strict_confusers is None
    assert listed(position_mask([Thing(0, 0, "blue", "circle")], question, truth)) == [
        [x, y] for x in range(5) for y in range(5)
    ]


def test_a_repeated_direction_cannot_fill_both_confuser_regions():
    question = Question(
        "count",
        (
            Clause(
                Kind("red", "circle"),
                (Relation("left of", Kind("blue", "square")), Relation("left of", Kind("green", "square"))),
            ),
        ),
    )
    board = [Thing(3, 0, "blue", "square"), Thing(2, 1, "green", "square")]
    lures = [Thing(x, 4, "red", "circle") for x in range(5)]
    truth = check(board + lures, question, 5)
    assert [d.status for d in truth.drop_one] == ["no_region", "filled"]
    assert truth.strict_confusers is False
