"""``medground build medical_checklist``: items in a folder, of phantoms or of captions on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from medground.benchmarks.medical_checklist import items as item_files, phantom
from medground.benchmarks.medical_checklist.build import Settings, build as build_from
from medground.benchmarks.medical_checklist.linking import PROFILES
from medground.benchmarks.medical_checklist.mentions.spans import DEFAULT_PIPELINE, LinkedSpans, PipelineSpans
from medground.benchmarks.medical_checklist.refining import refine_items
from medground.benchmarks.medical_checklist.sampling import Sampling
from medground.benchmarks.medical_checklist.similarity import Measure, measured
from medground.benchmarks.medical_checklist.sources.base import Licences, select
from medground.benchmarks.medical_checklist.sources.opening import Kind as SourceKind, open_source
from medground.benchmarks.medical_checklist.terminologies.base import Terminology
from medground.benchmarks.medical_checklist.terminologies.opening import Kind as TermKind, open_terminology
from medground.errors import ConfigError

LEAST_SIZE = 64
"""Pixels a side of a phantom."""

Spans = Literal["names", "noun_chunks", "entities"]
Refine = Literal["none", "reciprocal", "reciprocal_window", "reciprocal_type", "cells", "cells_learned"]


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
    refine: Refine = "none"
    spans: Spans = "names"
    pipeline: str | None = None
    link: Literal["guarded", "paper"] = "guarded"
    similarity: Measure = "3-grams"
    similarity_model: Path | None = None
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
    finder = finder_of(asked, terms)
    held, report = build_from(captions, terms, settings, finder=finder, workers=workers)
    report.refused_captions.update(refused)
    held, refined = refine_items(held, asked.refine, seed=asked.seed)
    held = measured(held, asked.similarity, asked.similarity_model)
    out.mkdir(parents=True, exist_ok=True)
    item_files.write(out / "items.jsonl", held)
    lines = (json.dumps({"paper": c.paper, "caption": c.caption}, ensure_ascii=False) + "\n" for c in captions)
    (out / "reference.jsonl").write_bytes("".join(lines).encode("utf-8"))
    data = report.data() | {
        "refine": refined,
        "licences": asked.licences,
        "names_licence": terms.licence,
        "mentions_by": "names of the terminology" if finder is None else finder.named,
        "similarity_by": asked.similarity,
    }
    (out / "build.json").write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return out


def finder_of(asked: Asked, terms: Terminology) -> LinkedSpans | None:
    """Return what finds mentions in spans of a spaCy pipeline, or None for the names of the terminology.

    Raises:
        ConfigError: entities have no pipeline, or spaCy or the pipeline is not installed.
    """
    if asked.spans == "names":
        return None
    if asked.spans == "entities" and asked.pipeline is None:
        raise ConfigError("entities need a pipeline", where="--pipeline", fix="--pipeline FOLDER of a scispaCy model")
    spans = PipelineSpans(asked.pipeline or DEFAULT_PIPELINE, asked.spans)
    return LinkedSpans(spans, terms, PROFILES[asked.link], named=spans.named)


def build(
    out: Path,
    *,
    source: Literal["phantom", "roco", "rocov2", "medicat", "table"] = "phantom",
    captions: Path | None = None,
    images: Path | None = None,
    require_image: bool = False,
    licences: Licences = "derivatives",
    terminology: TermKind = "embedded",
    terminology_path: Path | None = None,
    terminology_type: str | None = None,
    sampling: Sampling = "frequency",
    placing: Literal["same", "any"] = "same",
    refine: Refine = "none",
    spans: Spans = "names",
    pipeline: str | None = None,
    link: Literal["guarded", "paper"] = "guarded",
    similarity: Measure = "3-grams",
    similarity_model: Path | None = None,
    pairs: int = 400,
    size: int = 224,
    seed: int = 0,
    workers: int = 1,
) -> Path:
    """Make caption tests: of phantoms, or of captions on disk. Writes items, reference captions and a report.

    Args:
        out: the folder.
        source: of the captions; phantoms are drawn.
        captions: folder or file of the source.
        images: folder of the pictures; missing ones are counted.
        require_image: leave captions without a picture out.
        licences: which captions may be used.
        terminology: whose terms are changed.
        terminology_path: its folder or file.
        terminology_type: type of an OBO file.
        sampling: of replacements; ``uniform`` is the paper's.
        placing: ``same``: forms seen in such a place; ``any`` is the paper's.
        refine: balances terms after the build.
        spans: where mentions are looked for: ``names`` of the terminology, spaCy's ``noun_chunks``, or ``entities``.
        pipeline: name or folder of the spaCy or scispaCy pipeline.
        link: how spans become names: ``guarded``, or ``paper`` at 0.7 without guards.
        similarity: of the two terms: 3-grams, SapBERT from a folder, or the packaged MiniLM.
        similarity_model: folder of the text encoder.
        pairs: scene pairs of phantoms.
        size: pixels a side of phantoms.
        seed: of every choice.
        workers: processes.

    Raises:
        ConfigError: captions from disk are not named, or the folder holds a build.
        DataError: captions or terminology cannot be read.
    """
    if size < LEAST_SIZE:
        raise ConfigError("pictures are too small", where="--size", expected=f"{LEAST_SIZE} or more", got=size)
    if source == "phantom":
        return phantom.build(out, phantom.Recipe(pairs, size, seed), workers=workers)
    if captions is None:
        raise ConfigError("captions from disk are not named", where="--captions", fix="--captions PATH")
    asked = Asked(
        source=source,
        captions=captions,
        images=images,
        require_image=require_image,
        licences=licences,
        terminology=terminology,
        terminology_path=terminology_path,
        terminology_type=terminology_type,
        sampling=sampling,
        placing=placing,
        refine=refine,
        spans=spans,
        pipeline=pipeline,
        link=link,
        similarity=similarity,
        similarity_model=similarity_model,
        seed=seed,
    )
    return build_items(out, asked, workers=workers)
