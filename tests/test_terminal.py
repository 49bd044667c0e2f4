"""What the terminal shows: tables that fold without losing a cell, lines that hang, and a word where it takes long."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from medground import terminal
from medground.running import progress

ROWS = [{"model": f"model {i}", **{f"metric {k}": f"{10 * i + k}.25 [1.0, 2.0]" for k in range(9)}} for i in range(3)]


@given(st.integers(10, 200))
def test_a_folded_table_keeps_every_cell_once_and_the_first_column_everywhere(width: int) -> None:
    blocks = terminal.folded(ROWS, width)
    for i, row in enumerate(ROWS):
        joined: dict[str, str] = {}
        for block in blocks:
            assert next(iter(block[i])) == "model"
            assert not (set(block[i]) & set(joined)) - {"model"}
            joined |= block[i]
        assert joined == row
        assert list(joined) == list(row)


def test_a_table_stays_whole_where_there_is_room_or_nobody_says_how_much() -> None:
    assert terminal.folded(ROWS, None) == [ROWS]
    assert terminal.folded(ROWS, 10_000) == [ROWS]
    assert terminal.folded([], 40) == [[]]


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_is_longer_than_a_narrow_terminal(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    terminal._table("A title", ROWS)
    names = {"models": ["a_name_of_some_length", "b"]}
    terminal.show_components(names, {"a_name_of_some_length": "word " * 40, "b": "short"}, as_json=False)
    terminal.show_facts({"what": "word " * 40, "parameters": {"x: int": "word " * 40}}, as_json=False)
    out = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= width
    assert out.count("word") == 120
    assert all(cell in out for row in ROWS for cell in row.values())


def test_a_pipe_gets_a_line_a_component(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    terminal.show_components({"models": ["a"]}, {"a": "word " * 40}, as_json=False)
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(("quiet", "told"), [(False, True), (True, False)])
def test_what_takes_long_says_so_on_the_error_stream(
    quiet: bool, told: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_quiet", quiet)
    with terminal.waiting("reading", after=0.01):
        time.sleep(0.3)
    caught = capsys.readouterr()
    assert ("reading ..." in caught.err) == told
    assert caught.out == ""
    with terminal.waiting("reading", after=1e9):
        pass
    assert capsys.readouterr().err == ""
