"""The case viewer's data: chosen pairs with their picture, true region, and every model's map and scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.benchmarks.xbench.protocol import Protocol
from medground.datasets.base import Case, picture_of
from medground.errors import MedgroundError
from medground.imaging.geometry import Geometry
from medground.reporting.overlay import distance, map_frame, outline, region_cells, shown_map, shown_picture
from medground.reporting.sources import Map, PictureSource, map_file, maps_of
from medground.reporting.xbench.measured import MeasuredTask
from medground.reporting.xbench.pool import Pooled
from medground.reporting.xbench.selection import GROUPS, Chosen, Key, choose
from medground.reporting.xbench.standing import standing

MOST_PICTURES = 320
MOST_BYTES = 8_000_000
"""Of pictures and maps together, as text: with plotly's bundle a report stays below 15 MB."""

Tasks = Mapping[tuple[str, str], MeasuredTask]


@dataclass
class _Album:
    """Pictures and maps, as many as there is room for."""

    pictures: list[str] = field(default_factory=list)
    left: int = MOST_BYTES

    def has_room(self, encoded: str) -> bool:
        """Take the room that a picture or a map needs, if there is as much."""
        fits = len(encoded) <= self.left
        self.left -= len(encoded) if fits else 0
        return fits

    def add(self, picture: str | None) -> int | None:
        """Keep a picture and return its number; None where there is none, or no room."""
        if picture is None or not self.has_room(picture):
            return None
        self.pictures.append(picture)
        return len(self.pictures) - 1


@dataclass(frozen=True)
class _Scene:
    """What is shown of one case, whatever the model."""

    picture: str | None = None
    size: tuple[int, int] | None = None
    outlines: Mapping[str, tuple[str, tuple[int, int]]] = field(default_factory=dict)
    cells: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    note: str = ""


def viewer_data(pool: Pooled, sources: Mapping[str, PictureSource]) -> dict[str, Any]:
    """Return everything that the viewer needs, as JSON-like data.

    Args:
        pool: models and datasets.
        sources: dataset -> where its pictures and regions come from.
    """
    protocol = Protocol.model_validate(pool.facts["protocol"])
    tasks = {key: MeasuredTask.read(*pool.owners[key[0]], key[1], protocol) for key in pool.tasks}
    lists = choose({key: t.scored for key, t in tasks.items()}, MOST_PICTURES, pool.facts["intervals"]["seed"])
    album = _Album()
    pairs: list[dict[str, Any]] = []
    places: dict[tuple[int, Key], int] = {}
    for number, dataset in enumerate(pool.datasets):
        for key, pair in _pairs(pool, dataset, _keys(lists, dataset), tasks, sources[dataset], album):
            places[number, key] = len(pairs)
            pairs.append(pair | {"dataset": number})
    return {
        "models": pool.models,
        "baselines": [k for k, m in enumerate(pool.models) if _is_baseline(pool, m)],
        "datasets": [_dataset(pool, dataset, sources[dataset], tasks) for dataset in pool.datasets],
        "groups": list(GROUPS),
        "lists": _numbered(lists, pool, places),
        "pairs": pairs,
        "pictures": album.pictures,
        "fixed": protocol.fixed[0],
        "smooth": protocol.resample != "nearest",
        "inclusive": protocol.comparison == ">=",
        "optimistic": protocol.optimistic,
    }


def _is_baseline(pool: Pooled, model: str) -> bool:
    return any(standing(task).baseline for (m, _), task in pool.tasks.items() if m == model)


def _keys(lists: Chosen, dataset: str) -> list[Key]:
    """Return the pairs of a dataset in any list, each once."""
    groups = (g for (_, d), by in lists.items() if d == dataset for g in by.values())
    return list({key: None for g in groups for keys in g.values() for key in keys})


def _numbered(lists: Chosen, pool: Pooled, places: Mapping[tuple[int, Key], int]) -> list[dict[str, Any]]:
    """Return the lists with models, datasets and pairs as numbers."""
    numbered = []
    for (model, dataset), by in lists.items():
        d = pool.datasets.index(dataset)
        of = {f: {g: [places[d, key] for key in keys] for g, keys in groups.items()} for f, groups in by.items()}
        numbered.append({"model": pool.models.index(model), "dataset": d, "of": of})
    return numbered


def _dataset(pool: Pooled, dataset: str, source: PictureSource, tasks: Tasks) -> dict[str, Any]:
    total = max((len(t.rows) for (_, d), t in tasks.items() if d == dataset), default=0)
    return {
        "label": dataset,
        "title": source.title,
        "findings": pool.findings(dataset),
        "total": total,
        "why_not": source.why_not,
    }


def _pairs(
    pool: Pooled, dataset: str, keys: Sequence[Key], tasks: Tasks, source: PictureSource, album: _Album
) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Yield every pair with what is shown of it; pictures are decoded in threads, one a case."""
    findings: dict[str, list[str]] = {}
    for case_id, finding in keys:
        findings.setdefault(case_id, []).append(finding)
    models = [m for m in pool.models if (m, dataset) in tasks]
    maps = {m: _maps(pool, m, dataset, keys, tasks[m, dataset]) for m in models}
    with ThreadPoolExecutor() as threads:
        scenes = threads.map(lambda item: _scene(source, *item), findings.items())
        for (case_id, wanted), scene in zip(findings.items(), scenes, strict=True):
            picture = album.add(scene.picture)
            full = "the report has reached its size" if scene.picture and picture is None else ""
            for finding in wanted:
                key = case_id, finding
                asked = [m for m in models if key in tasks[m, dataset].rows]
                answers = {
                    pool.models.index(m): _answer(tasks[m, dataset], key, maps[m].get(key), album)
                    | {"distance": _distance(tasks[m, dataset], key, scene)}
                    for m in asked
                }
                row = tasks[asked[0], dataset].rows[key]
                yield (
                    key,
                    {
                        "case": case_id,
                        "finding": finding,
                        "view": row["view"],
                        "traits": json.loads(row["traits"]) if row["traits"] else {},
                        "share": row["share"],
                        "picture": picture,
                        "size": scene.size,
                        "outline": scene.outlines.get(finding),
                        "note": scene.note or full,
                        "answers": answers,
                    },
                )


def _scene(source: PictureSource, case_id: str, findings: Sequence[str]) -> _Scene:
    """Decode one case; whatever cannot be read is left out and said."""
    case = source.cases.get(case_id)
    if case is None:
        return _Scene(note=source.why_not or "the dataset no longer has this case")
    try:
        outlines = {f: _outlined(case, f) for f in findings if f in case.regions}
        cells = {f: region_cells(case.regions[f]) for f in outlines}
    except MedgroundError as error:
        return _Scene(note=error.what)
    if not source.show:
        return _Scene(outlines=outlines, cells=cells, note=source.why_not)
    try:
        image = picture_of(case)
    except MedgroundError as error:
        return _Scene(outlines=outlines, cells=cells, note=error.what)
    return _Scene(shown_picture(image.pixels), image.size, outlines, cells)


def _distance(task: MeasuredTask, key: Key, scene: _Scene) -> float | None:
    """Return how far a model's peak lies from the region: what parts cases of equal figures."""
    peak, finding = task.peak(key), key[1]
    if peak is None or finding not in scene.cells:
        return None
    value = distance(peak, scene.cells[finding], scene.outlines[finding][1])
    return None if value is None else round(value, 4)


def _outlined(case: Case, finding: str) -> tuple[str, tuple[int, int]]:
    region = case.regions[finding]
    return outline(region), region.frame


def _maps(pool: Pooled, model: str, dataset: str, keys: Sequence[Key], task: MeasuredTask) -> dict[Key, Map]:
    """Return the maps of a model: those that the run kept, and those that were made elsewhere."""
    run, label = pool.owners[model]
    maps = maps_of(run, label, dataset, keys)
    for key in keys:
        row = task.rows.get(key)
        if row and row["map_file"]:
            array = map_file(run, label, row["map_file"], row["map_sha256"])
            if array is not None:
                maps[key] = array
    return maps


def _answer(task: MeasuredTask, key: Key, saliency: Map | None, album: _Album) -> dict[str, Any]:
    """Return what one model said about one pair."""
    row = task.rows[key]
    answer = {
        "outcome": task.outcome(key),
        "reason": row["reason"],
        "score": row["score"],
        "probability": row["probability"],
        **{name: row[name] for name in ("pointing", "dice", "dice_fixed", "iou")},
        "floor": row["dice_floor"],
        "tau": row["tau"],
        "peak": task.peak(key),
    }
    shown = None if saliency is None else shown_map(saliency)
    if saliency is None or shown is None or row["geometry"] is None or not album.has_room(shown.png):
        return answer
    geometry = Geometry.from_dict(json.loads(row["geometry"]))
    (x, y, w, h), (width, height) = map_frame(geometry), geometry.source
    return answer | {
        "map": shown.png,
        "grid": [saliency.shape[1], saliency.shape[0]],
        "shown": shown.size,
        "cuts": {name: shown.cut(tau, task.protocol.normalise) for name, tau in task.cuts(key).items()},
        "at": [x / width, y / height, w / width, h / height],
        "source": geometry.source,
    }
