"""What came from data harms no output: terminals, spreadsheets, LaTeX and Markdown."""

from __future__ import annotations

import ast
import io
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import medground
from medground.escaping import for_csv, for_latex, for_markdown, for_terminal
from medground.running.progress import LineProgress


@given(st.text())
def test_no_text_moves_a_terminal(text: str) -> None:
    shown = for_terminal(text)
    assert not [c for c in shown if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c in "\u202e\u2066"]
    assert for_terminal(shown) == shown


@pytest.mark.parametrize(
    "text", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", " =1", "\t=1", "+1+cmd|x", "\r=1", "--1", "-1 [=x]"]
)
def test_what_a_spreadsheet_would_compute_stands_behind_an_apostrophe(text: str) -> None:
    assert for_csv(text) == f"'{text}"


@pytest.mark.parametrize(
    "text",
    ["-39.9", "+3.9 [-8.3, +17.9]", "32.9 (31-35)", "Mass", "", "1e-5", "-.5", "12 %", "a=b", "-1.5e-05", "61.62"],
)
def test_figures_and_names_stay_as_they_are(text: str) -> None:
    assert for_csv(text) == text


@given(st.text())
def test_no_field_starts_a_formula(text: str) -> None:
    field = for_csv(text)
    assert field == text or field == f"'{text}"
    if field.lstrip()[:1] in {"=", "@"}:
        pytest.fail(field)


@given(st.text())
def test_cells_of_tables_are_one_line_without_markup(text: str) -> None:
    for cell in (for_latex(text), for_markdown(text)):
        assert "\n" not in cell
        assert "\x1b" not in cell
    assert "|" not in for_markdown(text).replace("\\|", "").replace("\\\\", "")


def test_latex_prints_its_special_characters() -> None:
    assert for_latex("a_b & 50 % {x} \\input{/etc/passwd} ~ ^ # $") == (
        r"a\_b \& 50 \% \{x\} \textbackslash{}input\{/etc/passwd\} \textasciitilde{} \textasciicircum{} \# \$"
    )


SAYS = {
    "terminal.py": "the one place that prints",
    "cli.py": "version, escaped errors and fixed sentences",
    "running/progress.py": "escapes what it is told",
    "commands/run_file_page.py": "writes a page of the documentation",
}


def _printing(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    return name in ("print", "typer.echo", "click.echo", "sys.stdout.write", "sys.stderr.write", "typer.secho")


def test_text_reaches_a_terminal_by_one_way() -> None:
    root = Path(medground.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if str(path.relative_to(root)) not in SAYS:
            calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call) and _printing(n)]
            assert not calls, f"{path.relative_to(root)} line {calls[0].lineno} prints: use terminal.say"


def test_progress_says_nothing_that_a_terminal_obeys() -> None:
    stream = io.StringIO()
    LineProgress(stream).say("a \x1b[31mred\x07 label")
    assert "\x1b" not in stream.getvalue()
    assert "\x07" not in stream.getvalue()
