"""Models in plain words, made from their tiles alone: what each does, what failed or is open, what was not tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medground.reporting.trust.board import QuestionColumn, Row, Tile, TrustBoard
from medground.reporting.verdicts import comparator
from medground.reporting.words import count, listed


@dataclass(frozen=True)
class Sentence:
    """One model in words."""

    model: str
    says: str
    failed: str
    untested: str


@dataclass(frozen=True)
class Hundred:
    """A verdict as frequencies: so many of 100, beside what can be had without looking.

    Attributes:
        question: in full.
        model: whose.
        own: of 100.
        beside: of 100.
        name: what ``beside`` is.
    """

    question: str
    model: str
    own: int
    beside: int
    name: str


def sentences(board: TrustBoard) -> list[Sentence]:
    """Return one entry a model."""
    return [_sentence(row, board.columns) for row in board.rows]


def answer(board: TrustBoard) -> str:
    """Return the page's first line: how often each answer was given, and nothing added up."""
    tiles = [tile for row in board.rows for tile in row.tiles]
    counted = {word: sum(tile.answer == word for tile in tiles) for word in ("yes", "in part", "no", "cannot be told")}
    counts = [f"{n} {word}" for word, n in counted.items() if n]
    unasked = sum(tile.answer == "not asked" for tile in tiles)
    asked = f"Of {count(len(tiles) - unasked, 'answer')}: {listed(counts)}." if counts else "Nothing was asked."
    return f"{asked} {count(unasked, 'question was', 'questions were')} not asked." if unasked else asked


def hundreds(board: TrustBoard, most: int = 3) -> list[Hundred]:
    """Return the shares that differ most from what can be had without looking, either way, one a question."""
    known: list[tuple[float, Hundred]] = []
    for row in board.rows:
        for column, tile in zip(board.columns, row.tiles, strict=True):
            if (entry := _hundred(row, column, tile)) is not None and not row.facts.baseline:
                known.append((abs(entry.own - entry.beside), entry))
    known.sort(key=lambda item: -item[0])
    chosen: dict[str, Hundred] = {}
    for _, entry in known:
        chosen.setdefault(entry.question, entry)
    return list(chosen.values())[:most]


def _sentence(row: Row, columns: Sequence[QuestionColumn]) -> Sentence:
    pairs = list(zip(columns, row.tiles, strict=True))
    asked = [(c, t) for c, t in pairs if t.answer != "not asked"]
    yes = [(c, t) for c, t in asked if t.answer == "yes"]
    return Sentence(
        row.facts.label,
        _says(asked, yes),
        " ".join(f"{t.told[0].verdict.because} ({c.number})" for c, t in asked if t.answer != "yes") or "Nothing.",
        listed([f"{c.question.title} ({c.number})" for c, t in pairs if t.answer == "not asked"]) or "Nothing.",
    )


def _says(asked: Sequence[tuple[QuestionColumn, Tile]], yes: Sequence[tuple[QuestionColumn, Tile]]) -> str:
    if not asked:
        return "was asked nothing that it can answer."
    ways = "in the one way asked" if len(asked) == 1 else f"in all {len(asked)} ways asked"
    if len(yes) == len(asked):
        return f"does better {ways} than can be done without looking{_figure(yes)}."
    if all(t.answer == "no" for _, t in asked):
        return f"does no better {ways} than can be done without looking{_figure(asked)}."
    if not yes:
        return f"is not shown to look {ways}{_figure(asked)}."
    done = listed([_lower(c.question.title) for c, _ in yes])
    return f"{done}: in {len(yes)} of {len(asked)} ways asked it clears what can be had without looking{_figure(yes)}."


def _figure(pairs: Sequence[tuple[QuestionColumn, Tile]]) -> str:
    """Return one figure with its comparator: ``; 59 of 100, without looking 6``."""
    for _, tile in pairs:
        numbers = _shares(tile)
        if numbers is not None:
            own, beside, name = numbers
            return f": {own} of 100; {name}, {beside}"
    return ""


def _shares(tile: Tile) -> tuple[int, int, str] | None:
    if not tile.told:
        return None
    told = tile.told[0]
    headline, beside = told.verdict.headline, comparator(told.verdict, told.summary.spec)
    if headline is None or headline.value is None or beside is None:
        return None
    spec = told.summary.spec(headline.metric)
    # A share of items reads as "of 100"; an overlap or a rank does not.
    if spec.unit != "percent" or spec.family != "rate" or spec.statistic not in {"mean", "ratio"}:
        return None
    return round(100 * headline.value), round(100 * beside[1]), beside[0]


def _hundred(row: Row, column: QuestionColumn, tile: Tile) -> Hundred | None:
    numbers = _shares(tile)
    if numbers is None or tile.answer == "cannot be told":
        return None
    own, beside, name = numbers
    if not (0 <= own <= 100 and 0 <= beside <= 100):
        return None
    return Hundred(column.question.asks, row.facts.label, own, beside, name)


def _lower(title: str) -> str:
    return f"{title[:1].lower()}{title[1:]}"
