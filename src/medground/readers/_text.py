"""A reply without what is no answer, and cut into sentences and clauses.

Every step keeps the length of the text, so that a span in the cleaned text is the span in the reply as it came.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CHARACTERS = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": ";", "\u2212": "-",
        "\u00a0": " ", "\u202f": " ", "\u2022": "\n", "\t": " ", "\r": "\n",
    }
)  # fmt: skip

# Reasoning blocks hold no answer, also where they never close, or where only their end is part of the reply.
_THOUGHT = r"(?:think|thinking|thought|reasoning|reflection|scratchpad)"
_OPEN = rf"(?:<{_THOUGHT}>|\u25c1think\u25b7|\[think\])"
_CLOSE = rf"(?:</{_THOUGHT}>|\u25c1/think\u25b7|\[/think\])"
_NO_ANSWER = [
    re.compile(rf"{_OPEN}.*?(?:{_CLOSE}|\Z)", re.DOTALL),
    re.compile(rf"\A(?:(?!{_OPEN}).)*{_CLOSE}", re.DOTALL),
    re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b."),
    re.compile(r"<\|im_start\|>\s*(?:assistant|user|system)?|<start_of_turn>\s*(?:model|user)?"),
    re.compile(r"<\|[a-z0-9_ ]{1,40}\|>|</?s>|<(?:eos|bos|pad|unk|end_of_turn|image)>|\[/?inst\]"),
    re.compile(r"\A\s*(?:assistant|ai|model|bot|gpt)\s*:\s*"),
    # The location sentence of a model that localises first, also where it was cut off.
    re.compile(r"\b(?:the )?locations? of [^.<\n]{0,200}?\b(?:is|are) at(?:\s|,|and\b|<seg>)*(?:\.|(?<=<seg>)|\s*\Z)"),
    re.compile(r"<seg>"),
]
_MARKUP = re.compile(r"\*+|`+(?:json)?|(?<![a-z])_{1,3}|_{1,3}(?![a-z])|^[ ]*#{1,6} |~~", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[!?])\s+|(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)(?<!\bdr)(?<!\bca)\.(?=\s|\Z|\")\s*|\n+")
_CLAUSE = re.compile(
    r";|:(?!\d)|\s-\s|\b(?:but|however|(?<!not )yet|although|though|nevertheless|whereas|while|still,)\b"
    r"|,\s*(?:and |so |which |where )?"
    r"(?=(?:there|it|this|that|these|those|the|a|an|no|none|neither|not|in|on|at|i|we)\b)"
)


LONGEST_REPLY = 16_000  # characters beside reasoning: more is no answer to a question
LONGEST_SENTENCE = 500


@dataclass(frozen=True)
class Piece:
    """A stretch of the cleaned text: where it starts, and its words in small letters."""

    start: int
    text: str

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


def fold(text: str) -> str:
    """Return the text in small letters with plain quotes and dashes, each character in its place."""
    plain = text.translate(_CHARACTERS)
    return "".join(small if len(small := c.lower()) == 1 else c for c in plain)


def without_frame(text: str) -> str:
    """Return folded text with reasoning, chat tokens, terminal codes and location sentences as blanks."""
    for pattern in _NO_ANSWER:
        text = pattern.sub(_blank, text)
    return text


def overlong(text: str) -> bool:
    """Whether a text without its frame is too long to be an answer."""
    return len(text.strip()) > LONGEST_REPLY


def without_markup(text: str) -> str:
    """Return the text with Markdown's marks as blanks."""
    return _MARKUP.sub(_blank, text)


def sentences(text: str) -> list[Piece]:
    """Return the sentences of a text that hold a letter or digit.

    A line's end ends a sentence, a point in a number does not.
    """
    return _cut(Piece(0, text), _SENTENCE)


def clauses(sentence: Piece) -> list[Piece]:
    """Return the clauses of a sentence."""
    return _cut(sentence, _CLAUSE)


def _cut(piece: Piece, pattern: re.Pattern[str]) -> list[Piece]:
    parts: list[Piece] = []
    start = 0
    for match in pattern.finditer(piece.text):
        parts.append(Piece(piece.start + start, piece.text[start : match.end()]))
        start = match.end()
    parts.append(Piece(piece.start + start, piece.text[start:]))
    return [short for part in parts for short in _short(part) if re.search(r"\w", short.text)]


def _short(piece: Piece) -> list[Piece]:
    """Cut a piece that no sentence is as long as, so that reading stays in proportion to a reply's length."""
    return [
        Piece(piece.start + start, piece.text[start : start + LONGEST_SENTENCE])
        for start in range(0, max(1, len(piece.text)), LONGEST_SENTENCE)
    ]


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])
