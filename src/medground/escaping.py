"""Text that came from data, made harmless for where it goes: one function an output; templates escape HTML."""

from __future__ import annotations

import re
import unicodedata

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_LATEX_TABLE = str.maketrans(_LATEX)
_MARKDOWN_TABLE = str.maketrans({c: f"\\{c}" for c in "\\|*_`<[]"})
_STARTS_A_FORMULA = re.compile(r"\s*[=@]|\s*[+-]|[\t\r\n]")
_FIGURE = re.compile(
    r"\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?( ?%)?( [\[(][+-]?[\d.,]+(, ?|-)[+-]?[\d.,]+[\])])?\s*", re.IGNORECASE
)
"""A number as tables write it, perhaps with its interval: ``-39.9``, ``+3.9 [-8.3, +17.9]``."""


def for_terminal(text: str) -> str:
    r"""Return text without a character that a terminal would obey; line ends and tabs stay.

    Control characters (the escape that starts a sequence among them) and those that turn the direction of writing are
    written out.

    Example:
        >>> for_terminal("a\x1b[31mb")
        'a\\x1b[31mb'
    """
    return "".join(_written_out(c) if _is_control(c) else c for c in text)


def for_csv(text: str) -> str:
    """Return a field that no spreadsheet takes for a formula: what would start one stands behind an apostrophe.

    Example:
        >>> for_csv("=cmd|' /C calc'!A0"), for_csv("-39.9")
        ("'=cmd|' /C calc'!A0", '-39.9')
    """
    if _STARTS_A_FORMULA.match(text) and not _FIGURE.fullmatch(text):
        return f"'{text}"
    return text


def for_latex(text: str) -> str:
    r"""Return text for a cell of a LaTeX table: its special characters printed, no control character, on one line.

    Example:
        >>> for_latex("50 % of A_1")
        '50 \\% of A\\_1'
    """
    return _one_line(text).translate(_LATEX_TABLE)


def for_markdown(text: str) -> str:
    """Return text for a cell of a Markdown table: no markup, no control character, on one line."""
    return _one_line(text).translate(_MARKDOWN_TABLE)


def _one_line(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        text = "".join(c for c in text if c.isspace() or not _is_control(c))
    return " ".join(text.split())


def _is_control(character: str) -> bool:
    """Whether a terminal could obey it: control characters and marks of direction, but not line ends and tabs."""
    if character in "\n\t":
        return False
    return unicodedata.category(character) == "Cc" or unicodedata.bidirectional(character) in {
        "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
    }  # fmt: skip


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode()
