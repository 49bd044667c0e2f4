from __future__ import annotations

import pickle

from medground.errors import CheckpointError, MedgroundError, ModelError, did_you_mean, nearest


def test_a_message_says_what_where_expected_got_and_how_to_mend_it() -> None:
    error = MedgroundError("the box is wrong", where="row 3", expected="x0 < x1", got="5, 2", fix="swap them")
    assert str(error).splitlines() == [
        "the box is wrong",
        "  where: row 3",
        "  expected: x0 < x1",
        "  got: 5, 2",
        "  fix: swap them",
    ]


def test_what_is_not_known_is_not_printed() -> None:
    assert str(MedgroundError("the box is wrong", got=0)) == "the box is wrong\n  got: 0"


def test_the_tree() -> None:
    assert issubclass(CheckpointError, ModelError)
    assert issubclass(ModelError, MedgroundError)


def test_an_error_survives_a_process_boundary() -> None:
    error = CheckpointError("no", where="a", expected="b", got="c", fix="d")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is CheckpointError
    assert str(again) == str(error)


def test_nearest_names() -> None:
    assert nearest("carzreo", ["kad", "carzero"]) == "carzero"
    assert nearest("CARZero", ["kad", "carzero"]) == "carzero"
    assert nearest("qqqq", ["kad", "carzero"]) is None
    assert did_you_mean("Kad", ["kad"]) == "did you mean 'kad'?"
    assert did_you_mean("zzz", ["kad"]) is None


def test_messages_do_not_echo_input_of_any_length() -> None:
    error = MedgroundError("x" * 10_000, got="y" * 1_000_000, where="a\nb")
    assert len(str(error)) < 5_000
    assert "(1,000,007 characters)" in str(error)
    assert "  where: a\nb" in str(error)
