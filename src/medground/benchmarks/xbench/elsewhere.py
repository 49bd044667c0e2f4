"""Heat maps made elsewhere, scored by two files, cases with their regions and maps; opens no model and no image."""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.results import Summary
from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.rescore import Found, rows_from_maps
from medground.benchmarks.xbench.summarise import Options, summarise
from medground.datasets.base import Case, Dataset
from medground.datasets.manifest import Manifest
from medground.errors import DataError
from medground.imaging.maps import SUFFIXES, read_map
from medground.metrics.values import none_if_nan
from medground.models.base import ModelInfo
from medground.paths import resolve_inside

MAPS = "maps"


def score_files(cases: Path, maps: Path, protocol: Protocol) -> tuple[list[dict[str, Any]], Summary]:
    """Score maps on cases; see :func:`score_maps`.

    Args:
        cases: a manifest, as the dataset ``manifest`` reads it.
        maps: see :func:`read_maps`.
        protocol: every choice.

    Returns:
        One record a localised pair, and the summary.
    """
    rows, summary = score_maps(Manifest(cases, missing="keep"), read_maps(maps), protocol)
    return list(score_items(Pairs.of(rows, protocol))), summary


def score_items(pairs: Pairs) -> Iterator[dict[str, Any]]:
    """Yield pointing, ties, state, and Dice and IoU at every threshold of the grid, one entry a localised pair."""
    hits = np.where(pairs.used, pairs.pointing(), np.nan)
    steps = len(pairs.protocol.tau)
    columns = pairs.frame.select("case_id", "finding", "ties", "state", "reason").iter_rows(named=True)
    for p, row in enumerate(columns):
        values = {name: [none_if_nan(v) for v in pairs.curves[name][p]] for name in ("dice", "iou")}
        fixed = {
            f"{tau:g}": {name: values[name][pairs.protocol.index_of(tau)] for name in values}
            for tau in pairs.protocol.fixed
        }
        yield {
            "case_id": row["case_id"],
            "finding": row["finding"],
            "pointing": none_if_nan(hits[p]),
            "ties": row["ties"],
            "state": row["state"],
            "reason": row["reason"],
            "fixed": fixed,
            **{name: curve[:steps] for name, curve in values.items()},
        }


def score_maps(dataset: Dataset, maps: Mapping[str, NDArray[Any]], protocol: Protocol) -> tuple[pl.DataFrame, Summary]:
    """Score maps made elsewhere.

    Args:
        dataset: cases with their regions; no image is opened.
        maps: ``case/finding``, or ``case`` where the case has one finding -> ``(h, w)``.
        protocol: every choice.

    Raises:
        DataError: a map belongs to no case or to several, or two maps to one case and finding.
    """
    cases = dataset.cases()
    findings = tuple(dataset.findings)
    pairs = _pairs(maps, cases, findings)
    known = {pair: maps[name] for name, pair in pairs.items()}

    def lookup(case_id: str, finding: str) -> Found:
        return Found(known.get((case_id, finding)), absent="no map of this case and finding")

    rows = rows_from_maps(cases, findings, lookup, protocol)
    cards = {MAPS: ModelInfo("Maps made elsewhere", kind="unknown")}
    return rows, summarise({(MAPS, dataset.name): rows}, cards, {dataset.name: findings}, Options(protocol))


def _pairs(names: Iterable[str], cases: Sequence[Case], findings: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return which (case, finding) every name of a map stands for."""
    meant: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for case in cases:
        for finding in findings:
            meant[f"{case.case_id}/{finding}"].append((case.case_id, finding))
        if len(case.regions) == 1:
            meant[case.case_id].append((case.case_id, next(iter(case.regions))))
    strange = sorted(name for name in names if name not in meant)
    if strange:
        raise DataError(
            f"{len(strange)} maps belong to no case",
            where=strange[0],
            expected="'case_id/finding', or 'case_id' where a case has one localised finding",
            fix="correct the names of the maps, or add the cases",
        )
    taken: dict[tuple[str, str], str] = {}
    for name in names:
        if len(meant[name]) > 1:
            raise DataError("the name of a map stands for several cases", where=name, got=meant[name])
        if (other := taken.setdefault(meant[name][0], name)) != name:
            raise DataError("two maps belong to one case and finding", where=f"{other}, {name}", got=meant[name][0])
    return {name: pair for pair, name in taken.items()}


def read_maps(path: Path) -> dict[str, NDArray[Any]]:
    """Read heat maps: an ``.npz`` (``case/finding`` -> map), a ``.json`` of nested lists, or a folder of files.

    Raises:
        DataError: the file is not readable, or an entry is no map.
    """
    if path.is_dir():
        return _load_folder(path)
    try:
        loaded = _load_json(path) if path.suffix == ".json" else _load_npz(path)
    except Exception as error:  # a damaged file can raise anything in the decoders
        raise DataError(
            "the maps cannot be read",
            where=path,
            expected=".npz, .json or a folder of .npy, .npz and .png",
            got=f"{type(error).__name__}: {error}",
        ) from error
    for name, array in loaded.items():
        if array.ndim != 2 or array.dtype.kind not in "fiub" or not array.size:
            raise DataError(
                "a map is not a picture of numbers", where=name, expected="(h, w)", got=f"{array.dtype} {array.shape}"
            )
    return loaded


def _load_folder(path: Path) -> dict[str, NDArray[Any]]:
    files: dict[str, Path] = {}
    for file in (p.relative_to(path) for p in sorted(path.rglob("*")) if p.suffix.lower() in SUFFIXES):
        name = file.with_suffix("").as_posix()
        if (other := files.setdefault(name, file)) != file:
            raise DataError("a map is there twice", where=f"{path / other}, {path / file}", expected="one file a map")
    return {name: read_map(resolve_inside(path, str(file)))[0] for name, file in files.items()}


def _load_npz(path: Path) -> dict[str, NDArray[Any]]:
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is no .npz")  # before numpy takes it for a pickle, and says how to trust it
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            return {name: _floating(archive[name]) for name in archive.files}


def _load_json(path: Path) -> dict[str, NDArray[Any]]:
    content = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)
    if not isinstance(content, dict):
        raise TypeError(f"it holds a {type(content).__name__}, not names and maps")
    # null stands for NaN, which JSON does not have.
    return {name: np.array(rows, dtype=np.float64) for name, rows in content.items()}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice")
    return dict(pairs)


def _floating(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.dtype.kind not in "iub" else array.astype(np.float64)
