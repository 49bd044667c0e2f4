"""The matrix: which columns and rows there are, what a tile says, and that picture and verdict cannot disagree."""

from __future__ import annotations

import pytest

from medground.benchmarks.results import Answer, Summary
from medground.reporting.trust.board import TrustBoard, together
from medground.reporting.trust.sentences import answer, hundreds, sentences
from medground.reporting.trust.strips import Scale, scale_of, strip_of

from .conftest import AUC, POINTING, SCORE, TURNED, cell, verdict


@pytest.fixture
def board(suite: list[Summary]) -> TrustBoard:
    return TrustBoard(suite)


def test_questions_stand_in_one_order_and_own_ones_at_the_end(board: TrustBoard) -> None:
    assert [c.question.key for c in board.columns] == ["recognises", "points", "words", "own"]
    assert [(c.low, c.high) for c in board.columns] == [("40", "100"), ("0", "100"), ("0", "100"), ("0.7", "7.3")]


def test_baselines_and_twins_stand_below_the_models(board: TrustBoard) -> None:
    assert [row.facts.label for row in board.rows] == ["looker", "talker", "random", "talker (blind)"]


def test_what_was_not_asked_is_said_with_the_missing_capability(board: TrustBoard) -> None:
    tiles = dict(zip([c.question.key for c in board.columns], board.rows[0].tiles, strict=True))
    assert (tiles["words"].answer, tiles["words"].why_not) == ("not asked", "answers no questions")
    assert tiles["own"].why_not == "no run asked it"
    assert [count for *_, count in board.rows[0].counts] == [2, 2]


def test_a_tile_has_figure_interval_n_letters_and_all_of_it_in_words(board: TrustBoard) -> None:
    tile = board.rows[0].tiles[1]
    assert (tile.answer, tile.sign, tile.figure, tile.interval, tile.items) == (
        "yes", "yes", "60.0", "58.0\N{EN DASH}62.0", "n 240",
    )  # fmt: skip
    assert tile.say.startswith(
        "looker, “Points at the finding”: yes. It does. Pointing 60.0 [58.0, 62.0]; class prior 30.0"
    )
    assert board.letters == {"seen": "a", "few": "b"}
    assert board.rows[0].tiles[0].letters == "a"


def test_several_verdicts_come_to_one_and_the_least_flattering_is_drawn(suite: list[Summary]) -> None:
    first, *_ = suite
    more = verdict(cell("grounding", "looker", "pointing", 0.31, dataset="e"), "points", "no", "Not there.")
    suite[0] = Summary(**{**vars(first), "verdicts": [*first.verdicts, more]})
    tile = TrustBoard(suite).rows[0].tiles[1]
    assert tile.answer == "in part"
    assert tile.figure == "31.0"
    assert tile.items == "n 240, 1 of 2"
    assert "e: no. Not there." in tile.say
    assert "d: yes. It does." in tile.say


@pytest.mark.parametrize(
    ("answers", "joined"),
    [
        (["yes", "yes"], "yes"),
        (["yes", "no"], "in part"),
        (["cannot be told", "no"], "cannot be told"),
        (["in part", "no"], "in part"),
        (["no"], "no"),
    ],
)
def test_answers_are_joined_without_adding_up(answers: list[Answer], joined: Answer) -> None:
    assert together(answers) == joined


def test_floors_say_what_is_had_without_looking(board: TrustBoard) -> None:
    assert board.floors == ["50.0 chance", "30.0 class prior", "10.0 blind twin", ""]


def test_a_strip_draws_the_paired_difference_from_the_comparator_on() -> None:
    headline, prior = cell("b", "m", "pointing", 0.6, 0.1), cell("b", "m", "prior", 0.3)
    gain = cell("b", "m", "gain", 0.3, 0.05)
    scale = Scale(0.0, 1.0)
    plain = strip_of(verdict(headline, "points", "yes", floor=prior), lambda _: POINTING, scale)
    paired = strip_of(verdict(headline, "points", "yes", floor=prior, difference=gain), lambda _: POINTING, scale)
    assert (plain.low, plain.high) == (scale.place(0.5), scale.place(0.7))
    assert (paired.low, paired.high) == (scale.place(0.55), scale.place(0.65))
    assert paired.zone == scale.place(0.32)
    assert paired.floor == scale.place(0.3)
    assert paired.point == scale.place(0.6)


def test_a_companion_that_is_a_difference_is_drawn_on_the_same_scale() -> None:
    gain = POINTING.__class__("gain", "Gain", unit="points", bounds=(-1.0, 1.0))
    specs = {"pointing": POINTING, "gain": gain}
    headline = cell("b", "m", "pointing", 0.6, floor=0.2)
    strip = strip_of(
        verdict(headline, "points", "in part", companion=cell("b", "m", "gain", 0.05)), specs.__getitem__, Scale(0, 1)
    )
    assert strip.ring == Scale(0, 1).place(0.25)


def test_scales_are_the_metric_s_bounds_and_hold_every_value() -> None:
    assert scale_of(AUC, [0.6]) == Scale(0.4, 1.0)
    assert scale_of(AUC, [0.3]) == Scale(0.3, 1.0)
    assert scale_of(TURNED, []) == Scale(0.0, 1.0)
    wide = scale_of(SCORE, [1.0, 3.0])
    assert wide.low < 1.0 < 3.0 < wide.high
    assert scale_of(SCORE, [2.0, 2.0]).high > 2.0
    assert Scale(0, 1).place(-5) == 2.0
    assert Scale(0, 1).place(5) == 98.0


def test_sentences_are_made_of_the_tiles(board: TrustBoard) -> None:
    looker, talker, random, blind = sentences(board)
    assert (
        looker.says == "does better in all 2 ways asked than can be done without looking: 60 of 100; class prior, 30."
    )
    assert looker.failed == "Nothing."
    assert "Follows when words change (3)" in looker.untested
    assert talker.says.startswith("is not shown to look in all 2 ways asked: 59 of 100; blind twin, 10")
    assert talker.failed == "Half of it. (3) Too few. (4)"
    assert random.says.startswith("does no better in the one way asked")
    assert blind.says.startswith("does no better in the one way asked")


def test_the_answer_counts_and_ranks_nothing(board: TrustBoard) -> None:
    assert answer(board) == "Of 6 answers: 2 yes, 1 in part, 2 no and 1 cannot be told. 10 questions were not asked."
    assert answer(TrustBoard([])) == "Nothing was asked."


def test_numbers_of_a_hundred_are_shares_of_items_alone(board: TrustBoard) -> None:
    found = hundreds(board)
    assert [(h.model, h.own, h.beside) for h in found] == [("talker", 59, 10), ("looker", 60, 30)]


def test_a_board_without_verdicts_is_empty() -> None:
    board = TrustBoard([Summary(benchmark="b", models=[])])
    assert (board.columns, board.rows, board.floors) == ([], [], [])
