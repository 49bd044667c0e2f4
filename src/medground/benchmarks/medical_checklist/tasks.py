"""One model on one set of items: pictures in a stable order, each with all its items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from medground.benchmarks.base import Entry, Item, Measured, TaskDefaults
from medground.benchmarks.medical_checklist import asking, items as item_files
from medground.benchmarks.medical_checklist.asking import Asked, Control, Group, Order, Pictures, Way
from medground.benchmarks.medical_checklist.hashing import number
from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.benchmarks.medical_checklist.rows import SCHEMA, ChecklistMeasurer, with_rules
from medground.benchmarks.model_reading import ROLE as READER, ModelReading, Readers
from medground.benchmarks.players import Players
from medground.benchmarks.requests import Answer, Conversation, Transcript
from medground.errors import ModelError
from medground.identity import file_hash, fingerprint_of
from medground.models.base import capabilities_of

NAME = "medical_checklist"


@dataclass(frozen=True)
class ChecklistTask(TaskDefaults):
    """A model on the items of a file.

    Attributes:
        model: who is asked.
        dataset: label of the items.
        file: of the items.
        images: folder of the pictures.
        controls: what stands in the picture's place besides.
        order: of captions in a chat prompt.
        template: of the prompt.
        measurer_: reader and link.
        batch_size: requests a call.
        way: how the model is asked.
        reader: a language model that reads answers in prose; None: the rules do.
    """

    model: Entry
    dataset: str
    file: Path
    images: Path
    controls: tuple[Control, ...]
    order: Order
    template: str
    measurer_: ChecklistMeasurer
    batch_size: int = 8
    way: Asked = "auto"
    reader: ModelReading | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """Model and items."""
        return (self.model.label, self.dataset)

    @property
    def schema(self) -> pl.Schema:
        """Columns of the rows."""
        return SCHEMA

    @property
    def roles(self) -> Mapping[str, Entry]:
        """The model."""
        return {"model": self.model}

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Items by picture; for the control each picture has another cluster's in its place."""
        return grouped(item_files.read(self.file), self.images)

    def items(self) -> Sequence[Item]:
        """One item a picture."""
        return [
            Item(group.items[0].item_id, group, tuple(p for p in (group.image, group.other) if p is not None))
            for group in self.groups
        ]

    def fingerprint(self) -> str:
        """What the answers depend on."""
        return fingerprint_of(
            NAME, self.model.identity(), file_hash(self.file), self.controls, self.order, self.way,
            asking.TEMPLATES[self.template],
        )  # fmt: skip

    def reading(self) -> str:
        """What the rows depend on beyond the answers."""
        model = self.reader.fingerprint() if self.reader else None
        return fingerprint_of(NAME, 3, self.measurer_.reader, self.measurer_.link, model)

    @property
    def reading_roles(self) -> Mapping[str, Entry]:
        """The reading model, where there is one."""
        return {READER: self.reader.model} if self.reader is not None else {}

    def open_reading(self, players: Mapping[str, Any]) -> _GroupReading:
        """Return what makes rows with the reading model."""
        assert self.reader is not None
        return _GroupReading(self.measurer_, self.reader, Players(players, {READER: ("reply",)}, by=f"{NAME}'s reader"))

    def open(self, players: Mapping[str, Any]) -> ChecklistStages:
        """Return the stages.

        Raises:
            ModelError: the model can neither match nor chat.
        """
        return ChecklistStages(self, Players(players), way_of(players["model"], self.way))

    def measurer(self) -> _GroupMeasurer:
        """Return what makes rows."""
        return _GroupMeasurer(self.measurer_)


@dataclass(frozen=True)
class ChecklistStages:
    """An opened task."""

    task: ChecklistTask
    players: Players
    way: Way

    def load(self, item: Item) -> Pictures:
        """Decode the picture, make its controls, and prepare all for a matcher."""
        pictures = asking.load(item.payload, self.task.controls)
        return asking.prepared(pictures, self.players.players["model"]) if self.way == "match" else pictures

    def converse(self, item: Item, loaded: Pictures) -> Conversation[Mapping[str, Any]]:
        """Ask about one picture."""
        return asking.converse(item.payload, loaded, self.way, self.task.order, self.task.template)

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Answer a batch of requests."""
        return self.players.answer(role, capability, arguments)


@dataclass(frozen=True)
class _GroupMeasurer:
    inner: ChecklistMeasurer

    def measure(self, item: Item, transcript: Transcript) -> Measured:
        """Make the rows of one picture."""
        return Measured(self.inner.measure(item.payload, transcript))

    def failed(self, item: Item, reason: str) -> Measured:
        """Return rows without numbers."""
        return Measured(self.inner.failed(item.payload, reason))


@dataclass(frozen=True)
class _GroupReading(_GroupMeasurer):
    reader: ModelReading
    players: Players

    def read(self, item: Item, transcript: Transcript) -> Conversation[Measured]:
        """Make the rows of one picture by a reading model, what the rules say beside it."""

        def measure(readers: Readers) -> list[dict[str, Any]]:
            return replace(self.inner, choices=readers["choice"]).measure(item.payload, transcript)

        by_model = yield from self.reader.read(measure)
        return Measured(with_rules(by_model, self.inner.measure(item.payload, transcript)))

    def answer(self, role: str, capability: str, arguments: Sequence[Mapping[str, Any]]) -> Sequence[Answer]:
        """Let the reading model reply."""
        return self.players.answer(role, capability, arguments)


def way_of(model: Any, wanted: Asked = "auto") -> Way:
    """Return how a model is asked: by matching first, else by probabilities of A and B, else in prose.

    Args:
        model: built.
        wanted: one way, or ``auto``.

    Raises:
        ModelError: it cannot.
    """
    able = capabilities_of(model)
    ways: tuple[Way, ...] = ("match", "choose", "reply") if wanted == "auto" else (wanted,)
    for way in ways:
        if way in able:
            return way
    raise ModelError(
        "a model can neither match captions nor chat" if wanted == "auto" else "a model cannot be asked like that",
        where=getattr(model, "name", type(model).__name__),
        expected=", ".join(ways),
        got=", ".join(sorted(able)) or "nothing",
    )


def grouped(items: Sequence[ChecklistItem], images: Path) -> tuple[Group, ...]:
    """Return items by picture, and for each picture one of another cluster, drawn by its own hash."""
    held: dict[str, list[ChecklistItem]] = {}
    for item in items:
        held.setdefault(item.image or f"missing/{item.caption_id}", []).append(item)
    names = sorted(held)
    clusters = {name: held[name][0].cluster for name in names}
    return tuple(
        Group(
            images / name,
            None if (other := _other(name, names, clusters)) is None else images / other,
            tuple(held[name]),
        )
        for name in names
    )


def _other(name: str, names: Sequence[str], clusters: Mapping[str, str]) -> str | None:
    start = number("shuffle", name) % len(names)
    for step in range(len(names)):
        other = names[(start + step) % len(names)]
        if clusters[other] != clusters[name] and not other.startswith("missing/"):
            return other
    return None
