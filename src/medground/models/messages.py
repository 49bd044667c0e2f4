"""What is said to a chat model and what it says: turns, options, replies, tool calls. Plain values, hashed and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from medground.errors import ModelError
from medground.imaging.reading import Radiograph


@dataclass(frozen=True)
class ToolCall:
    """What a model wants a tool to do.

    Attributes:
        name: of the tool. Untrusted.
        arguments: JSON-like. Untrusted.
        call_id: by which the tool's turn names the call that it answers.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = ""

    def record(self) -> dict[str, Any]:
        """Return the call as JSON-like data."""
        return {"name": self.name, "arguments": dict(self.arguments), "call_id": self.call_id}


@dataclass(frozen=True)
class ToolSpec:
    """A tool that a model may call.

    Attributes:
        name: letters, digits, ``_`` and ``-``.
        description: what it does, for the model.
        parameters: JSON schema of its arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})

    def record(self) -> dict[str, Any]:
        """Return the tool as JSON-like data."""
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}


@dataclass(frozen=True)
class Message:
    """One turn of a conversation.

    Attributes:
        role: ``system``, ``user``, ``assistant``, or ``tool``: what a tool returned.
        text: of the turn.
        images: shown before the text.
        tool_calls: of an assistant's turn.
        call_id: of a tool's turn: the call that it answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    images: tuple[Radiograph, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""

    def record(self) -> dict[str, Any]:
        """Return the turn as JSON-like data, each picture as its size and the SHA-256 of its pixels."""
        return {
            "role": self.role,
            "text": self.text,
            "images": [picture_hash(image) for image in self.images],
            "tool_calls": [call.record() for call in self.tool_calls],
            "call_id": self.call_id,
        }


def picture_hash(image: Radiograph) -> str:
    """Return ``WIDTHxHEIGHT:SHA-256`` of a picture's pixels (float32, little-endian, rows first) and its colours."""
    digest = hashlib.sha256(np.ascontiguousarray(image.pixels, dtype="<f4").tobytes())
    if image.colour is not None:
        digest.update(np.ascontiguousarray(image.colour).tobytes())
    return f"{image.size[0]}x{image.size[1]}:{digest.hexdigest()}"


def conversation_hash(conversation: Sequence[Message]) -> str:
    """Return the SHA-256 of everything that a conversation shows a model."""
    text = json.dumps([message.record() for message in conversation], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class GenerationOptions:
    """How a reply is made; everything is sent explicitly and stands in the run record.

    Attributes:
        max_new_tokens: most tokens of a reply.
        temperature: 0: always the likeliest token.
        top_p: share of the probability that is sampled from; without effect at temperature 0.
        seed: of the sampling.
        sample: number of a repeated sample, so that two samples of one conversation are two requests.
        stop: texts that end a reply.
        schema: JSON schema that the reply must meet; it comes back in ``Reply.data``.
        tools: that the model may call.
        log_probabilities: whether to return the log-probability of each new token.
    """

    max_new_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    sample: int = 0
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    tools: tuple[ToolSpec, ...] = ()
    log_probabilities: bool = False

    def __post_init__(self) -> None:
        if self.max_new_tokens < 1 or self.temperature < 0 or not 0 < self.top_p <= 1:
            raise ModelError(
                "these options make no reply",
                expected="max_new_tokens of at least 1, temperature of at least 0, top_p in (0, 1]",
                got=f"{self.max_new_tokens}, {self.temperature}, {self.top_p}",
            )

    def record(self) -> dict[str, Any]:
        """Return the options as JSON-like data."""
        return {
            "max_new_tokens": self.max_new_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "sample": self.sample,
            "stop": list(self.stop),
            "schema": None if self.schema is None else dict(self.schema),
            "tools": [tool.record() for tool in self.tools],
            "log_probabilities": self.log_probabilities,
        }


Outcome = Literal["ok", "refusal", "timeout", "unreadable", "error"]


@dataclass(frozen=True)
class Reply:
    """What a chat model answered. ``text`` is untrusted: it is shown escaped and never followed.

    Attributes:
        text: as the model wrote it; empty where nothing came.
        outcome: ``ok``; ``refusal``: the model or its server declined; ``timeout``; ``unreadable``: a structured answer
            that does not meet its schema; ``error``. All but ``ok`` are states, never values.
        reason: why the outcome is not ``ok``.
        finish: why the reply ended: ``stop``, ``length``, ``tool_calls``, ``content_filter`` or as the server says.
        usage: ``prompt_tokens`` and ``completion_tokens``, where they are known.
        log_probabilities: of each new token, where they were asked for and the model gives them.
        tool_calls: what tools the model wants to be called.
        data: the structured answer, where a schema was asked for and is met.
        model: as the server names itself; empty for a local model.
    """

    text: str
    outcome: Outcome = "ok"
    reason: str = ""
    finish: str = "stop"
    usage: Mapping[str, int] = field(default_factory=dict)
    log_probabilities: tuple[float, ...] | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    data: Any = None
    model: str = ""

    def record(self) -> dict[str, Any]:
        """Return the reply as JSON-like data."""
        return {
            "text": self.text,
            "outcome": self.outcome,
            "reason": self.reason,
            "finish": self.finish,
            "usage": dict(self.usage),
            "log_probabilities": None if self.log_probabilities is None else list(self.log_probabilities),
            "tool_calls": [call.record() for call in self.tool_calls],
            "data": self.data,
            "model": self.model,
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Reply:
        """Return the reply of a :meth:`record`."""
        told = record.get("log_probabilities")
        calls = tuple(ToolCall(c["name"], c["arguments"], c["call_id"]) for c in record.get("tool_calls", ()))
        return cls(**{**record, "log_probabilities": None if told is None else tuple(told), "tool_calls": calls})
