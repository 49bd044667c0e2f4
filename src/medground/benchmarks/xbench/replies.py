"""What a model that answers in words said, read again from what was kept: presence and place, by a named reader."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from medground.benchmarks.base import Entry
from medground.benchmarks.requests import Answer
from medground.benchmarks.xbench.answers import MAP
from medground.benchmarks.xbench.rows import Inferred
from medground.errors import ConfigError, did_you_mean
from medground.imaging.geometry import Geometry
from medground.models.base import Reply
from medground.models.chat.placing import GRID, VALUES, BoxFormat, Where, map_of, place_of, presence_of
from medground.readers.base import Question, Reading
from medground.readers.boxes import Boxes
from medground.readers.yes_no import YesNo


class ReplyReader(Protocol):
    """Says what the replies about one finding mean."""

    def presence(self, finding: str, reply: Reply) -> tuple[float, str]:
        """Return the score, NaN where there is none, and why there is none."""

    def place(self, finding: str, reply: Reply, form: BoxFormat, geometry: Geometry) -> Where:
        """Return the map of the boxes, or why there is none."""

    def record(self) -> Mapping[str, Any]:
        """Return name and versions, as part of a reading's identity."""


class Structured:
    """Takes an answer that meets its schema, and nothing else: as the model reads itself when it is asked."""

    def presence(self, finding: str, reply: Reply) -> tuple[float, str]:  # noqa: ARG002  # a schema needs no words
        """See :class:`ReplyReader`."""
        return presence_of(reply)

    def place(self, finding: str, reply: Reply, form: BoxFormat, geometry: Geometry) -> Where:  # noqa: ARG002
        """See :class:`ReplyReader`."""
        return place_of(reply, form, geometry.source)

    def record(self) -> Mapping[str, Any]:
        """See :class:`ReplyReader`."""
        return {"name": "structured", "version": "1"}


class Prose:
    """Takes what stands anywhere in the reply, by the rules of ``yes_no`` and ``boxes``, where no schema is met."""

    def __init__(self) -> None:
        self._presence, self._place = YesNo(), Boxes()

    def presence(self, finding: str, reply: Reply) -> tuple[float, str]:
        """See :class:`ReplyReader`."""
        if not reply.text.strip() or reply.outcome not in {"ok", "unreadable"}:
            return presence_of(reply)
        reading = self._presence.read(Question(finding=finding), reply.text)
        if reading.outcome == "uncertain":
            return VALUES["uncertain"], ""
        return (float("nan"), _why(reading)) if reading.value is None else (VALUES[reading.value], "")

    def place(self, finding: str, reply: Reply, form: BoxFormat, geometry: Geometry) -> Where:
        """See :class:`ReplyReader`."""
        if not reply.text.strip() or reply.outcome not in {"ok", "unreadable"}:
            return place_of(reply, form, geometry.source)
        reading = self._place.read(Question(finding=finding), reply.text)
        return Where(None, _why(reading)) if reading.value is None else map_of(reading.value, form, geometry.source)

    def record(self) -> Mapping[str, Any]:
        """See :class:`ReplyReader`."""
        return {"name": "prose", "version": "1", "rules": [self._presence.fingerprint(), self._place.fingerprint()]}


READERS: Mapping[str, type[Structured | Prose]] = {"structured": Structured, "prose": Prose}


def reader_of(name: str | None) -> ReplyReader | None:
    """Return a reader by its name; None: as the model read itself.

    Raises:
        ConfigError: there is no such reader.
    """
    if name is None:
        return None
    if name not in READERS:
        raise ConfigError(
            f"xbench has no reader named {name!r}",
            where="benchmark.reader",
            expected=", ".join(READERS),
            fix=did_you_mean(name, READERS),
        )
    return READERS[name]()


def keeps_replies(entry: Entry | Any) -> bool:
    """Return whether a model, or the one inside it, answers in words that are kept."""
    inner = entry.parameters.get("of")
    return bool(getattr(entry.cls, "keeps_replies", False)) or (hasattr(inner, "parameters") and keeps_replies(inner))


@dataclass(frozen=True)
class KeptReplies:
    """What was kept of the replies about one finding.

    Attributes:
        presence: the reply to the question of yes or no; None where log-probabilities were taken instead.
        place: the reply to the question where it is; None where it was not asked in words.
        form: in which boxes were asked for.
    """

    presence: Reply | None
    place: Reply | None
    form: BoxFormat

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> KeptReplies:
        """Return what a record holds."""
        presence, place = (None if name not in record else Reply.of(record[name]) for name in ("presence", "place"))
        return cls(presence, place, record.get("box_format", "thousandths"))


def read_again(
    told: Inferred, answer: Answer, reader: ReplyReader, findings: Sequence[str], localised: Collection[str]
) -> tuple[Inferred, dict[str, NDArray[np.generic]]]:
    """Return what a model said with every kept reply read by a reader, and the maps that were drawn from replies.

    What was not said in words stays what it was.

    Args:
        told: as the model read itself.
        answer: with the kept replies.
        reader: how they are read now.
        findings: in the order asked.
        localised: those whose maps are needed.
    """
    scores, probabilities, absent = told.scores.copy(), told.probabilities.copy(), dict(told.absent)
    boxes = dict(told.boxes)
    maps, drawn = None if told.maps is None else list(told.maps), dict[str, NDArray[np.generic]]()
    for place, record in answer.values.get("replies", {}).items():
        j, kept = int(place), KeptReplies.of(record)
        unread = ""
        if kept.presence is not None:
            scores[j], unread = reader.presence(findings[j], kept.presence)
            probabilities[j] = scores[j]
        if maps is None:
            continue
        if kept.place is not None:
            where = reader.place(findings[j], kept.place, kept.form, told.geometry)
            absent.pop(j, None)
            boxes.pop(j, None)
            if where.boxes is not None:
                certain = float(probabilities[j]) if np.isfinite(probabilities[j]) else 0.0
                boxes[j] = [[*box, certain] for box in where.boxes]
            unread = where.reason or unread
            if findings[j] in localised:
                maps[j] = np.full((GRID, GRID), np.nan, np.float32) if where.map is None else where.map
                drawn |= {MAP + findings[j]: maps[j]} if where.map is not None else {}
        if unread:
            absent.setdefault(j, unread)
    return replace(told, scores=scores, probabilities=probabilities, maps=maps, absent=absent, boxes=boxes), drawn


def _why(reading: Reading) -> str:
    return f"{reading.outcome}: {reading.reason}"
