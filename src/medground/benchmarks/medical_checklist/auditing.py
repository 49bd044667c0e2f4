"""``medground audit``: what blind scorers make of a file of items."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medground.benchmarks.medical_checklist import items as item_files
from medground.benchmarks.medical_checklist.audit.base import BlindScorer, Caption, Pair
from medground.benchmarks.medical_checklist.audit.run import AuditReport, audit
from medground.errors import DataError

_COLUMNS = ("item_id", "paper_id", "category", "term_positive", "term_negative", "positive", "negative")


def audit_file(
    file: Path, reference: Path | None = None, language_model: Path | None = None, *, seed: int = 0
) -> AuditReport:
    """Return what blind scorers make of a file of items (``items.jsonl``, or a CSV with the same texts).

    Args:
        file: the items, or the folder of a build.
        reference: captions to learn words from (JSON lines or CSV with ``paper`` and ``caption``); by default those of
            the items' own other half.
        language_model: folder of a causal language model.
        seed: of halves and folds.
    """
    path = file / "items.jsonl" if file.is_dir() else file
    pairs = _csv_pairs(path) if path.suffix == ".csv" else [i.as_pair for i in item_files.read(path)]
    if not pairs:
        raise DataError("there are no items to audit", where=path)
    extra: list[BlindScorer] = []
    if language_model is not None:
        from medground.benchmarks.medical_checklist.audit.causal_lm import CausalLanguageModel

        extra.append(CausalLanguageModel(language_model))
    return audit(pairs, None if reference is None else _reference(reference), extra, seed=seed)


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text("utf-8")
        if path.suffix == ".csv":
            return list(csv.DictReader(text.splitlines()))
        return [json.loads(line) for line in text.split("\n") if line]
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise DataError(
            "a table cannot be read", where=path, expected="UTF-8 CSV or JSON lines", got=str(error)
        ) from None


def _csv_pairs(path: Path) -> list[Pair]:
    rows = _rows(path)
    _need(rows, _COLUMNS, path)
    return [Pair(*(row[name] for name in _COLUMNS)) for row in rows]


def _reference(path: Path) -> list[Caption]:
    rows = _rows(path)
    paper = "paper" if rows and "paper" in rows[0] else "paper_id"
    _need(rows, (paper, "caption"), path)
    return [Caption(row[paper], row["caption"]) for row in rows]


def _need(rows: list[dict[str, Any]], names: Sequence[str], path: Path) -> None:
    for number, row in enumerate(rows, start=1):
        lacking = [n for n in names if not isinstance(row.get(n), str)]
        if lacking:
            raise DataError("a row lacks columns", where=f"{path}, row {number}", expected=list(names), got=lacking)
