import pytest
from hypothesis import given, strategies as st

from medground.errors import ConfigError, DataError
from medground.models.networks.gridvqa import tokens
from medground.worlds.gridvqa.drawing import EMPTY, class_of, paint, sprites
from medground.worlds.gridvqa.language import (
    COLOURS,
    DIRECTIONS,
    SHAPES,
    Clause,
    Kind,
    Question,
    Relation,
    parse,
    read,
)

kinds = st.builds(Kind, st.sampled_from(COLOURS), st.sampled_from(SHAPES))
relations = st.builds(Relation, st.sampled_from(DIRECTIONS), kinds)
clauses = st.builds(Clause, kinds, st.lists(relations, max_size=3).map(tuple))


@st.composite
def questions(draw):
    form = draw(st.sampled_from(["count", "exists", "compare"]))
    return Question(form, tuple(draw(clauses) for _ in range(2 if form == "compare" else 1)))


@given(questions())
def test_text_and_structure_are_two_sides_of_one_question(question):
    if question.form == "compare" and any(len(c.relations) > 2 for c in question.clauses):
        return  # three relations a side are no question of the paper
    assert parse(question.text) == question


@pytest.mark.parametrize(
    ("text", "depth", "kind"),
    [
        ("How many blue circles?", 1, "A"),
        ("How many pentagons are left of square?", 1, "SO"),
        ("Is there any blue object that is below green object and right of red object?", 2, "CO"),
        (
            "How many red squares that are above green circle, below blue triangle, and left of blue circle?",
            3,
            "M",
        ),
        ("Are there more red pentagons than green pentagons?", 1, "CMP"),
        ("Are there more green squares above blue triangle than blue pentagons left of red square?", 2, "CMP"),
    ],
)
def test_depth_and_type_follow_from_the_words(text, depth, kind):
    assert (parse(text).depth, parse(text).type) == (depth, kind)


@pytest.mark.parametrize("text", ["", "How many cats?", "how many red circles?", "How many red circles", "Why?"])
def test_other_text_is_refused(text):
    with pytest.raises(DataError, match="grammar"):
        parse(text)


def test_what_remains_of_a_damaged_question_is_read():
    red, blue = Kind("red", "circle"), Kind("blue", "square")
    whole = Question("count", (Clause(red, (Relation("left of", blue),)),))
    words = whole.text.split()
    assert read(words) == whole
    assert read([w for w in words if w not in ("How", "many", "are", "of")]) == whole
    assert read([w for w in words if w != "left"]).clauses[0].relations == ()
    assert read([w for w in words if w != "red"]).clauses[0].target == Kind(None, "circle")
    assert read([w for w in words if w not in ("left", "of")]).clauses[0].target == red
    assert read(["red", "are", "blue", "square"]).clauses[0].target == Kind("red")
    assert read(words, relations=False) == Question("count", (Clause(red),))
    assert read([]) == Question("count", (Clause(Kind()),))
    assert read(["Are", "there", "more", "red", "circles"]).clauses == (Clause(red), Clause(Kind()))


def test_words_carry_the_directions_before_them():
    codes = tokens.encode("Are there more red squares left of red circle than red circles above blue square?")
    words = {word: number for number, word in enumerate(tokens.WORDS, start=2)}
    assert [c[0] for c in codes[:5]] == [words[w] for w in ("are", "there", "more", "red", "square")]
    assert [c[1] for c in codes] == [0] * 5 + [1] * 7 + [2] * 3
    assert [c[2] for c in codes] == [0] * 9 + [1] * 6
    assert tokens.encode("")[:1] == ()
    assert tokens.batch(["", "zebra"]).tolist() == [[[0, 0, 0]], [[tokens.UNKNOWN, 0, 0]]]


def test_small_drawings_are_means_of_the_large_one():
    large, small = sprites(64).astype(float), sprites(16)
    assert small.shape == (17, 16, 16, 3)
    for y in (0, 5, 15):
        for x in (0, 7, 12):
            block = large[:, 4 * y : 4 * y + 4, 4 * x : 4 * x + 4]
            assert small[:, y, x] == pytest.approx(block.mean((1, 2)), abs=1e-4)
    assert (large[EMPTY] == 255).all()
    assert large[class_of("green", "square"), 32, 32].tolist() == [0, 128, 0]
    with pytest.raises(ConfigError, match="divisor"):
        sprites(15)


def test_boards_are_painted_by_row_and_column():
    picture = paint([[EMPTY, class_of("red", "square")], [EMPTY, EMPTY]], 64)
    assert picture.shape == (128, 128, 3)
    assert picture[32, 96].tolist() == [255, 0, 0]
    assert (picture[64:] == 255).all()
    assert (picture[:, :64] == 255).all()
