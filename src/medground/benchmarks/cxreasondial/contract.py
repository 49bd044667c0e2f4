"""Dialogues as data: JSONL, one dialogue a line, checked with line numbers.

A dialogue names its picture and lists its turns; a turn holds the user's words and what they ask for, each request
with the evidence that a reply is held against. See ``docs/cxreasondial.md``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError

from medground.errors import DataError, did_you_mean
from medground.judges.base import EVIDENCE_TYPES, PARTS, Query, Request
from medground.tools import TASKS

_STRICT: dict[str, Any] = {"extra": "forbid"}
#: A line longer than this is no dialogue.
LONGEST_LINE = 4_000_000


@dataclass(frozen=True)
class Picture:
    """The picture of a dialogue; its path is relative to the file that names it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    path: str
    dicom_id: str = ""
    view: str | None = None
    width: int = 0
    height: int = 0


@dataclass(frozen=True)
class Turn:
    """One exchange.

    Attributes:
        index: from 0.
        query: the user's words.
        requests: what they ask for; empty for chatter.
        reference_reply: what a right answer may look like, for the history mode that shows it.
        answer_in_history: the evidence of this turn was already shown in an earlier reference reply.
        kind: ``plain``, ``follow_up``, ``correction``, ``premise``, ``chatter`` or whatever a builder names.
        facts: what a builder knows of the turn: whether a premise is true, say.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    index: int
    query: str
    requests: tuple[Request, ...] = ()
    reference_reply: str | None = None
    answer_in_history: bool = False
    kind: str = "plain"
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def visual(self) -> bool:
        """Whether a picture is asked for, alone or among other things."""
        return any(request.evidence_type == "visual" for request in self.requests)

    @property
    def plan(self) -> frozenset[tuple[str, str]]:
        """The requested (task, evidence type) pairs."""
        return frozenset((request.task, request.evidence_type) for request in self.requests)


@dataclass(frozen=True)
class Dialogue:
    """A picture and what is asked about it, turn by turn."""

    __pydantic_config__: ClassVar[dict[str, Any]] = _STRICT

    id: str
    image: Picture
    turns: tuple[Turn, ...]
    source: str = ""
    license_note: str = ""
    patient_id: str | None = None

    def query(self, turn: Turn, *, draws: bool) -> Query:
        """A turn as judges see it."""
        size = (self.image.width or 1024, self.image.height or 1024)
        return Query(turn.query, turn.requests, size, draws)


@cache
def _adapter() -> TypeAdapter[Dialogue]:
    return TypeAdapter(Dialogue)


def read_dialogues(path: Path) -> list[Dialogue]:
    """Read a JSONL file of dialogues.

    Raises:
        DataError: a line is not a dialogue; the message names the line, the field and what was expected, and which
            other lines are wrong.
    """
    dialogues, wrong = _checked(path, most=20)
    if wrong:
        first, *others = wrong
        if others:
            more = "and more" if len(wrong) >= 20 else "too"
            lines = ", ".join(str(error.where).partition(", line ")[2].partition(":")[0] for error in others)
            first.fix = f"lines {lines} are wrong, {more}"
        raise first
    if not dialogues:
        raise DataError("the file holds no dialogue", where=str(path), expected="JSONL, one dialogue a line")
    return dialogues


def problems(path: Path, most: int = 20) -> list[DataError]:
    """Return what is wrong with a file, line by line, up to ``most``; empty if nothing is."""
    return _checked(path, most)[1]


def _checked(path: Path, most: int) -> tuple[list[Dialogue], list[DataError]]:
    dialogues: list[Dialogue] = []
    wrong: list[DataError] = []
    seen: dict[str, int] = {}
    for number, line in _lines(path):
        where = f"{path}, line {number}"
        try:
            dialogue = parse(line, where)
        except DataError as error:
            wrong.append(error)
        else:
            if dialogue.id in seen:
                first = f"first in line {seen[dialogue.id]}"
                wrong.append(DataError(f"dialogue {dialogue.id!r} stands twice", where=where, got=first))
            seen.setdefault(dialogue.id, number)
            dialogues.append(dialogue)
        if len(wrong) >= most:
            break
    return dialogues, wrong


def parse(line: str | bytes, where: str) -> Dialogue:
    """Read one dialogue from JSON.

    Raises:
        DataError: it is not one; ``where`` stands in the message.
    """
    try:
        dialogue = _adapter().validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(
            "this is not a dialogue",
            where=f"{where}: {place}" if place else where,
            expected=first["msg"],
            got=repr(first["input"])[:80],
        ) from error
    for place, problem, expected in _faults(dialogue):
        raise DataError(problem, where=f"{where}: {place}", expected=expected)
    return dialogue


def record(dialogue: Dialogue) -> dict[str, Any]:
    """The dialogue as JSON-like data, which ``parse`` reads again."""
    out = asdict(dialogue)
    for turn in out["turns"]:
        for request in turn["requests"]:
            for measured in request["evidence"]["measurements"]:
                if measured["side"] is None:
                    del measured["side"]
    return out


def write_dialogues(path: Path, dialogues: Iterable[Dialogue]) -> int:
    """Write dialogues as JSONL; returns how many."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for dialogue in dialogues:
            file.write(json.dumps(record(dialogue), ensure_ascii=False, separators=(",", ":")) + "\n")
            count += 1
    return count


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if len(line) > LONGEST_LINE:
                    raise DataError(
                        "a line is too long for a dialogue", where=f"{path}, line {number}", got=f"{len(line)} bytes"
                    )
                if line.strip():
                    yield number, line
    except OSError as error:
        raise DataError("the dialogues cannot be read", where=str(path), got=str(error)) from error


def _faults(dialogue: Dialogue) -> Iterator[tuple[str, str, str]]:
    if dialogue.image.view not in ("PA", "AP", None):
        yield "image.view", "the view is not known", "PA, AP or null"
    path = PurePosixPath(dialogue.image.path)
    if path.is_absolute() or ".." in path.parts:
        yield "image.path", "the picture lies outside the data", "a path below the file that names it"
    if not dialogue.turns:
        yield "turns", "a dialogue has turns", "at least one"
    for place, turn in enumerate(dialogue.turns):
        if turn.index != place:
            yield f"turns.{place}.index", "turns are numbered from 0 in order", str(place)
        for i, request in enumerate(turn.requests):
            yield from _request_faults(f"turns.{place}.requests.{i}", request)


def _request_faults(where: str, request: Request) -> Iterator[tuple[str, str, str]]:
    if request.task not in TASKS:
        hint = did_you_mean(request.task, list(TASKS)) or ""
        yield f"{where}.task", f"there is no task {request.task!r}; {hint}", ", ".join(TASKS)
    if request.evidence_type not in EVIDENCE_TYPES:
        yield (
            f"{where}.evidence_type",
            f"there is no evidence type {request.evidence_type!r}",
            " or ".join(EVIDENCE_TYPES),
        )
    if not set(request.asked) <= set(PARTS):
        yield f"{where}.asked", "a part is not known", ", ".join(PARTS)
    conclusion = request.evidence.conclusion
    if (conclusion.label is None) != (conclusion.polarity is None):
        yield f"{where}.evidence.conclusion", "label and polarity are known together", "both, or null for both"
    if conclusion.label is not None and conclusion.label not in conclusion.acceptable:
        yield f"{where}.evidence.conclusion.acceptable", "the label itself is acceptable", conclusion.label
    if conclusion.polarity not in (0, 1, None):
        yield f"{where}.evidence.conclusion.polarity", "a polarity is 1 or 0", "1, 0 or null"
    for i, measured in enumerate(request.evidence.measurements):
        if measured.tolerance is not None and not measured.tolerance >= 0:
            yield f"{where}.evidence.measurements.{i}.tolerance", "a tolerance is not negative", "0 or more, or null"


def requests_of(dialogues: Sequence[Dialogue]) -> list[Request]:
    """Every request of some dialogues."""
    return [request for dialogue in dialogues for turn in dialogue.turns for request in turn.requests]
