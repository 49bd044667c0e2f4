"""``medground build cxreasondial``: dialogues in a folder, from phantoms or from anybody's masks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from medground.benchmarks.cxreasondial.build import Builder, MeasuredCase
from medground.benchmarks.cxreasondial.contract import write_dialogues
from medground.benchmarks.cxreasondial.imports import measured_cases
from medground.benchmarks.cxreasondial.phantoms import Phantoms
from medground.errors import ConfigError, DataError
from medground.tools import Folder, measure

LEAST_SIZE = 64
"""Pixels a side of a phantom."""


def build(
    out: Path,
    *,
    cases: int = 100,
    size: int = 256,
    masks: Path | None = None,
    chexstruct: Path | None = None,
    pictures: bool = True,
    seed: int = 0,
) -> str:
    """Measure twelve diagnostic tasks and ask about them: dialogues as JSONL, with a report of what they can test.

    Args:
        out: a new or empty folder.
        cases: phantoms, where no masks are given.
        size: width of the phantoms' pictures.
        masks: a folder of masks, one folder a case, with pictures ``images/<case>.png`` beside it.
        chexstruct: a folder of CheXStruct's tables, ``<task>.csv`` each, with pictures ``images/<image id>.png``.
        pictures: whether phantoms are drawn.
        seed: of phantoms and dialogues.

    Returns:
        A few lines on what was built.

    Raises:
        DataError: the folder holds something, or no case gives a dialogue.
        ConfigError: pictures too small to measure, or two sources of evidence.
    """
    if masks is not None and chexstruct is not None:
        raise ConfigError("evidence comes from one source", where="--masks, --chexstruct", fix="name one of the two")
    if size < LEAST_SIZE:
        raise ConfigError("pictures are too small", where="--size", expected=f"{LEAST_SIZE} or more", got=size)
    if out.exists() and any(out.iterdir()):
        raise DataError("the folder is not empty", where=str(out), fix="name a new one")
    out.mkdir(parents=True, exist_ok=True)
    phantoms = Phantoms(seed, size)
    given = masks or chexstruct
    measured: Iterable[MeasuredCase] = phantoms.cases(cases)
    if masks is not None:
        measured = _measured(masks)
    elif chexstruct is not None:
        measured = measured_cases(chexstruct)
    builder = Builder(seed, source="phantoms of medground" if given is None else f"measured in {given.name}")
    dialogues = list(builder.build(measured))
    if not dialogues:
        raise DataError("no case gives a dialogue", where=str(given), expected="two measured tasks a case, or more")
    write_dialogues(out / "dialogues.jsonl", dialogues)
    report = builder.report.record()
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if pictures and given is None:
        (out / "images").mkdir()
        for dialogue in dialogues:
            phantoms.draw(dialogue.image.dicom_id, out / dialogue.image.path)
    turns = sum(len(dialogue.turns) for dialogue in dialogues)
    dropped = sum(builder.report.dropped.values())
    known = report["answer_in_history"]
    return (
        f"{len(dialogues)} dialogues, {turns} turns; {dropped} measurements dropped by quality control; "
        f"{known['requests']} of {known['of']} requests answerable from the history, "
        f"{report['unanswerable']} turns without an answer\n{out / 'dialogues.jsonl'}"
    )


def _measured(masks: Path) -> Iterator[MeasuredCase]:
    folder = Folder(masks)
    for place in sorted(path for path in masks.iterdir() if path.is_dir()):
        anatomy = folder.anatomy(place.name)
        yield MeasuredCase(
            place.name,
            f"images/{place.name}.png",
            anatomy.width,
            anatomy.height,
            anatomy.view,
            measure(anatomy),
        )
