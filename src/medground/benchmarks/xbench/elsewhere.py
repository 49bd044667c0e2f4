"""Heat maps made elsewhere, scored by two files, cases with their regions and maps; opens no model and no image."""

from __future__ import annotations

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
from medground.benchmarks.xbench.rescore import ScoredMap, rows_from_maps
from medground.benchmarks.xbench.summarise import SummaryOptions, summarise
from medground.datasets.base import Case, Dataset
from medground.datasets.manifest import Manifest
from medground.errors import DataError
from medground.imaging.shapes import hold_shape
from medground.metrics.values import none_if_nan
from medground.models.base import ModelInfo
from medground.models.predictions.maps import Maps
from medground.tables.join import Key, join

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
    frames = {case.case_id: region.frame for case in cases for region in case.regions.values()}
    for name, (case_id, _) in pairs.items():
        if case_id in frames:
            hold_shape((maps[name].shape[0], maps[name].shape[1]), frames[case_id], name)

    def lookup(case_id: str, finding: str) -> ScoredMap:
        return ScoredMap(known.get((case_id, finding)), absent="no map of this case and finding")

    rows = rows_from_maps(cases, findings, lookup, protocol)
    cards = {MAPS: ModelInfo("Maps made elsewhere", kind="unknown")}
    return rows, summarise({(MAPS, dataset.name): rows}, cards, {dataset.name: findings}, SummaryOptions(protocol))


def _pairs(names: Iterable[str], cases: Sequence[Case], findings: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return which (case, finding) every name of a map stands for."""
    meant: dict[Key, list[tuple[str, str]]] = defaultdict(list)
    for case in cases:
        for finding in findings:
            meant[_parts(f"{case.case_id}/{finding}")].append((case.case_id, finding))
        if len(case.regions) == 1:
            meant[_parts(case.case_id)].append((case.case_id, next(iter(case.regions))))
    given = {_parts(name): name for name in names}
    joined = join(meant, given, what="the maps", unit="cases and findings").require_some(DataError)
    if joined.extra:
        raise DataError(
            f"{len(joined.extra)} maps belong to no case",
            where=given[min(joined.extra)],
            expected="'case_id/finding', or 'case_id' where a case has one localised finding",
            fix="correct the names of the maps, or add the cases",
        )
    fits = {given[theirs]: meant[mine] for mine, theirs in joined.matched.items()}
    taken: dict[tuple[str, str], str] = {}
    for name, several in fits.items():
        if len(several) > 1:
            raise DataError("the name of a map stands for several cases", where=name, got=several)
        if (other := taken.setdefault(several[0], name)) != name:
            raise DataError("two maps belong to one case and finding", where=f"{other}, {name}", got=several[0])
    return {name: pair for pair, name in taken.items()}


def _parts(name: str) -> Key:
    return tuple(name.split("/"))


def read_maps(path: Path) -> dict[str, NDArray[Any]]:
    """Read heat maps made elsewhere, by the one reader of them: :mod:`medground.models.predictions.maps`.

    Raises:
        DataError: the source is not readable, or an entry is no map.
    """
    maps = Maps(path)
    return {name: maps.read(name).values for name in maps.names}
