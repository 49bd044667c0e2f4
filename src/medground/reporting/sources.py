"""The pictures, regions and maps behind a run: found again through its run file, and never a reason to fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from medground import registry
from medground.datasets.base import Case
from medground.errors import MedgroundError
from medground.imaging.maps import read_map
from medground.paths import resolve_inside
from medground.reporting.runs import Run
from medground.running.reading import read_arrays, read_transcripts

Images = Literal["auto", "yes", "no"]
Map = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class PictureSource:
    """A dataset of a run, opened again.

    Attributes:
        title: its name in the literature.
        component: its name in medground.
        show: whether its pictures are shown.
        why_not: why they are not, and what would change it.
        cases: case id -> case; empty where the dataset cannot be opened.
    """

    title: str
    component: str
    show: bool
    why_not: str
    cases: Mapping[str, Case] = field(default_factory=dict)


def open_source(run: Run, label: str, images: Images) -> PictureSource:
    """Open the dataset that a run calls ``label``; where that fails, the source says why and holds no case."""
    spec = next((d for d in run.config["benchmark"].get("datasets", []) if d.get("label", d["name"]) == label), None)
    if spec is None:
        return PictureSource(label, "", show=False, why_not="the run file does not name the dataset")
    given = {key: value for key, value in spec.items() if key not in {"name", "label"}}
    try:
        cls = registry.load("dataset", spec["name"])
        dataset = registry.create("dataset", spec["name"], given, base=run.folder)
        cases = {case.case_id: case for case in dataset.cases()}
    except (MedgroundError, OSError) as error:
        reason = f"the dataset cannot be opened here: {getattr(error, 'what', error)}"
        return PictureSource(label, spec["name"], show=False, why_not=reason)
    show, why_not = _permission(images, redistributable=cls.info.redistributable)
    # A label that the user gave says more than the name in the literature.
    title = cls.info.title if label == spec["name"] else label
    return PictureSource(title, spec["name"], show, why_not, cases)


def _permission(images: Images, *, redistributable: bool) -> tuple[bool, str]:
    if images == "no":
        return False, "left out on request"
    if images == "auto" and not redistributable:
        return False, "the dataset may not be passed on; --images yes shows them in a report that stays with you"
    return True, ""


def maps_of(run: Run, model: str, dataset: str, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Map]:
    """Return the maps that a run kept for the pairs ``keys``; those that it did not keep are absent."""
    wanted = set(keys)
    maps: dict[tuple[str, str], Map] = {}
    for transcript in read_transcripts(run.folder, (model, dataset), {case for case, _ in wanted}):
        for answer in transcript.answers("model", "ground"):
            for name, array in answer.arrays.items():
                key = transcript.item_id, name.removeprefix("map/")
                if name.startswith("map/") and key in wanted:
                    maps[key] = np.asarray(array, np.float32)
    # A reader of replies may draw other maps than the model did; what was measured is what is shown.
    for case, arrays in read_arrays(run.folder, (model, dataset), run.reading, {case for case, _ in wanted}):
        for name, array in arrays.items():
            key = case, name.removeprefix("map/")
            if name.startswith("map/") and key in wanted:
                maps[key] = np.asarray(array, np.float32)
    return maps


def map_file(run: Run, model: str, file: str, sha256: str) -> Map | None:
    """Return a map that was made elsewhere, or None where its file is gone or no longer the one that was measured."""
    specs: list[dict[str, Any]] = run.config["models"]
    spec = next((m for m in specs if m.get("label", m["name"]) == model), {})
    if "maps" not in spec:
        return None
    try:
        array, digest = read_map(resolve_inside(Path(spec["maps"]), file))
    except MedgroundError:
        return None
    return array if digest == sha256 else None
