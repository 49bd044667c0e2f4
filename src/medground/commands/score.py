"""``medground score``: the predictions of a finished run, or heat maps made elsewhere, under any protocol."""

from __future__ import annotations

import json
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.results import Summary
from medground.benchmarks.xbench import XBench
from medground.benchmarks.xbench.pairs import Pairs
from medground.benchmarks.xbench.protocol import Protocol, resolve_protocol
from medground.benchmarks.xbench.rescore import Found, Lookup, rows_from_maps
from medground.benchmarks.xbench.summarise import Options, summarise
from medground.config import Component, read_yaml
from medground.datasets.base import Case, Dataset
from medground.datasets.manifest import Manifest
from medground.errors import ConfigError, DataError, RunError
from medground.imaging.geometry import Geometry
from medground.imaging.maps import SUFFIXES, read_map
from medground.metrics.values import none_if_nan
from medground.models.base import ModelInfo
from medground.paths import resolve_inside
from medground.running.files import write_atomic
from medground.running.jsonable import to_json
from medground.running.names import folder_name
from medground.running.reading import read_arrays, read_manifest, read_rows
from medground.running.tables import table_files
from medground.session import read_session

MAPS = "maps"


@dataclass(frozen=True)
class Score:
    """Maps under a protocol.

    Attributes:
        protocol: every choice.
        rows: (model, dataset) -> rows of counts.
        summary: as a run gives it.
        folder: where it was written; None for maps made elsewhere.
    """

    protocol: Protocol
    rows: Mapping[tuple[str, ...], pl.DataFrame]
    summary: Summary
    folder: Path | None = None

    def as_json(self) -> dict[str, Any]:
        """Return ``{protocol, items, summary}``; undefined is None."""
        many = len(self.rows) > 1
        items = [
            ({"model": path[0], "dataset": path[1]} if many else {}) | item
            for path, rows in self.rows.items()
            for item in score_items(Pairs.of(rows, self.protocol))
        ]
        return {"protocol": self.protocol.model_dump(mode="json"), "items": items, "summary": self.summary.to_json()}


def read_protocol(text: str) -> Protocol:
    """Return a protocol given by name, as a YAML file, or spelt out: ``{base: xbench, grid: [14, 14]}``.

    Raises:
        ConfigError: it is none of these, or a choice does not exist.
    """
    path = Path(text)
    if path.suffix in {".yaml", ".yml", ".json"} and path.is_file():
        text = path.read_text(encoding="utf-8")
    given = read_yaml(text, "the protocol", where="--protocol")
    if not isinstance(given, (str, dict)):
        raise ConfigError("a protocol is a name or a mapping", where="--protocol", got=text)
    return resolve_protocol(given)


def score(run: Path | None, protocol: Protocol, cases: Path | None, maps: Path | None) -> Score:
    """Score a run folder, or ``maps`` on ``cases``.

    Raises:
        ConfigError: neither, or both, are given.
    """
    if run is not None and cases is None and maps is None:
        return score_run(run, protocol)
    if run is None and cases is not None and maps is not None:
        return score_maps(Manifest(cases, missing="keep"), read_maps(maps), protocol)
    raise ConfigError(
        "score takes a run folder, or cases and maps",
        expected="medground score RUN --protocol P, or medground score --cases FILE --maps FILE --protocol P",
    )


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


def score_maps(dataset: Dataset, maps: Mapping[str, NDArray[Any]], protocol: Protocol) -> Score:
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

    rows: dict[tuple[str, ...], pl.DataFrame] = {
        (MAPS, dataset.name): rows_from_maps(cases, findings, lookup, protocol)
    }
    cards = {MAPS: ModelInfo("Maps made elsewhere")}
    return Score(protocol, rows, summarise(rows, cards, {dataset.name: findings}, Options(protocol)))


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


def score_run(folder: Path, protocol: Protocol) -> Score:
    """Measure a finished run under another protocol, from its kept maps; no model and no image is opened.

    The result is written below ``scores/<protocol>`` in the run folder.

    Raises:
        RunError: the run is no xbench run, not finished, or cannot be written; or a dataset has changed since.
    """
    session = read_session(folder)
    benchmark = session.benchmark
    if not isinstance(benchmark, XBench):
        raise RunError("only xbench runs can be scored again", where=folder, got=session.run.benchmark.name)
    measured = read_manifest(folder)["benchmark"]["datasets"]
    datasets = {e.label: _unchanged(e.label, e.build(), measured.get(e.label)) for e in session.datasets}
    rows: dict[tuple[str, ...], pl.DataFrame] = {
        (model.label, label): _score_task(folder, (model.label, label), dataset, protocol, session.run.seed, spec)
        for model, spec in zip(session.models, session.run.models, strict=True)
        for label, dataset in datasets.items()
    }
    summary = benchmark.summarise(rows, protocol)
    target = folder / "scores" / folder_name(protocol.name)
    tables = {f"tables/{name}": content for name, content in table_files(summary.tables).items()}
    try:
        for name, content in {"summary.json": to_json(summary.to_json()), **tables}.items():
            write_atomic(target / name, content)
    except OSError as error:
        raise RunError("the scores cannot be written", where=target, got=error.strerror or error) from error
    return Score(protocol, rows, summary, target)


def _unchanged(label: str, dataset: Dataset, measured: Mapping[str, Any] | None) -> Dataset:
    """Return the dataset if it is what the run measured: maps of one picture say nothing about regions of another."""
    if measured is None or dataset.fingerprint() != measured["fingerprint"]:
        raise RunError(
            "a dataset has changed since the run", where=label, fix="run the run file again: what changed is measured"
        )
    return dataset


def _score_task(
    folder: Path, path: tuple[str, str], dataset: Dataset, protocol: Protocol, seed: int, spec: Component
) -> pl.DataFrame:
    before = read_rows(folder, path)
    arrays = {name: array for _, found in read_arrays(folder, path) for name, array in found.items()}
    failed = before.filter(pl.col("state") == "failed").unique("case_id")
    return rows_from_maps(
        dataset.cases(),
        dataset.findings,
        _lookup(before, arrays, spec.parameters.get("maps")),
        protocol,
        seed=seed,
        failed=dict(failed.select("case_id", "reason").iter_rows()),
        seen=frozenset(before.filter(pl.col("seen"))["patient_id"].drop_nulls()),
    )


def _lookup(before: pl.DataFrame, arrays: Mapping[str, NDArray[Any]], elsewhere: str | None) -> Lookup:
    """Find a pair in an earlier run; maps made elsewhere are read again, and must not have changed."""
    rows = {(row["case_id"], row["finding"]): row for row in before.iter_rows(named=True)}

    def find(case_id: str, finding: str) -> Found:
        row = rows[case_id, finding]
        array = arrays.get(f"{case_id}/{finding}")
        if row["map_file"] and elsewhere:
            array = _reread(Path(elsewhere), row["map_file"], row["map_sha256"])
        return Found(
            array,
            Geometry.from_dict(json.loads(row["geometry"])) if row["geometry"] else None,
            row["score"],
            row["probability"],
            row["reason"] or "the run kept no map of this pair",
            (row["map_file"], row["map_sha256"]) if row["map_file"] else None,
        )

    return find


def _reread(root: Path, name: str, expected: str) -> NDArray[Any]:
    array, digest = read_map(resolve_inside(root, name))
    if digest != expected:
        raise RunError(
            "a heat map has changed since the run",
            where=name,
            expected=f"SHA-256 {expected[:16]}...",
            got=f"{digest[:16]}...",
            fix="run the run file again",
        )
    return array
