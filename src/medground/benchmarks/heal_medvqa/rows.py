"""Rows: what one reply to one variant of one question means, with all that scores and floors need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from medground.benchmarks.heal_medvqa.asking import BASE
from medground.benchmarks.heal_medvqa.localising import PART
from medground.benchmarks.heal_medvqa.plan import Asked
from medground.benchmarks.heal_medvqa.variants import FLIPS
from medground.benchmarks.model_reading import Compared
from medground.benchmarks.requests import Answer, Transcript
from medground.readers.base import Question as Query, Reader

_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "question_id": pl.String,
    "image_id": pl.String,
    "cluster": pl.String,
    "source": pl.String,
    "view": pl.String,
    "part": pl.String,
    "kind": pl.String,
    "variant": pl.String,
    "anatomy": pl.String,
    "finding": pl.String,
    "asked_anatomy": pl.String,
    "asked_finding": pl.String,
    "wanted": pl.String,
    "answer": pl.String,
    "rule": pl.String,
    "reason": pl.String,
    "by_rules": pl.String,
    "named": pl.List(pl.String),
    "truth": pl.List(pl.String),
    "states_normal": pl.Boolean,
    "negative": pl.String,
    "sampler": pl.String,
    "share": pl.Float64,
    "anywhere": pl.Boolean,
    "abnormal": pl.Boolean,
    "residue_hard": pl.Float64,
    "residue_soft": pl.Float64,
    "cover": pl.Float64,
    "clipped": pl.Float64,
    "donor": pl.String,
    "overlap": pl.Int64,
    "predicted": pl.Int64,
    "outlined": pl.Int64,
    "before": pl.String,
    "after": pl.String,
}
SCHEMA = pl.Schema(_COLUMNS)
"""``answer``: ``yes``, ``no``, ``findings`` (an open answer that was read), ``uncertain``, ``refusal``, ``unreadable``,
``failed`` (nothing was said: time-out, error, or a picture that cannot be read; or a reading model failed), ``not
made`` (there is no such variant; ``reason`` says why) or ``mask`` (pixels of both masks, of the model's, of the true
one, of one anatomy). ``by_rules``: where a language model reads, what the rules make of the same reply."""

TRUE_REGIONS = ": true regions"
"""Ends the name of a part whose questions were asked with the true region given to the model."""


def rows_of(
    asked: Asked, transcript: Transcript, yes_no: Reader, findings: Reader, vocabulary: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the rows of one item: one a variant that was asked, and one a variant that could not be made."""
    rows = []
    for exchange in transcript.exchanges:
        key = exchange.key
        if exchange.capability == "masks":
            rows += _masks(asked, exchange.answer, transcript.notes.get("masks", {}))
            continue
        notes = transcript.notes.get("pictures", {}).get(key["variant"], {})
        shown = transcript.notes.get("specimen", {}) if key["variant"] == "vpt" else {}
        row = _row(asked, str(key["variant"]), str(key["anatomy"]), str(key["finding"]), notes)
        reader = findings if asked.question.is_open else yes_no
        row |= {"before": shown.get(BASE), "after": shown.get("vpt")}
        if "region" in key:
            row |= {"part": asked.part + TRUE_REGIONS, "before": None, "after": None}
        rows.append(row | _meaning(exchange.answer, key, reader, vocabulary, is_open=asked.question.is_open))
    return rows + unmade(asked)


def category(row: Mapping[str, Any]) -> str | None:
    """Return what a reader made of a reply as one word or list of findings; None where there was nothing to read."""
    if row["answer"] in ("failed", "not made", "mask") or row["rule"] == "outcome":
        return None
    if row["answer"] == "findings":
        return ", ".join(row["named"]) or ("normal" if row["states_normal"] else "none named")
    return str(row["answer"])


def with_rules(rows: Sequence[dict[str, Any]], by_rules: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of one reader with what the rules made of the same replies beside them."""
    return [row | {"by_rules": category(other)} for row, other in zip(rows, by_rules, strict=True)]


def read_twice(path: Sequence[str], table: pl.DataFrame) -> list[Compared]:
    """Return what a reading model and the rules made of the same replies, closed and open ones apart."""
    rows = [row for row in table.iter_rows(named=True) if row["by_rules"] is not None or category(row) is not None]
    if not any(row["by_rules"] is not None for row in rows):
        return []
    apart: dict[str, list[dict[str, Any]]] = {"yes_no": [], "findings": []}
    for row in rows:
        apart["findings" if row["kind"].startswith("open") else "yes_no"].append(row)
    return [
        Compared(path[0], path[1], task, [category(row) for row in own], [row["by_rules"] for row in own])
        for task, own in apart.items()
    ]


def _masks(asked: Asked, answer: Answer, overlaps: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    """Return a row an anatomy whose mask was given, or one that says why there is none."""
    about = {"part": PART, "kind": PART, "wanted": ""}
    if answer.outcome != "ok":
        reason = answer.reason or answer.outcome
        return [_row(asked, PART, "", "", {}) | about | {"answer": "failed", "reason": reason}]
    return [
        _row(asked, PART, anatomy, "", {})
        | about
        | {"answer": "mask", "overlap": counts[0], "predicted": counts[1], "outlined": counts[2]}
        for anatomy, counts in overlaps.items()
    ]


def unmade(asked: Asked) -> list[dict[str, Any]]:
    """Return the rows of variants that could not be made."""
    pair = asked.question.pair
    return [
        _row(asked, name, *pair, {}) | {"answer": "not made", "reason": reason}
        for name, reason in asked.planned.not_made.items()
    ]


def failed(asked: Asked, reason: str) -> list[dict[str, Any]]:
    """Return the rows of an item that could not be read or asked: nothing invented, the reason kept."""
    question = asked.question
    variants = [(BASE, *question.pair), *((v.name, v.anatomy, v.finding) for v in asked.planned.variants)]
    lost = [_row(asked, *variant, {}) | {"answer": "failed", "reason": reason} for variant in variants]
    return lost + unmade(asked)


def _row(asked: Asked, variant: str, anatomy: str, finding: str, notes: Mapping[str, Any]) -> dict[str, Any]:
    question = asked.question
    base = dict.fromkeys(SCHEMA.names())
    return base | {
        "question_id": question.question_id,
        "image_id": question.image_id,
        "cluster": asked.cluster,
        "source": asked.source,
        "view": asked.view,
        "part": asked.part,
        "kind": question.kind,
        "variant": variant,
        "anatomy": question.anatomy,
        "finding": question.finding,
        "asked_anatomy": anatomy,
        "asked_finding": finding,
        "wanted": question.gold if variant == BASE else "no" if variant in FLIPS else "yes",
        "rule": "",
        "reason": "",
        "named": [],
        "truth": list(question.findings),
        "states_normal": False,
        "negative": question.negative,
        "sampler": question.sampler,
        "share": asked.share,
        "anywhere": asked.anywhere,
        "abnormal": asked.abnormal,
        "residue_hard": notes.get("residue_hard"),
        "residue_soft": notes.get("residue_soft"),
        "cover": notes.get("cover"),
        "clipped": notes.get("clipped"),
        "donor": str(notes.get("donor") or ""),
    }


def _meaning(
    answer: Answer, key: Mapping[str, Any], reader: Reader, vocabulary: Sequence[str], *, is_open: bool
) -> dict[str, Any]:
    """Return what a reply means, or the state that took its place."""
    if answer.outcome in ("refusal", "unreadable"):
        return {"answer": answer.outcome, "rule": "outcome", "reason": answer.reason}
    if answer.outcome != "ok":
        return {"answer": "failed", "rule": "outcome", "reason": answer.reason or answer.outcome}
    query = Query(str(key["text"]), str(key["finding"]), str(key["anatomy"]), vocabulary=tuple(vocabulary))
    read = reader.read(query, str(answer.values.get("text", "")))
    if read.details.get("reader_failed"):
        return {"answer": "failed", "rule": read.rule, "reason": read.reason}
    if read.outcome != "read":
        return {"answer": read.outcome, "rule": read.rule, "reason": read.reason}
    if not is_open:
        return {"answer": str(read.value), "rule": read.rule}
    normal = bool(read.details.get("states_normal_in_region"))
    return {"answer": "findings", "rule": read.rule, "named": list(read.value), "states_normal": normal}
