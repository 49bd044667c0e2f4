"""One model on one dataset: cases in, rows of counts out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from medground.benchmarks.base import Item, Measured
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.rows import SCHEMA, Inferred, KeepMaps, Measurer, PriorHits
from medground.datasets.base import Case, Dataset
from medground.errors import ModelError
from medground.identity import fingerprint_of
from medground.imaging.geometry import Size
from medground.imaging.reading import Radiograph, read_radiograph
from medground.imaging.regions import Region
from medground.models.base import Fitted, Grounder, Prediction

Reader = Callable[..., Radiograph]
"""``read_radiograph``, or what gives the same faster."""


@dataclass(frozen=True)
class Loaded:
    """A decoded case: its picture and its regions, made once."""

    image: Radiograph
    regions: Mapping[str, Region]


class GroundingStages:
    """An opened task: decode, predict, count."""

    def __init__(self, model: Grounder, measurer: Measurer, read: Reader = read_radiograph) -> None:
        self._model = model
        self._measurer = measurer
        self._read = read

    def load(self, item: Item) -> Loaded:
        """Decode the image of one case and make its regions."""
        case: Case = item.payload
        image = self._read(case.image, case_id=case.case_id, patient_id=case.patient_id)
        return Loaded(image, {f: case.regions[f] for f in self._measurer.findings if f in case.regions})

    def infer(self, batch: Sequence[Loaded]) -> list[Inferred]:
        """Predict one batch and cut it into images."""
        images = [loaded.image for loaded in batch]
        prediction = self._model.predict(images, self._measurer.findings)
        check_prediction(prediction, [x.size for x in images], len(self._measurer.findings), self._model.name)
        return [_image(prediction, i) for i in range(len(batch))]

    def measure(self, item: Item, loaded: Loaded, inferred: Inferred) -> Measured:
        """Count every finding of one case."""
        return self._measurer.measure(item.payload, loaded.regions, inferred)

    def failed(self, item: Item, reason: str) -> Measured:
        """Return rows that say why nothing was measured."""
        return self._measurer.failed(item.payload, reason)


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
        read: Reader = read_radiograph,
    ) -> None:
        self._labels = labels
        self._model = model
        self._dataset = dataset
        self._protocol = protocol
        self._seed = seed
        self._batch_size = batch_size
        self._keep_maps: KeepMaps = keep_maps
        self._read = read

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
        prior = PriorHits(cases, self._dataset.findings, self._protocol, self._seed)
        seen = seen_patients(model, self._dataset.name)
        measurer = Measurer(self._dataset.findings, self._protocol, prior, seen, self._keep_maps)
        return GroundingStages(model, measurer, self._read)


def seen_patients(model: object, dataset: str) -> frozenset[str]:
    """Return the patients of a dataset that a model was trained on, where it says so."""
    lookup = getattr(model, "seen_patients", None)
    return frozenset(lookup(dataset)) if lookup else frozenset()


def check_prediction(prediction: Prediction, sizes: Sequence[Size], findings: int, name: str) -> None:
    """Refuse a prediction whose shapes are not those of the question.

    Args:
        prediction: what the model said.
        sizes: (width, height) of every picture that it was asked about.
        findings: how many findings it was asked for.
        name: of the model.

    Raises:
        ModelError: naming the array, its shape and the expected one.
    """
    shape = (len(sizes), findings)
    if not isinstance(prediction, Prediction):
        raise ModelError(f"{name}: predict() returns no Prediction", got=type(prediction).__name__)
    for what, array in (("scores", prediction.scores), ("probabilities", prediction.probabilities)):
        if np.shape(array) != shape:
            raise ModelError(f"{name}: {what} have a wrong shape", expected=f"(N, C) = {shape}", got=np.shape(array))
    p = np.asarray(prediction.probabilities)
    if ((p < 0) | (p > 1)).any():
        raise ModelError(f"{name}: probabilities leave [0, 1]", got=f"{np.nanmin(p)} to {np.nanmax(p)}")
    sources = [geometry.source for geometry in prediction.geometry or ()]
    if sources != list(sizes):
        raise ModelError(
            f"{name}: geometry is one an image, from the image's own size", expected=list(sizes), got=sources
        )
    maps = prediction.saliency
    if maps is not None and (got := _shape_of(maps)) != (*shape, 2):
        raise ModelError(
            f"{name}: saliency has a wrong shape", expected=f"(N, C, h, w), {shape}", got=f"{got[:2]}, {got[2]} axes"
        )


def _shape_of(maps: Any) -> tuple[int, int, int]:
    """Return images, findings and axes of nested maps; -1 where they differ."""

    def common(values: Iterable[int]) -> int:
        found = set(values)
        return found.pop() if len(found) == 1 else -1

    return len(maps), common(map(len, maps)), common(np.ndim(one) for image in maps for one in image)


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
