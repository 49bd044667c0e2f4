"""The chat-completions format of OpenAI-compatible servers: from conversations to JSON, from JSON to replies."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from medground.imaging.reading import Radiograph
from medground.models.base import GenerationOptions, Message, Reply, ToolCall


class MalformedError(Exception):
    """The server's answer is damaged or empty: the same request may be sent again."""


def picture_uri(image: Radiograph, longest: int) -> str:
    """Return a picture as a data URI: 8-bit PNG in grey or colour, longest side at most ``longest`` (bicubic)."""
    grey = np.rint(np.clip(image.pixels, 0, 1) * 255).astype(np.uint8)
    levels = grey if image.colour is None else image.colour
    picture = Image.fromarray(levels)
    scale = longest / max(picture.size)
    if scale < 1:
        width, height = (max(1, round(side * scale)) for side in picture.size)
        picture = picture.resize((width, height), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", compress_level=6)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def messages(conversation: Sequence[Message], longest: int) -> list[dict[str, Any]]:
    """Return a conversation as the ``messages`` of a request."""
    return [_message(message, longest) for message in conversation]


def _message(message: Message, longest: int) -> dict[str, Any]:
    content: Any = message.text
    if message.images:
        uris = [picture_uri(image, longest) for image in message.images]
        pictures = [{"type": "image_url", "image_url": {"url": uri}} for uri in uris]
        content = [*pictures, {"type": "text", "text": message.text}]
    wire: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "tool":
        wire["tool_call_id"] = message.call_id
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments), sort_keys=True)},
            }
            for call in message.tool_calls
        ]
    return wire


def sampling(options: GenerationOptions, limit_name: str) -> dict[str, Any]:
    """Return the sampling parameters of a request, all of them explicit.

    Args:
        options: of the request.
        limit_name: what the server calls the number of new tokens.
    """
    body: dict[str, Any] = {
        limit_name: options.max_new_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "seed": options.seed + options.sample,
        "n": 1,
        "stream": False,
    }
    if options.stop:
        body["stop"] = list(options.stop)
    if options.log_probabilities:
        body["logprobs"] = True
    if options.tools:
        body["tools"] = [{"type": "function", "function": _tool(tool.record())} for tool in options.tools]
    return body


def _tool(record: dict[str, Any]) -> dict[str, Any]:
    return {"name": record["name"], "description": record["description"], "parameters": record["parameters"]}


def reply_of(body: Any) -> Reply:
    """Return the reply in a server's answer.

    Raises:
        MalformedError: it holds no choice, or a choice without content that is no refusal.
    """
    if not isinstance(body, Mapping) or not isinstance(body.get("choices"), list) or not body["choices"]:
        raise MalformedError("no choices")
    choice = body["choices"][0]
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        raise MalformedError("no message")
    finish = str(choice.get("finish_reason") or "stop")
    common: dict[str, Any] = {
        "finish": finish,
        "usage": _usage(body.get("usage")),
        "model": str(body.get("model") or ""),
    }
    content, calls = message.get("content"), _calls(message.get("tool_calls"))
    text = content if isinstance(content, str) else ""
    if finish == "content_filter":
        return Reply(text, "refusal", "content_filter", **common)
    if message.get("refusal"):
        return Reply(str(message["refusal"]), "refusal", "refusal", **common)
    if not isinstance(content, str) and not calls:
        raise MalformedError("empty content")
    return Reply(text, tool_calls=calls, log_probabilities=_logprobs(choice.get("logprobs")), **common)


def _usage(stated: Any) -> dict[str, int]:
    if not isinstance(stated, Mapping):
        return {}
    names = ("prompt_tokens", "completion_tokens")
    return {name: stated[name] for name in names if type(stated.get(name)) is int and stated[name] >= 0}


def _calls(stated: Any) -> tuple[ToolCall, ...]:
    if not isinstance(stated, list):
        return ()
    calls = []
    for entry in stated:
        function = entry.get("function") if isinstance(entry, Mapping) else None
        if isinstance(function, Mapping):
            arguments = _arguments(function.get("arguments"))
            calls.append(ToolCall(str(function.get("name", "")), arguments, str(entry.get("id", ""))))
    return tuple(calls)


def _arguments(stated: Any) -> dict[str, Any]:
    """Return a call's arguments; what is no JSON object stands under ``unreadable``."""
    try:
        data = json.loads(stated) if isinstance(stated, str) else stated
    except ValueError:
        data = None
    return dict(data) if isinstance(data, Mapping) else {"unreadable": stated}


def _logprobs(stated: Any) -> tuple[float, ...] | None:
    content = stated.get("content") if isinstance(stated, Mapping) else None
    if not isinstance(content, list):
        return None
    try:
        return tuple(float(entry["logprob"]) for entry in content)
    except (KeyError, TypeError, ValueError):
        return None
