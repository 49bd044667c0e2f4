"""Answers that meet a JSON schema: what the model is told, how its text is checked, and the one time it is asked again.

A reply is one JSON object, alone or in one code fence. Two objects are ambiguous, prose around an object is no answer,
and a value of another type is no value: nothing is guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from medground.errors import ModelError
from medground.models.base import Message, Reply

_FENCE = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)


class UnmetError(Exception):
    """A text that does not meet its schema, with the reason."""


def instruction(schema: Mapping[str, Any]) -> str:
    """Return what is added to a request where the schema cannot be sent beside it."""
    return (
        "Reply with one JSON object and nothing else. It must meet this JSON schema:\n"
        f"{json.dumps(schema, sort_keys=True, ensure_ascii=False)}"
    )


def with_instruction(conversation: Sequence[Message], schema: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return a conversation whose last user turn asks for the schema."""
    turns = list(conversation)
    for index in range(len(turns) - 1, -1, -1):
        if turns[index].role == "user":
            turns[index] = replace(turns[index], text=f"{turns[index].text}\n\n{instruction(schema)}")
            return tuple(turns)
    return (*turns, Message("user", instruction(schema)))


def asked_again(conversation: Sequence[Message], text: str, error: str) -> tuple[Message, ...]:
    """Return a conversation that shows a model its reply and what is wrong with it."""
    complaint = f"Your reply does not meet the schema: {error}. Reply with the JSON object alone."
    return (*conversation, Message("assistant", text), Message("user", complaint))


def read(text: str, schema: Mapping[str, Any]) -> Any:
    """Return the object in a reply.

    Raises:
        UnmetError: the text is no single JSON object, or does not meet the schema.
    """
    fenced = _FENCE.match(text)
    try:
        data = json.loads(fenced[1] if fenced else text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UnmetError(f"it is not one JSON object ({str(error)[:100] or type(error).__name__})") from error
    return validated(data, schema)


def validated(data: Any, schema: Mapping[str, Any]) -> Any:
    """Return data that meets a schema.

    Raises:
        UnmetError: it does not.
        ModelError: the package that checks schemas is not installed, or the schema is none.
    """
    try:
        import jsonschema
    except ImportError as error:
        raise ModelError(
            "structured answers need the package jsonschema", fix="pip install 'medground[api]'"
        ) from error
    try:
        checker = jsonschema.Draft202012Validator(dict(schema))
        problem = next(iter(sorted(checker.iter_errors(data), key=lambda e: [str(part) for part in e.path])), None)
    except (jsonschema.exceptions.SchemaError, RecursionError, re.error) as error:
        raise ModelError("this is no JSON schema", got=str(error).splitlines()[0]) from error
    if problem is not None:
        place = "/".join(map(str, problem.path)) or "the object"
        raise UnmetError(f"{place}: {problem.message}"[:300])
    return data


def settled(reply: Reply, schema: Mapping[str, Any]) -> Reply:
    """Return a reply with the object that it holds, or ``unreadable`` with the reason; failures stay what they are."""
    if reply.outcome != "ok":
        return reply
    try:
        return replace(reply, data=read(reply.text, schema))
    except UnmetError as error:
        return replace(reply, outcome="unreadable", reason=str(error))


def together(first: Reply, second: Reply) -> Reply:
    """Return the second reply with the tokens of both."""
    usage = {name: first.usage[name] + second.usage[name] for name in second.usage if name in first.usage}
    return replace(second, usage=usage)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
