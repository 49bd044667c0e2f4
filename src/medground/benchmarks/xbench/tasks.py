"""One model on one dataset: cases in, rows of counts out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.base import Item, Measured
from medground.benchmarks.xbench.measure import Counts, Target, count, make_target, on_grid
from medground.benchmarks.xbench.protocol import Protocol
from medground.datasets.base import Case, Dataset, fingerprint_of
from medground.errors import ModelError
from medground.imaging.geometry import Geometry, Size
from medground.imaging.reading import Radiograph, read_radiograph
from medground.imaging.regions import Region
from medground.models.base import Fitted, Grounder, Prediction
from medground.models.baseline_class_prior import ClassPrior

SCHEMA = pl.Schema(
    {
        "case_id": pl.String(),
        "patient_id": pl.String(),
        "view": pl.String(),
        "finding": pl.String(),
        "seen": pl.Boolean(),
        "localised": pl.Boolean(),
        "label": pl.Boolean(),
        "score": pl.Float64(),
        "probability": pl.Float64(),
        "state": pl.String(),
        "reason": pl.String(),
        "share": pl.Float64(),
        "area": pl.Int64(),
        "total": pl.Int64(),
        "covered": pl.Int64(),
        "ties": pl.Int64(),
        "ties_inside": pl.Int64(),
        "first_inside": pl.Boolean(),
        "peak_x": pl.Int64(),
        "peak_y": pl.Int64(),
        "prior_ties": pl.Int64(),
        "prior_ties_inside": pl.Int64(),
        "prior_first_inside": pl.Boolean(),
        "selected": pl.List(pl.Int64()),
        "inside": pl.List(pl.Int64()),
        "geometry": pl.String(),
        "map_file": pl.String(),
        "map_sha256": pl.String(),
    }
)
"""A row: one (case, finding). Everything that a summary needs, and no verdict."""

KeepMaps = Literal["regions", "all", "none"]


@dataclass(frozen=True)
class Loaded:
    """A decoded case: its picture and its regions, made once."""

    image: Radiograph
    regions: Mapping[str, Region]


@dataclass(frozen=True)
class Inferred:
    """What the model said about one image, in the order of the task's findings."""

    scores: NDArray[np.floating[Any]]
    probabilities: NDArray[np.floating[Any]]
    maps: Sequence[NDArray[np.floating[Any]]] | None
    geometry: Geometry
    absent: Mapping[int, str]
    origin: Mapping[int, tuple[str, str]]


class PriorHits:
    """Where the class prior of each finding peaks on a protocol's grid; shared by all models on a dataset."""

    def __init__(self, prior: ClassPrior, protocol: Protocol) -> None:
        self._prior = prior
        self._protocol = protocol
        self._peaks: dict[tuple[int, str, Size], NDArray[np.intp]] = {}

    def hits(self, case_id: str, finding: str, target: Target) -> dict[str, Any]:
        """Return the pointing columns of the class prior for one target; empty where it has no map."""
        prior = self._prior.map_for(case_id, finding)
        if prior is None:
            return {}
        # Maps are shared by every case of a fold, so their identity is the key.
        key = (id(prior), finding, target.size)
        if key not in self._peaks:
            grid = Geometry.identity((prior.shape[1], prior.shape[0]))
            values, _ = on_grid(prior, grid, target.size, self._protocol)
            self._peaks[key] = np.flatnonzero(values == values.max())
        where = target.wide.ravel()[self._peaks[key]]
        return {
            "prior_ties": len(where),
            "prior_ties_inside": int(where.sum()),
            "prior_first_inside": bool(where[0]),
        }


class GroundingStages:
    """An opened task: decode, predict, count."""

    def __init__(
        self, model: Grounder, findings: Sequence[str], protocol: Protocol, prior: PriorHits, seen: frozenset[str],
        keep_maps: KeepMaps = "regions",
    ) -> None:  # fmt: skip
        self.model = model
        self.findings = tuple(findings)
        self.protocol = protocol
        self.prior = prior
        self.seen = seen
        self.keep_maps = keep_maps

    def load(self, item: Item) -> Loaded:
        """Decode the image of one case and make its regions."""
        case: Case = item.payload
        image = read_radiograph(case.image, case_id=case.case_id, patient_id=case.patient_id)
        return Loaded(image, {f: case.regions[f] for f in self.findings if f in case.regions})

    def infer(self, batch: Sequence[Loaded]) -> list[Inferred]:
        """Predict one batch and cut it into images."""
        prediction = self.model.predict([loaded.image for loaded in batch], self.findings)
        check_prediction(prediction, len(batch), len(self.findings), self.model.name)
        return [_image(prediction, i) for i in range(len(batch))]

    def measure(self, item: Item, loaded: Loaded, inferred: Inferred) -> Measured:
        """Count every finding of one case."""
        case: Case = item.payload
        rows, arrays = [], {}
        for j, finding in enumerate(self.findings):
            row = self._identity(case, finding)
            row |= {"score": _number(inferred.scores[j]), "probability": _number(inferred.probabilities[j])}
            row |= self._grounding(case.case_id, finding, j, loaded.regions.get(finding), inferred)
            rows.append(row)
            if self._keeps(case, finding, j, inferred):
                assert inferred.maps is not None
                arrays[f"{case.case_id}/{finding}"] = np.asarray(inferred.maps[j], dtype=np.float32)
        return Measured(rows, arrays)

    def failed(self, item: Item, reason: str) -> Measured:
        """Return rows that say why nothing was measured."""
        case: Case = item.payload
        why = {"state": "failed", "reason": reason}
        return Measured([self._identity(case, finding) | why for finding in self.findings])

    def _identity(self, case: Case, finding: str) -> dict[str, Any]:
        label = True if finding in case.regions else case.labels.get(finding)
        return dict.fromkeys(SCHEMA.names()) | {
            "case_id": case.case_id,
            "patient_id": case.patient_id,
            "view": case.view,
            "finding": finding,
            "label": label,
            "seen": case.patient_id in self.seen,
            "localised": finding in case.regions,
            "selected": [],
            "inside": [],
        }

    def _grounding(
        self, case_id: str, finding: str, j: int, region: Region | None, inferred: Inferred
    ) -> dict[str, Any]:
        if region is None:
            return {"state": "none"}
        target = make_target(region, self.protocol)
        place = {
            "share": target.share,
            "area": int(target.mask.sum()),
            "total": target.mask.size,
            "geometry": json.dumps(inferred.geometry.to_dict(), sort_keys=True),
        }
        place |= dict(zip(("map_file", "map_sha256"), inferred.origin.get(j, (None, None)), strict=True))
        if inferred.maps is None or j in inferred.absent:
            counts = Counts("absent", inferred.absent.get(j, "the model gives no maps"))
        else:
            counts = count(inferred.maps[j], inferred.geometry, target, self.protocol)
        return place | self.prior.hits(case_id, finding, target) | _columns(counts)

    def _keeps(self, case: Case, finding: str, j: int, inferred: Inferred) -> bool:
        if inferred.maps is None or j in inferred.absent or j in inferred.origin or self.keep_maps == "none":
            return False
        return self.keep_maps == "all" or finding in case.regions


class GroundingTask:
    """One model on one dataset; the model is built when it is needed."""

    def __init__(
        self,
        labels: tuple[str, str],
        model: Callable[[], Grounder],
        dataset: Dataset,
        protocol: Protocol,
        *,
        seed: int,
        batch_size: int,
        keep_maps: KeepMaps,
    ) -> None:
        self._labels = labels
        self._model = model
        self._dataset = dataset
        self._protocol = protocol
        self._seed = seed
        self._batch_size = batch_size
        self._keep_maps: KeepMaps = keep_maps

    @property
    def path(self) -> tuple[str, ...]:
        """(model, dataset)."""
        return self._labels

    @property
    def schema(self) -> pl.Schema:
        """Columns of a row."""
        return SCHEMA

    @property
    def batch_size(self) -> int:
        """Images a call of the model."""
        return self._batch_size

    def items(self) -> Sequence[Item]:
        """One item a case, in the dataset's order."""
        return self._items

    @cached_property
    def _items(self) -> list[Item]:
        return [Item(case.case_id, case) for case in self._dataset.cases()]

    def fingerprint(self) -> str:
        """A hash over model, dataset, ordered findings, protocol and seed."""
        model = self._model()
        return fingerprint_of(
            model.name,
            model.fingerprint(),
            self._dataset.fingerprint(),
            list(self._dataset.findings),
            self._protocol.model_dump(mode="json"),
            self._seed,
            self._keep_maps,
            sorted(seen_patients(model, self._dataset.name)),
        )

    def open(self) -> GroundingStages:
        """Build the model, fit it where it learns from the dataset, and return the stages."""
        model = self._model()
        cases = [item.payload for item in self._items]
        if isinstance(model, Fitted):
            model.fit(cases, self._dataset.findings)
        prior = ClassPrior(self._seed)
        prior.fit(cases, self._dataset.findings)
        return GroundingStages(
            model,
            self._dataset.findings,
            self._protocol,
            PriorHits(prior, self._protocol),
            seen_patients(model, self._dataset.name),
            self._keep_maps,
        )


def seen_patients(model: object, dataset: str) -> frozenset[str]:
    """Return the patients of a dataset that a model was trained on, where it says so."""
    lookup = getattr(model, "seen_patients", None)
    return frozenset(lookup(dataset)) if lookup else frozenset()


def check_prediction(prediction: Prediction, images: int, findings: int, name: str) -> None:
    """Refuse a prediction whose shapes are not those of the question.

    Raises:
        ModelError: naming the array, its shape and the expected one.
    """
    shape = (images, findings)
    for what, array in (("scores", prediction.scores), ("probabilities", prediction.probabilities)):
        if np.shape(array) != shape:
            raise ModelError(f"{name}: {what} have a wrong shape", expected=f"(N, C) = {shape}", got=np.shape(array))
    p = np.asarray(prediction.probabilities)
    if ((p < 0) | (p > 1)).any():
        raise ModelError(f"{name}: probabilities leave [0, 1]", got=f"{np.nanmin(p)} to {np.nanmax(p)}")
    if len(prediction.geometry) != images:
        raise ModelError(f"{name}: geometry is one an image", expected=images, got=len(prediction.geometry))
    maps = prediction.saliency
    if isinstance(maps, np.ndarray) and (maps.ndim != 4 or maps.shape[:2] != shape):
        raise ModelError(f"{name}: saliency has a wrong shape", expected=f"(N, C, h, w), {shape}", got=maps.shape)


def _image(prediction: Prediction, i: int) -> Inferred:
    def of(mapping: Mapping[tuple[int, int], Any]) -> dict[int, Any]:
        return {j: value for (image, j), value in mapping.items() if image == i}

    maps = prediction.saliency
    return Inferred(
        prediction.scores[i],
        prediction.probabilities[i],
        None if maps is None else maps[i],
        prediction.geometry[i],
        of(prediction.absent),
        of(prediction.origin),
    )


def _columns(counts: Counts) -> dict[str, Any]:
    return {f.name: getattr(counts, f.name) for f in fields(counts)}


def _number(value: Any) -> float | None:
    """NaN and infinities are undefined, and stay so in the table."""
    return float(value) if np.isfinite(value) else None
