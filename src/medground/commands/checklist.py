"""``medground build medical_checklist`` and ``medground audit``: items from captions, what needs no image in them."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from medground.benchmarks.medical_checklist import items as item_files, phantom
from medground.benchmarks.medical_checklist.audit.base import BlindScorer, Caption, Pair
from medground.benchmarks.medical_checklist.audit.run import RULE, AuditReport, audit
from medground.benchmarks.medical_checklist.build import Settings, build
from medground.benchmarks.medical_checklist.refining import refine_items
from medground.benchmarks.medical_checklist.sampling import Sampling
from medground.benchmarks.medical_checklist.sources.base import Licences, select
from medground.benchmarks.medical_checklist.sources.opening import Kind as SourceKind, open_source
from medground.benchmarks.medical_checklist.terminologies.opening import Kind as TermKind, open_terminology
from medground.errors import ConfigError, DataError

_COLUMNS = ("item_id", "paper_id", "category", "term_positive", "term_negative", "positive", "negative")


class Asked(BaseModel):
    """What a build from captions on disk is asked for; checked before anything is read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: SourceKind
    captions: Path
    images: Path | None = None
    require_image: bool = False
    licences: Licences = "derivatives"
    terminology: TermKind = "embedded"
    terminology_path: Path | None = None
    terminology_type: str | None = None
    sampling: Sampling = "frequency"
    placing: Literal["same", "any"] = "same"
    refine: Literal["none", "reciprocal", "reciprocal_window", "reciprocal_type", "cells"] = "none"
    seed: int = 0

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            raise ConfigError(
                "an option has no such value",
                where="--" + "-".join(map(str, first["loc"])).replace("_", "-"),
                expected=first["msg"],
                got=first["input"],
            ) from None


def build_items(out: Path, asked: Asked, *, workers: int = 1) -> Path:
    """Write ``items.jsonl``, ``reference.jsonl`` (true captions for the audit) and ``build.json``; return the folder.

    Raises:
        ConfigError: the folder holds a build already.
        DataError: captions or terminology cannot be read.
    """
    if (out / "items.jsonl").exists():
        raise ConfigError("this folder holds a build", where=out, fix="name another folder, or remove this one")
    terms = open_terminology(asked.terminology, asked.terminology_path, tui=asked.terminology_type)
    captions, refused = select(
        open_source(asked.source, asked.captions),
        licences=asked.licences,
        images=asked.images,
        require_image=asked.require_image,
    )
    settings = Settings(asked.sampling, asked.placing, asked.seed)
    held, report = build(captions, terms, settings, workers=workers)
    report.refused_captions.update(refused)
    held, refined = refine_items(held, asked.refine, seed=asked.seed)
    out.mkdir(parents=True, exist_ok=True)
    item_files.write(out / "items.jsonl", held)
    lines = (json.dumps({"paper": c.paper, "caption": c.caption}, ensure_ascii=False) + "\n" for c in captions)
    (out / "reference.jsonl").write_bytes("".join(lines).encode("utf-8"))
    data = report.data() | {"refine": refined, "licences": asked.licences, "names_licence": terms.licence}
    (out / "build.json").write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return out


def build_phantom(out: Path, *, pairs: int, size: int, seed: int, workers: int) -> Path:
    """Draw mirrored scene pairs with their captions; return the folder."""
    return phantom.build(out, phantom.Recipe(pairs, size, seed), workers=workers)


def as_json(report: AuditReport) -> str:
    """Return an audit for machines."""
    return json.dumps(report.data(), indent=1)


def as_text(report: AuditReport) -> str:
    """Return an audit for people: the sentence, then one line a scorer."""
    rows = [r for r in report.results if r.group == "all"]
    width = max(len(r.scorer) for r in rows)
    lines = [report.sentence, f"learned from: {report.reference}; {RULE.in_words()}", ""]
    for r in sorted(rows, key=lambda r: -r.accuracy):
        ends = "" if r.low is None or r.high is None else f"[{100 * r.low:5.1f}, {100 * r.high:5.1f}]"
        lines.append(f"{r.scorer:<{width}}  {100 * r.accuracy:5.1f} %  {ends}  n {r.n}, ties {r.ties}, {r.decision}")
    return "\n".join(lines)


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
