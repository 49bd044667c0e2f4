"""What was said about an item, as one row a picture: probabilities and choices, never a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from medground.benchmarks.medical_checklist.asking import Group
from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.benchmarks.medical_checklist.scoring import parsing, probabilities
from medground.benchmarks.medical_checklist.scoring.probabilities import Link
from medground.benchmarks.model_reading import Compared
from medground.benchmarks.requests import Answer, Exchange, Transcript
from medground.readers.base import Question, Reader as ChoiceReader

Reader = Literal["lenient", "strict"]

SCHEMA = pl.Schema(
    {
        "item_id": pl.String(),
        "picture": pl.String(),
        "p": pl.Float64(),
        "p_first": pl.Float64(),
        "p_second": pl.Float64(),
        "choice_first": pl.String(),
        "choice_second": pl.String(),
        "rules_first": pl.String(),
        "rules_second": pl.String(),
        "parsed": pl.Int64(),
        "answers": pl.Int64(),
        "credit": pl.Float64(),
        "identical": pl.Boolean(),
        "beyond_limit": pl.Boolean(),
        "kind": pl.String(),
        "outcome": pl.String(),
        "reason": pl.String(),
    }
)
"""``p``: probability of the true caption; ``p_first``, ``p_second``: P(A) with the true caption as A and as B.

``credit`` is the sum over parsed answers of 1 for the true caption, so that every policy follows from it, ``parsed``
and ``answers``. ``beyond_limit``: by the model's tokenizer the changed term lies beyond its token limit, so that both
captions are one to it. ``identical``: it gave both the very same score, for that or another reason. Both are ties,
never hits by position. ``rules_first``, ``rules_second``: where a language model reads, what the rules make of the
same answers.
"""


@dataclass(frozen=True)
class ChecklistMeasurer:
    """Makes rows of what was said; needs no model and no picture.

    Args:
        reader: of answers in prose.
        link: of matching heads.
        choices: reads answers in prose in the place of the rules, where a language model does.
    """

    reader: Reader = "lenient"
    link: Link = "ratio"
    choices: ChoiceReader | None = None

    def measure(self, group: Group, transcript: Transcript) -> list[dict[str, Any]]:
        """Return one row an item and picture."""
        plan = transcript.notes["plan"]
        said = list(zip(plan, transcript.exchanges, strict=True))
        if transcript.notes["way"] == "match":
            return [row for note, exchange in said for row in self._matched(group, note["picture"], exchange)]
        rows = []
        for name in dict.fromkeys(note["picture"] for note in plan):
            for item in group.items:
                own = {n["side"]: e for n, e in said if n["picture"] == name and n["item"] == item.item_id}
                read = self._chosen if transcript.notes["way"] == "choose" else self._replied
                rows.append(read(item, name, own))
        return rows

    def failed(self, group: Group, reason: str) -> list[dict[str, Any]]:
        """Return rows without numbers."""
        return [_row(item, "main", outcome="unreadable", reason=reason) for item in group.items]

    def _matched(self, group: Group, picture: str, exchange: Exchange) -> list[dict[str, Any]]:
        answer = exchange.answer
        if answer.outcome != "ok":
            return [_row(i, picture, outcome=answer.outcome, reason=answer.reason) for i in group.items]
        raw = dict(zip(group.captions, np.asarray(answer.arrays["raw"], dtype=np.float64), strict=True))
        read = dict(zip(group.captions, answer.arrays.get("texts", range(len(raw))), strict=True))
        rows = []
        for item in group.items:
            a, b = float(raw[item.positive]), float(raw[item.negative])
            if not (math.isfinite(a) and math.isfinite(b)):
                rows.append(_row(item, picture, outcome="error", reason="a score is not finite"))
                continue
            beyond = bool(read[item.positive] == read[item.negative])
            p = 0.5 if beyond else self._p(a, b, answer)
            row = _row(item, picture, p=p, identical=beyond or a == b, kind=str(answer.values["kind"]))
            rows.append(row | {"beyond_limit": beyond} | _counted([p]))
        return rows

    def _p(self, a: float, b: float, answer: Answer) -> float:
        if answer.values["kind"] == "contrastive":
            return float(probabilities.contrastive(a, b, float(answer.values["scale"])))
        # A matching head gives one logit: the margin of match over no match.
        return float(probabilities.matching([0.0, a], [0.0, b], self.link))

    def _chosen(self, item: ChecklistItem, picture: str, own: Mapping[str, Exchange]) -> dict[str, Any]:
        chances: dict[str, float] = {}
        for side, exchange in own.items():
            answer = exchange.answer
            if answer.outcome != "ok":
                return _row(item, picture, outcome=answer.outcome, reason=answer.reason, kind="choose")
            a, b = np.asarray(answer.arrays["logp"], dtype=np.float64)
            chances[side] = float(probabilities.chat_choice(a, b))
        if not all(map(math.isfinite, chances.values())):
            return _row(item, picture, outcome="error", reason="a probability is not finite", kind="choose")
        first, second = chances.get("A"), chances.get("B")
        true = [c if side == "A" else 1 - c for side, c in chances.items()]
        row = _row(item, picture, p=float(np.mean(true)), p_first=first, p_second=second, kind="choose")
        return row | _counted(true if len(true) == 1 else [float(np.mean(true))])

    def _replied(self, item: ChecklistItem, picture: str, own: Mapping[str, Exchange]) -> dict[str, Any]:
        choices: dict[str, str | None] = {}
        for side, exchange in own.items():
            answer = exchange.answer
            if answer.outcome not in ("ok", "refusal"):
                return _row(item, picture, outcome=answer.outcome, reason=answer.reason, kind="reply")
            try:
                choices[side] = self._read(item, side, str(answer.values.get("text", "")))
            except _UnreadError as error:
                return _row(item, picture, outcome="error", reason=str(error), kind="reply")
        parsed = [(side, choice) for side, choice in choices.items() if choice is not None]
        row = _row(item, picture, kind="reply", choice_first=choices.get("A"), choice_second=choices.get("B"))
        right = float(sum(side == choice for side, choice in parsed))
        return row | {"parsed": len(parsed), "answers": len(choices), "credit": right}

    def _read(self, item: ChecklistItem, side: str, text: str) -> str | None:
        if self.reader == "strict" and self.choices is None:
            return parsing.strict(text)
        a, b = (item.positive, item.negative) if side == "A" else (item.negative, item.positive)
        if self.choices is None:
            return parsing.lenient(text, a, b)
        reading = self.choices.read(Question("Which caption fits the image?", choices=(a, b)), text)
        if reading.details.get("reader_failed"):
            raise _UnreadError(reading.reason)
        return "AB"[reading.value] if reading.outcome == "read" else None


def with_rules(rows: Sequence[dict[str, Any]], by_rules: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a reading model with what the rules made of the same answers beside them."""
    return [
        row | {"rules_first": other["choice_first"], "rules_second": other["choice_second"]}
        for row, other in zip(rows, by_rules, strict=True)
    ]


def read_twice(model: str, dataset: str, table: pl.DataFrame) -> Compared:
    """Return what a reading model and the rules made of the same answers; an answer that is no choice is ``none``."""
    asked = table.filter((pl.col("kind") == "reply") & (pl.col("outcome") == "ok") & (pl.col("answers") > 0))
    first, second = [], []
    for row in asked.iter_rows(named=True):
        for side in ("first", "second")[: row["answers"]]:
            first.append(row[f"choice_{side}"] or "none")
            second.append(row[f"rules_{side}"] or "none")
    return Compared(model, dataset, "choice", first, second)


class _UnreadError(Exception):
    """A reading model that failed, with the reason."""


def _counted(chances: Sequence[float]) -> dict[str, Any]:
    return {"parsed": 1, "answers": 1, "credit": float(np.mean(probabilities.credit(chances)))}


def _row(item: ChecklistItem, picture: str, **values: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(SCHEMA)
    return row | {"item_id": item.item_id, "picture": picture, "outcome": "ok", "reason": "", **values}


Measure = Callable[[Group, Transcript], list[dict[str, Any]]]
