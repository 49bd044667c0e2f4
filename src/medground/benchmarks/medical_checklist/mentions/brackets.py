"""Spans inside brackets: abbreviations, panel marks, asides. They make no item."""

from __future__ import annotations

_PAIRS = {")": "(", "]": "["}


def spans(caption: str) -> list[tuple[int, int]]:
    """Return (start, end) of every text between a matching pair of ( ) or [ ], outermost and nested ones.

    Example:
        >>> spans("a (b [c]) d)")
        [(6, 7), (3, 8)]
    """
    opened: list[tuple[str, int]] = []
    found = []
    for position, mark in enumerate(caption):
        if mark in "([":
            opened.append((mark, position))
        elif mark in _PAIRS:
            while opened:
                kind, start = opened.pop()
                if kind == _PAIRS[mark]:
                    found.append((start + 1, position))
                    break
    return found


def is_in_brackets(caption: str, start: int, end: int) -> bool:
    """Whether a span lies inside a pair of brackets."""
    if "(" not in caption[:start] and "[" not in caption[:start]:
        return False
    return any(first <= start and end <= last for first, last in spans(caption))
