"""Writes phantoms as a folder in the layout of the ``manifest`` dataset.

::

    FOLDER/
      manifest.jsonl     a case a line: picture, view, labels, masks of findings as run-length codes
      truth.jsonl        a case a line: masks of the eight anatomies, landmarks, measurements, exposure, markers,
                         devices, and the twelve diagnostic tasks
      recipe.json        population, cases, size, seed and version of the drawing
      images/            one PNG a case

The bytes depend on the recipe alone, on one machine: not on the number of workers.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from medground.errors import ConfigError, did_you_mean
from medground.imaging import rle
from medground.worlds.phantom.drawing import Drawing, draw
from medground.worlds.phantom.scene import POPULATIONS, make_scene
from medground.worlds.phantom.streams import FINDINGS
from medground.worlds.phantom.tasks import TaskFact
from medground.worlds.phantom.values import task_facts

VERSION: Final = 2
"""Of the drawing: another number is another dataset."""

_SPAN: Final = 25
"""Cases that a worker draws at a time."""


def recipe(cases: int, size: int, seed: int, population: str = "default") -> dict[str, Any]:
    """Return what a folder's bytes depend on."""
    return {"version": VERSION, "population": population, "cases": cases, "size": size, "seed": seed}


def build(
    out: Path,
    *,
    cases: int = 200,
    size: int = 512,
    seed: int = 0,
    population: str = "default",
    workers: int = 1,
) -> Path:
    """Draw phantoms into a folder.

    The folder appears at once when it is complete; what a killed build leaves is a hidden folder beside it.

    Args:
        out: a folder that is absent or empty.
        cases: how many.
        size: pixels a side, 64 or more.
        seed: 0 or more; the same seed gives the same patients at every size.
        population: ``default``, or ``tasks`` with balanced labels of the twelve diagnostic tasks.
        workers: processes.

    Returns:
        The folder.

    Raises:
        ConfigError: the folder has something in it, or a number is out of range.
    """
    if cases < 1 or size < 64 or seed < 0 or workers < 1 or population not in POPULATIONS:
        raise ConfigError(
            "phantoms cannot be drawn like that",
            expected=f"cases and workers of at least 1, size of at least 64, seed of at least 0, population out of "
            f"{', '.join(POPULATIONS)}",
            got=f"cases {cases}, workers {workers}, size {size}, seed {seed}, population {population}",
            fix=did_you_mean(population, POPULATIONS),
        )
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError("the folder is not empty", where=out, fix="name another folder, or remove this one")
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        _fill(draft, recipe(cases, size, seed, population), workers)
        if out.exists():
            out.rmdir()
        draft.chmod(0o755)
        draft.replace(out)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return out


def _fill(folder: Path, wanted: Mapping[str, Any], workers: int) -> None:
    (folder / "images").mkdir()
    spans = [range(start, min(start + _SPAN, wanted["cases"])) for start in range(0, wanted["cases"], _SPAN)]
    work = partial(_draw_span, folder, wanted)
    with (
        (folder / "manifest.jsonl").open("w", encoding="utf-8") as manifest,
        (folder / "truth.jsonl").open("w", encoding="utf-8") as truth,
    ):
        for rows in _mapped(work, spans, workers):
            for case, facts in rows:
                manifest.write(json.dumps(case) + "\n")
                truth.write(json.dumps(facts) + "\n")
    (folder / "recipe.json").write_text(json.dumps(wanted) + "\n", encoding="utf-8")


Row = tuple[dict[str, Any], dict[str, Any]]


def _mapped(work: partial[list[Row]], spans: list[range], workers: int) -> Iterator[list[Row]]:
    """Yield the rows of every span in order, drawn here or by processes of their own."""
    if workers == 1 or len(spans) == 1:
        yield from map(work, spans)
        return
    # Spawned, not forked: the parent may hold threads (torch, polars) that a fork would freeze.
    with ProcessPoolExecutor(min(workers, len(spans)), mp_context=get_context("spawn")) as pool:
        yield from pool.map(work, spans)


def _draw_span(folder: Path, wanted: Mapping[str, Any], span: range) -> list[Row]:
    rows = []
    # Other populations are other patients, so their names differ.
    kind = "" if wanted["population"] == "default" else f"{wanted['population']}_"
    for number in span:
        drawing = draw(make_scene(wanted["seed"], number, population=wanted["population"]), wanted["size"])
        name = f"phantom_{kind}{wanted['seed']}_{number:05d}"
        Image.fromarray(drawing.pixels).save(folder / "images" / f"{name}.png", compress_level=6)
        rows.append((_case(name, drawing), _truth(name, drawing)))
    return rows


def _case(name: str, drawing: Drawing) -> dict[str, Any]:
    return {
        "image": f"images/{name}.png",
        "case_id": name,
        "patient_id": name,
        "view": drawing.scene.anatomy.view,
        "labels": {finding: finding in drawing.findings for finding in FINDINGS},
        # A finding that no pixel shows (a lesion beyond the picture's edge) is present without a region.
        "masks": {finding: _coded(mask) for finding, mask in drawing.findings.items() if mask.any()},
    }


def _truth(name: str, drawing: Drawing) -> dict[str, Any]:
    scene = drawing.scene
    return {
        "case_id": name,
        "view": scene.anatomy.view,
        "anatomies": {anatomy: _coded(mask) for anatomy, mask in drawing.anatomies.items()},
        "landmarks": {place: [round(x, 2), round(y, 2)] for place, (x, y) in drawing.landmarks.items()},
        "measurements": {measure: round(value, 5) for measure, value in drawing.measurements.items()},
        "exposure": scene.exposure._asdict(),
        "markers": [text for text, *_ in scene.marker.words],
        "devices": sorted({device.kind for device in scene.devices}),
        "tasks": {task: _task(fact) for task, fact in task_facts(scene).items()},
    }


def _task(fact: TaskFact) -> dict[str, Any]:
    """Return value, label, what is accepted, and why there is no label."""
    value: Any = fact.value
    if isinstance(value, Mapping):
        value = {name: round(part, 5) for name, part in value.items()}
    elif isinstance(value, tuple):
        value = (round(value[0], 5), round(value[1], 5))
    elif isinstance(value, float):
        value = None if math.isnan(value) else round(value, 7)
    return {"value": value, "label": fact.label, "accepted": fact.accepted, "reason": fact.reason}


def _coded(mask: NDArray[np.bool_]) -> dict[str, Any]:
    height, width = mask.shape
    return {"size": [height, width], "counts": rle.string_from_counts(rle.counts_from_mask(mask))}
