"""Writes a built data set in the layout of Hugging Face ``datasets``: Parquet files and a card that types them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from medground.errors import ConfigError, DataError

ROWS = 2000
"""Scenes a Parquet file."""

_FEATURES = {
    "scene_id": "string",
    "image": "image",
    "question": "string",
    "answer": "string",
    "depth": "int8",
    "type": "string",
    "form": "string",
    "density": "float64",
    "objects": "string",
    "vision_mask": "string",
    "text_mask": "string",
    "bag_of_words": "string",
}
_SCHEMA = pl.Schema(
    {
        name: pl.Struct({"bytes": pl.Binary(), "path": pl.String()})
        if kind == "image"
        else {"string": pl.String(), "int8": pl.Int8(), "float64": pl.Float64()}[kind]
        for name, kind in _FEATURES.items()
    }
)
_CARD = """---
license: apache-2.0
task_categories:
- visual-question-answering
dataset_info:
  features:
{features}
  splits:
  - name: {split}
    num_bytes: {size}
    num_examples: {n}
configs:
- config_name: default
  data_files:
  - split: {split}
    path: data/{split}-*.parquet
---

# GridVQA-X, {variant}

{n} scenes drawn by medground: coloured shapes on a {grid} by {grid} grid, each with a question whose answer has a known
cause. `objects`, `vision_mask` (cells of anchors and true targets), `text_mask` (one flag a word) and `bag_of_words`
(the answer of a model that counts the target's words) are JSON. Plan: `{plan}`.
"""


def export_hub(built: str | Path, out: str | Path) -> Path:
    """Write a folder that ``datasets.load_dataset`` reads.

    Args:
        built: what :func:`medground.worlds.gridvqa.build.build` wrote, with pictures.
        out: a folder that is new or empty.

    Returns:
        The folder.

    Raises:
        ConfigError: ``out`` is not empty.
        DataError: ``built`` is no built data set, or has no pictures.
    """
    source, target = Path(built), Path(out)
    if target.is_dir() and any(target.iterdir()):
        raise ConfigError("the folder is not empty", where=target, fix="name a new folder")
    if not (source / "plan.json").is_file():
        raise DataError(
            "this is not a built data set", where=source, expected="plan.json", fix="medground build gridvqa_x"
        )
    plan = json.loads((source / "plan.json").read_text())
    (target / "data").mkdir(parents=True)
    rows = list(_rows(source, plan["split"]))
    shards = range(0, len(rows), ROWS)
    for number, start in enumerate(shards):
        name = f"{plan['split']}-{number:05d}-of-{len(shards):05d}.parquet"
        pl.DataFrame(rows[start : start + ROWS], schema=_SCHEMA).write_parquet(target / "data" / name)
    features = "\n".join(f"  - name: {name}\n    dtype: {kind}" for name, kind in _FEATURES.items())
    card = _CARD.format(
        features=features,
        split=plan["split"],
        n=len(rows),
        size=sum(len(row["image"]["bytes"]) for row in rows),
        variant=plan["variant"],
        grid=plan["grid"],
        plan=json.dumps(plan),
    )
    (target / "README.md").write_text(card, encoding="utf-8")
    return target


def _rows(source: Path, split: str) -> Iterator[dict[str, Any]]:
    scenes = (source / "scenes.jsonl").read_text(encoding="utf-8").splitlines()
    grounding = (source / f"grounding_{split}.jsonl").read_text(encoding="utf-8").splitlines()
    for scene_line, grounding_line in zip(scenes, grounding, strict=True):
        scene, name = json.loads(scene_line), json.loads(grounding_line)["image"]["file_name"]
        picture = source / name
        if not picture.is_file():
            raise DataError("the data set has no pictures", where=picture, fix="build it with images")
        yield {
            "scene_id": scene["id"],
            "image": {"bytes": picture.read_bytes(), "path": name},
            "question": scene["question"],
            "answer": str(scene["answer"]),
            "depth": scene["depth"],
            "type": scene["qtype"],
            "form": scene["form"],
            "density": scene["density"],
            "objects": json.dumps(scene["objects"]),
            "vision_mask": json.dumps(scene["vision_mask"]),
            "text_mask": json.dumps(scene["text_mask_correct"]),
            "bag_of_words": json.dumps(scene["bag_of_words"]),
        }
