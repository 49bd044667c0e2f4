"""The same table as CSV, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io

from medground.reporting.exports import exports
from medground.reporting.tables import Head, Table, TableEntry

TABLE = Table(
    "A title",
    "model",
    [Head("a_b & c", notes=("seen in training: boxes",)), Head("d|<b>", "baseline")],
    [Head("Pointing"), Head("Dice"), Head("Dice")],
    [
        [
            TableEntry("61.57", "[58.11, 65.03]", "n 90", 61.572, "best"),
            TableEntry("50.00", value=50, mark="second"),
            None,
        ],
        [
            TableEntry("undefined", note="no class is defined"),
            TableEntry("\ue00010\ue002", value=10),
            TableEntry("1", value=1),
        ],
    ],
)


def test_csv_has_every_digit_and_every_note_in_its_column() -> None:
    rows = list(csv.reader(io.StringIO(exports(TABLE)["csv"])))
    assert rows[0][:4] == ["model", "Pointing", "Pointing interval", "Pointing note"]
    assert rows[1][:4] == ["a_b & c", "61.572", "[58.11, 65.03]", "n 90"]
    assert rows[1][-1] == "seen in training: boxes"
    assert rows[2][:4] == ["d|<b>", "", "", "no class is defined"]
    assert len({len(row) for row in rows}) == 1


def test_markdown_marks_the_best_and_escapes_the_rest() -> None:
    lines = exports(TABLE)["md"].splitlines()
    assert lines[0] == "| model | Pointing | Dice (1) | Dice (2) |"
    assert r"| a\_b & c, seen in training: boxes | **61.57** \[58.11, 65.03\] (n 90) | <u>50.00</u> |" in lines[2]
    assert r"d\|\<b>" in lines[3]


def test_latex_marks_the_best_and_escapes_the_rest() -> None:
    text = exports(TABLE)["tex"]
    assert r"a\_b \& c, seen in training: boxes & \textbf{61.57} [58.11, 65.03] (n 90) & \underline{50.00} & --" in text
    assert r"d\textbar{}\textless{}b\textgreater{}" in text


def test_private_characters_in_data_make_no_marks() -> None:
    found = exports(TABLE)
    assert "**10" not in found["md"]
    assert "\\textbf{10" not in found["tex"]
    assert "\ue000" not in found["md"] + found["tex"]
