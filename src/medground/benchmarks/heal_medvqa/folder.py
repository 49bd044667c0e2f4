"""``medground build heal_medvqa``: questions, variants and masks as JSONL and Parquet, for use outside of medground.

::

    FOLDER/
      questions.jsonl, questions.parquet   a question a line: words, answer, anatomy, findings, mask, variants
      build.json                           choices, counts, what baselines get from every sampler, where masks come from
      pictures/                            on wish: every perturbed picture, PNG; base pictures of phantoms

Masks are flat (start, length) pairs, 0-based, along rows (``order: row``). Pictures of a dataset are named
by their case id and not copied.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from medground.benchmarks.heal_medvqa import HealMedVQA
from medground.benchmarks.heal_medvqa.asking import BASE, asks, load
from medground.benchmarks.heal_medvqa.choices import Choices
from medground.benchmarks.heal_medvqa.gallery import Gallery
from medground.benchmarks.heal_medvqa.masks import Mask
from medground.benchmarks.heal_medvqa.options import about
from medground.benchmarks.heal_medvqa.plan import Asked, build
from medground.datasets.base import Dataset
from medground.errors import ConfigError
from medground.imaging import rle
from medground.imaging.reading import Radiograph
from medground.models.messages import GenerationOptions


def build_door(out: Path, *, benchmark: HealMedVQA, dataset: Dataset, pictures: bool = False, seed: int = 0) -> Path:
    """Ask about findings in regions: questions, perturbations and controls, as JSONL and Parquet.

    Args:
        out: a folder that holds no build yet.
        benchmark: a parameter of the benchmark, such as masks.source=thirds.
        dataset: whose pictures.
        pictures: write every perturbed picture, too.
        seed: of every choice.
    """
    return build_folder(out, dataset, benchmark.choices(seed), pictures=pictures)


def build_folder(out: Path, dataset: Dataset, choices: Choices, *, pictures: bool = False) -> Path:
    """Write the build of a dataset; return the folder.

    Args:
        out: a folder that holds no build yet.
        dataset: whose pictures are asked about.
        choices: of the build.
        pictures: write every perturbed picture too.

    Raises:
        ConfigError: the folder holds a build, or the dataset may not be passed on and ``pictures`` are asked for.
        DataError: a picture or a mask cannot be read.
    """
    if (out / "build.json").exists():
        raise ConfigError("this folder holds a build", where=out, fix="name another folder, or remove this one")
    if pictures and not dataset.info.redistributable:
        raise ConfigError(
            "pictures of this dataset may not be passed on",
            where=dataset.name,
            got=dataset.info.licence,
            fix="build without --pictures; a run makes them anew from the dataset",
        )
    gallery = choices.gallery(dataset)
    built = build(gallery, choices.draw, donor=choices.donor)
    out.mkdir(parents=True, exist_ok=True)
    records = list(_records(built.asked, gallery, choices, out / "pictures" if pictures else None))
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    with (out / "questions.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(lines)
    pl.DataFrame(records, infer_schema_length=None).write_parquet(out / "questions.parquet")
    facts = {"dataset": dataset.name, "seed": choices.draw.seed, **about(built, choices)}
    (out / "build.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return out


def _records(
    asked: tuple[Asked, ...], gallery: Gallery, choices: Choices, shown: Path | None
) -> Iterator[dict[str, Any]]:
    for one in asked:
        loaded = load(one, gallery, choices.paste)
        round_ = asks(one, loaded, gallery.words, "", GenerationOptions())
        texts = {str(ask.key["variant"]): str(ask.key["text"]) for ask in round_}
        question, picture = one.question, gallery.picture(one.question.image_id)
        names = {}
        if shown is not None:
            names = {
                name: _written(shown, f"{question.question_id}-{name}", perturbed.radiograph)
                for name, perturbed in loaded.pictures.items()
                if name == BASE or perturbed is not loaded.pictures[BASE]
            }
        yield {
            "question_id": question.question_id,
            "image_id": question.image_id,
            "picture": names.get(BASE, ""),
            "source": one.source,
            "view": one.view or "",
            "cluster": one.cluster,
            "part": one.part,
            "question": texts[BASE],
            "answer": question.gold,
            "answer_type": "open" if question.is_open else "closed",
            "question_type": question.kind,
            "anatomy": question.anatomy,
            "finding": question.finding,
            "findings": list(question.findings),
            "negative": question.negative,
            "sampler": question.sampler,
            "share": one.share,
            **_coded(picture.masks.get(question.anatomy)),
            "variants": [
                {
                    "name": variant.name,
                    "question": texts[variant.name],
                    "answer": variant.expected,
                    "anatomy": variant.anatomy,
                    "finding": variant.finding,
                    "region": variant.region,
                    "donor": variant.donor,
                    "residue": loaded.pictures[variant.name].notes.get("residue_hard"),
                    "picture": names.get(variant.name, names.get(BASE, "")),
                }
                for variant in one.planned.variants
            ],
            "not_made": [{"name": name, "reason": reason} for name, reason in one.planned.not_made.items()],
        }


def _coded(mask: Mask | None) -> dict[str, Any]:
    if mask is None:
        return {"mask_rle": [], "mask_w": 0, "mask_h": 0, "order": "row"}
    height, width = mask.shape
    pairs = rle.pairs_from_counts(rle.counts_from_mask(mask), (width, height), "row")
    return {"mask_rle": pairs, "mask_w": width, "mask_h": height, "order": "row"}


def _written(folder: Path, name: str, radiograph: Radiograph) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name.replace('#', '-').replace('/', '-')}.png"
    Image.fromarray(np.round(radiograph.pixels * 255).astype(np.uint8)).save(file)
    return f"pictures/{file.name}"
