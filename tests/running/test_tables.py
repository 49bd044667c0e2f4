from __future__ import annotations

import io

import polars as pl
import pytest

from medground.errors import RunError
from medground.running.tables import table_files, to_csv, to_latex, to_markdown

TABLE = pl.DataFrame(
    {
        "model": ["a|b", "50 % & x_y", None, "two\nlines"],
        "auc": [12.2586123456789, None, 0.05, 1234.5],
        "n": [180, 0, None, 3],
    }
)


def test_csv_keeps_every_digit():
    text = to_csv(TABLE)
    assert "12.2586123456789" in text
    assert pl.read_csv(io.StringIO(text)).equals(TABLE)


def test_markdown_is_aligned_and_escaped():
    assert to_markdown(TABLE).splitlines() == [
        "| model | auc | n |",
        "| --- | ---: | ---: |",
        "| a\\|b | 12.26 | 180 |",
        "| 50 % & x\\_y | - | 0 |",
        "| - | 0.05000 | - |",
        "| two lines | 1234 | 3 |",
    ]


def test_latex_is_escaped():
    assert to_latex(TABLE).splitlines()[1:] == [
        "\\begin{tabular}{lrr}",
        "\\toprule",
        "model & auc & n \\\\",
        "\\midrule",
        "a\\textbar{}b & 12.26 & 180 \\\\",
        "50 \\% \\& x\\_y & -- & 0 \\\\",
        "-- & 0.05000 & -- \\\\",
        "two lines & 1234 & 3 \\\\",
        "\\bottomrule",
        "\\end{tabular}",
    ]


def test_every_special_character_of_latex():
    text = to_latex(pl.DataFrame({"x": ["\\~^$#{}<>"]}))
    assert r"\textbackslash{}\textasciitilde{}\textasciicircum{}\$\#\{\}\textless{}\textgreater{}" in text


def test_a_number_that_rounds_up_to_four_digits_has_no_bare_point():
    assert "| 1000 |" in to_markdown(pl.DataFrame({"x": [999.97]}))


def test_every_table_in_three_formats():
    files = table_files({"by class": TABLE})
    assert sorted(files) == ["by class.csv", "by class.md", "by class.tex"]
    assert files["by class.csv"] == to_csv(TABLE).encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_undefined_is_null_and_never_nan(value):
    with pytest.raises(RunError, match="table t, column x"):
        table_files({"t": pl.DataFrame({"x": [None, value]})})


def test_nested_columns_are_refused():
    with pytest.raises(RunError, match="nested"):
        table_files({"t": pl.DataFrame({"x": [[1, 2]]})})
