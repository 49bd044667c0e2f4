"""One model on one dataset: cases in, rows of counts out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.base import Entry, Item, Measured, TaskDefaults
from medground.benchmarks.requests import Answer, Ask, Conversation, Transcript
from medground.benchmarks.xbench.answers import image_answer, inferred
from medground.benchmarks.xbench.declared import excluded_of, hold_seen, is_excluded
from medground.benchmarks.xbench.prior import PriorCounts
from medground.benchmarks.xbench.protocol import Protocol
from medground.benchmarks.xbench.replies import read_again, reader_of
from medground.benchmarks.xbench.rows import SCHEMA, KeepMaps, MapMeasurer
from medground.datasets.base import Case, Dataset, names_of
from medground.errors import ModelError
from medground.identity import fingerprint_of
from medground.imaging.cache import DecodeCache
from medground.imaging.geometry import Size
from medground.imaging.reading import Radiograph, read_radiograph
from medground.models.base import Fitted, Grounder, Prediction, Prepared, require, seen_patients_of
from medground.models.common.preparing import load
from medground.tables.ids import plain_id

if TYPE_CHECKING:
    from medground.benchmarks.xbench import XBench


@dataclass(frozen=True)
class Cache:
    """A folder for decoded pictures, and how many bytes it may take."""

    folder: Path
    max_bytes: int


class GroundingStages:
    """An opened task: decode and prepare, predict."""

    def __init__(self, model: Grounder, task: GroundingTask) -> None:
        self._model, self._task = model, task
        self._findings = tuple(task.data.findings)
        words = task.model.declared.findings
        self._asked = tuple(words.get(finding, finding) for finding in self._findings)
        seen = frozenset().union(*(seen_patients_of(model, name) for name in names_of(task.data)))
        self._seen = hold_seen(model.name, task.data.name, seen, task.data.cases())
        self._cache = DecodeCache(task.cache.folder, task.cache.max_bytes) if task.cache else None

    def load(self, item: Item) -> Radiograph | Prepared:
        """Decode the image of one case and do what the model does to it before its network."""
        case: Case = item.payload
        return load(
            self._model,
            case.image,
            self._cache,
            case_id=case.case_id,
            patient_id=case.patient_id,
            augmentation=case.augmentation,
        )

    def converse(self, item: Item, loaded: Radiograph | Prepared) -> Conversation[Mapping[str, Any]]:
        """Ask once: every finding, in the dataset's order."""
        case: Case = item.payload
        kept = self._task.keep_maps
        wanted = {j: f for j, f in enumerate(self._findings) if kept == "all" or f in case.regions}
        yield [Ask("model", "ground", {"image": loaded, "wanted": wanted, "keep": kept != "none"})]
        return {"seen": case.patient_id is not None and plain_id(case.patient_id) in self._seen}

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Predict one batch and cut it into images."""
        assert (role, capability) == ("model", "ground")
        images = [asked["image"] for asked in arguments]
        prediction = self._model.predict(images, self._asked)
        check_prediction(prediction, [x.size for x in images], len(self._findings), self._model.name)
        return [image_answer(prediction, i, a["wanted"], keep=a["keep"]) for i, a in enumerate(arguments)]


class GroundingMeasurer:
    """Makes rows of what was said, under the task's protocol."""

    def __init__(self, task: GroundingTask) -> None:
        data = task.data
        prior = PriorCounts(data.cases(), data.findings, task.protocol, task.seed)
        self._measurer = MapMeasurer(data.findings, task.protocol, prior)
        self._maps: Path | None = task.model.parameters.get("maps")
        self._excluded, self._reader = task.excluded, reader_of(task.reader)

    def measure(self, item: Item, transcript: Transcript) -> Measured:
        """Count every finding of one case."""
        case: Case = item.payload
        regions = {f: case.regions[f] for f in self._measurer.findings if f in case.regions}
        (answer,) = transcript.answers("model", "ground")
        told = inferred(answer, self._measurer.findings, regions, self._maps)
        drawn: Mapping[str, NDArray[np.generic]] = {}
        if self._reader is not None:
            told, drawn = read_again(told, answer, self._reader, self._measurer.findings, regions)
        seen = bool(transcript.notes["seen"]) or is_excluded(case, self._excluded)
        return replace(self._measurer.measure(case, regions, told, seen=seen), arrays=drawn)

    def failed(self, item: Item, reason: str) -> Measured:
        """Return rows that say why nothing was measured."""
        return self._measurer.failed(item.payload, reason)


@dataclass(frozen=True)
class GroundingTask(TaskDefaults):
    """One model on one dataset.

    Attributes:
        model: who is asked.
        dataset: about what.
        protocol: how rows are made.
        seed: of the class prior's folds.
        batch_size: images a call of the model.
        keep_maps: which saliency maps are kept.
        cache: of decoded pictures.
        reader: by which kept replies are read again; None: as the model read itself.
    """

    model: Entry
    dataset: Entry
    protocol: Protocol
    seed: int = 0
    batch_size: int = 8
    keep_maps: KeepMaps = "regions"
    cache: Cache | None = None
    reader: str | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """(model, dataset)."""
        return (self.model.label, self.dataset.label)

    @property
    def cohort(self) -> int | None:  # type: ignore[override]
        """Every item asks once: a batch."""
        return self.batch_size

    @property
    def roles(self) -> Mapping[str, Entry]:
        """The model."""
        return {"model": self.model}

    @property
    def data(self) -> Dataset:
        """The dataset, read once a process."""
        dataset: Dataset = self.dataset.shared()
        return dataset

    @property
    def schema(self) -> pl.Schema:
        """Columns of a row."""
        return SCHEMA

    def items(self) -> Sequence[Item]:
        """One item a case, in the dataset's order."""
        return [Item(case.case_id, case, (case.image,)) for case in self.data.cases()]

    def fingerprint(self) -> str:
        """A hash over model, dataset, ordered findings and the maps that are kept."""
        findings = list(self.data.findings)
        return fingerprint_of(self.model.identity(), self.data.fingerprint(), findings, self.keep_maps)

    @property
    def excluded(self) -> frozenset[str]:
        """Patients that the run file leaves out for this model."""
        return excluded_of(self.model.declared, self.dataset.label, *names_of(self.data))

    def reading(self) -> str:
        """A hash over protocol, seed, the columns of rows, the patients that are left out and the reader of replies."""
        further: list[Any] = [out] if (out := sorted(self.excluded)) else []
        if reader := reader_of(self.reader):
            further.append(reader.record())
        return fingerprint_of(self.protocol.model_dump(mode="json"), self.seed, SCHEMA.names(), *further)

    def open(self, players: Mapping[str, Any]) -> GroundingStages:
        """Check the model, fit it where it learns from the dataset, and return the stages."""
        model = players["model"]
        require(model, ["ground"], by="the benchmark xbench")
        if isinstance(model, Fitted):
            model.fit(self.data.cases(), self.data.findings)
        return GroundingStages(model, self)

    def measurer(self) -> GroundingMeasurer:
        """Return what makes rows."""
        return GroundingMeasurer(self)


def pictures(benchmark: XBench) -> Callable[..., Radiograph]:
    """Return how the pictures of a benchmark are decoded: as its tasks do it, through its cache."""
    cache = benchmark.decode_cache
    return read_radiograph if cache is None else DecodeCache(cache.folder, cache.max_bytes).read


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
        values_of = set(values)
        return values_of.pop() if len(values_of) == 1 else -1

    return len(maps), common(map(len, maps)), common(np.ndim(one) for image in maps for one in image)
