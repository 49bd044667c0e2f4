"""The work of a run: one chat model on one dataset, an item a question with all its variants."""

from __future__ import annotations

import base64
import io
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from PIL import Image

from medground.benchmarks.base import Entry, Item, Measured, TaskDefaults
from medground.benchmarks.heal_medvqa import rows
from medground.benchmarks.heal_medvqa.asking import (
    BASE,
    MASKS,
    LoadedPictures,
    asks,
    files_of,
    highlighted,
    load,
    notes_of,
)
from medground.benchmarks.heal_medvqa.choices import Choices
from medground.benchmarks.heal_medvqa.gallery import Gallery, GalleryPicture
from medground.benchmarks.heal_medvqa.localising import coded, overlaps
from medground.benchmarks.heal_medvqa.plan import Asked, Build, build
from medground.benchmarks.model_reading import ROLE as READER, ModelReading, Readers
from medground.benchmarks.players import Players, kept_reply
from medground.benchmarks.requests import Answer, Conversation, Transcript
from medground.errors import ModelError
from medground.identity import fingerprint_of
from medground.imaging.reading import Radiograph
from medground.models.capabilities import capabilities_of
from medground.models.messages import GenerationOptions
from medground.readers.findings import Findings
from medground.readers.yes_no import YesNo

_RECENT = 32  # pictures kept: questions of one image are neighbours, and normal donors serve often
_THUMB = 192  # longest side of the pictures that a report shows


@dataclass(frozen=True)
class Payload:
    """What an item carries.

    Attributes:
        asked: the question and its variants.
        specimen: whether its pictures before and after are kept for the report.
        masks: whether the model is asked where the regions of the picture are; once a picture.
    """

    asked: Asked
    specimen: bool = False
    masks: bool = False


@dataclass(frozen=True)
class HealTask(TaskDefaults):
    """One model on one dataset.

    Attributes:
        model: who is asked.
        dataset: whose pictures are shown.
        choices: of the build and its pastes.
        instruction: appended to every question.
        max_new_tokens: of a reply.
        pictures: specimens to keep for the report.
        batch_size: requests a call.
        reader: a language model that reads the replies; None: the rules do.
        true_regions: ask everything once more with the true region given to the model.
    """

    model: Entry
    dataset: Entry
    choices: Choices
    instruction: str = ""
    max_new_tokens: int = 64
    pictures: int = 8
    batch_size: int = 8
    reader: ModelReading | None = None
    true_regions: bool = False

    @property
    def schema(self) -> pl.Schema:
        """Columns of the rows."""
        return rows.SCHEMA

    @property
    def path(self) -> tuple[str, ...]:
        """Model and dataset."""
        return self.model.label, self.dataset.label

    @property
    def roles(self) -> Mapping[str, Entry]:
        """The chat model."""
        return {"model": self.model}

    def items(self) -> Sequence[Item]:
        """Every question, in the build's order."""
        gallery, left = self.gallery, self.pictures
        items, seen = [], set[str]()
        for asked in self.built.asked:
            shown = left > 0 and any(variant.name == "vpt" for variant in asked.planned.variants)
            left -= shown
            masks = self._locates and asked.part == "natural" and asked.question.image_id not in seen
            seen.add(asked.question.image_id)
            items.append(Item(asked.question.question_id, Payload(asked, shown, masks), files_of(asked, gallery)))
        return items

    @property
    def _locates(self) -> bool:
        """Whether the model says where regions are."""
        return "masks" in capabilities_of(self.model.cls) and callable(getattr(self.model.cls, "masks", None))

    def fingerprint(self) -> str:
        """A hash of model, pictures, masks and every choice."""
        chosen = asdict(self.choices) | {"instruction": self.instruction, "tokens": self.max_new_tokens}
        chosen |= {"masks": self._locates, "true regions": self.true_regions}
        return fingerprint_of("heal_medvqa", 2, self.model.identity(), self.gallery.fingerprint(), repr(chosen))

    def reading(self) -> str:
        """A hash of the readers."""
        rules = (YesNo().fingerprint(), Findings().fingerprint())
        return fingerprint_of("heal_medvqa rows", 2, *rules, self.reader.fingerprint() if self.reader else None)

    @property
    def reading_roles(self) -> Mapping[str, Entry]:
        """The reading model, where there is one."""
        return {READER: self.reader.model} if self.reader is not None else {}

    def open_reading(self, players: Mapping[str, Any]) -> HealReading:
        """Return what makes rows with the reading model."""
        assert self.reader is not None
        return HealReading(self.gallery.findings, self.reader, players)

    def open(self, players: Mapping[str, Any]) -> HealStages:
        """Return the stages; the model must reply to pictures."""
        model = players["model"]
        if self.true_regions and not callable(getattr(model, "reply_highlighted", None)):
            raise ModelError(
                "this model cannot be given a region to look at",
                where=self.model.label,
                expected="a method reply_highlighted, as loba has",
                fix="leave true_regions out, or put the model into a run of its own",
            )
        return HealStages(Players(players, {"model": ("reply", "pictures")}, by="heal_medvqa"), self)

    def measurer(self) -> HealMeasurer:
        """Return what makes rows."""
        return HealMeasurer(self.gallery.findings)

    @property
    def gallery(self) -> Gallery:
        """The pictures; shared by all tasks of this process on the same dataset and choices."""
        return opened(self.dataset, self.choices)[0]

    @property
    def built(self) -> Build:
        """The questions; shared likewise."""
        return opened(self.dataset, self.choices)[1]


_OPENED: dict[str, tuple[Gallery, Build]] = {}
_LOCK = threading.Lock()


def opened(dataset: Entry, choices: Choices) -> tuple[Gallery, Build]:
    """Return gallery and build of a dataset, made once a process."""
    key = f"{dataset.identity()} {choices!r}"
    with _LOCK:
        if key not in _OPENED:
            gallery = choices.gallery(dataset.shared())
            _OPENED[key] = gallery, build(gallery, choices.draw, donor=choices.donor)
        return _OPENED[key]


class _Recent:
    """A gallery that keeps the last pictures in memory."""

    def __init__(self, gallery: Gallery) -> None:
        self._gallery, self._kept = gallery, OrderedDict[str, GalleryPicture]()
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gallery, name)

    def picture(self, image_id: str) -> GalleryPicture:
        """Return a picture, from memory where it was shown lately."""
        with self._lock:
            if image_id in self._kept:
                self._kept.move_to_end(image_id)
                return self._kept[image_id]
        picture = self._gallery.picture(image_id)
        with self._lock:
            self._kept[image_id] = picture
            if len(self._kept) > _RECENT:
                self._kept.popitem(last=False)
        return picture


class HealStages:
    """An opened task."""

    def __init__(self, players: Players, task: HealTask) -> None:
        self._players, self._task = players, task
        self._options = GenerationOptions(max_new_tokens=task.max_new_tokens)

    @cached_property
    def _gallery(self) -> Any:
        return _Recent(self._task.gallery)

    def load(self, item: Item) -> LoadedPictures:
        """Return the pictures of a question, perturbed ones made."""
        return load(item.payload.asked, self._gallery, self._task.choices.paste)

    def converse(self, item: Item, loaded: LoadedPictures) -> Conversation[Mapping[str, Any]]:
        """Ask the base question and every variant in one round."""
        payload: Payload = item.payload
        round_ = asks(payload.asked, loaded, self._gallery.words, self._task.instruction, self._options)
        if self._task.true_regions:
            round_ += highlighted(round_, loaded)
        if payload.masks:
            round_.append(replace(MASKS, arguments={"image": loaded.pictures[BASE].radiograph}))
        answers = yield round_
        notes: dict[str, Any] = {"pictures": notes_of(loaded)}
        if payload.masks and answers[-1].outcome == "ok":
            notes["masks"] = {name: list(counts) for name, counts in overlaps(answers[-1], loaded.masks).items()}
        if payload.specimen:
            notes["specimen"] = {name: png(loaded.pictures[name].radiograph) for name in (BASE, "vpt")}
        return notes

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Let the model reply, with a region given to it, or say where regions are."""
        if capability == "highlighted":
            conversations, regions = [a["conversation"] for a in arguments], [a["region"] for a in arguments]
            model = self._players.players[role]
            return [kept_reply(reply) for reply in model.reply_highlighted(conversations, regions, self._options)]
        answers = self._players.answer(role, capability, arguments)
        return [coded(answer) for answer in answers] if capability == "masks" else answers


class HealMeasurer:
    """Makes rows of what was said."""

    def __init__(self, findings: Sequence[str]) -> None:
        self._vocabulary, self._yes_no, self._findings = tuple(findings), YesNo(), Findings()

    def measure(self, item: Item, transcript: Transcript) -> Measured:
        """Return one row a variant."""
        records = rows.rows_of(item.payload.asked, transcript, self._yes_no, self._findings, self._vocabulary)
        return Measured(records)

    def failed(self, item: Item, reason: str) -> Measured:
        """Return the rows of a question that could not be asked."""
        return Measured(rows.failed(item.payload.asked, reason))


class HealReading(HealMeasurer):
    """Makes rows by a reading model, what the rules say beside it."""

    def __init__(self, findings: Sequence[str], reader: ModelReading, players: Mapping[str, Any]) -> None:
        super().__init__(findings)
        self._reader = reader
        self._players = Players(players, {READER: ("reply",)}, by="the reader of heal_medvqa")

    def read(self, item: Item, transcript: Transcript) -> Conversation[Measured]:
        """Return one row a variant, after one round."""
        asked = item.payload.asked

        def measure(readers: Readers) -> list[dict[str, Any]]:
            return rows.rows_of(asked, transcript, readers["yes_no"], readers["findings"], self._vocabulary)

        by_rules = rows.rows_of(asked, transcript, self._yes_no, self._findings, self._vocabulary)
        by_model = yield from self._reader.read(measure)
        return Measured(rows.with_rules(by_model, by_rules))

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Let the reading model reply."""
        return self._players.answer(role, capability, arguments)


def png(radiograph: Radiograph) -> str:
    """Return a small PNG of a picture as a data URI."""
    pixels = np.round(radiograph.pixels * 255).astype(np.uint8)
    image = Image.fromarray(pixels)
    image.thumbnail((_THUMB, _THUMB))
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
