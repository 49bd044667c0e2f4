"""From conversations to what a chat template takes, and from generated text to tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from medground.errors import ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import Message, ToolCall, ToolSpec

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*(?:</tool_call>|\Z)", re.DOTALL)


def picture(image: Radiograph, mode: str = "RGB") -> Image.Image:
    """Return a picture at 8 bit: its colours where it brings any, else grey copied to the channels."""
    if image.colour is not None:
        return Image.fromarray(image.colour).convert(mode)
    levels = np.rint(np.clip(image.pixels, 0, 1) * 255).astype(np.uint8)
    return Image.fromarray(levels).convert(mode)


def turns(conversation: Sequence[Message], *, sees: bool) -> list[dict[str, Any]]:
    """Return a conversation as a chat template takes it.

    Args:
        conversation: may hold tool turns.
        sees: whether the model takes pictures; without sight the content of a turn is its text.

    Raises:
        ModelError: a turn shows a picture to a model without sight.
    """
    return [_turn(message, sees) for message in conversation]


def _turn(message: Message, sees: bool) -> dict[str, Any]:
    if message.images and not sees:
        raise ModelError(
            "this model cannot look at pictures",
            fix="images: ignored, to ask it without them; its answers are then those of a blind model",
        )
    content: Any = message.text
    if sees:
        pictures = [{"type": "image", "image": picture(image)} for image in message.images]
        content = [*pictures, {"type": "text", "text": message.text}]
    turn: dict[str, Any] = {"role": message.role, "content": content}
    if message.role == "tool":
        turn["tool_call_id"] = message.call_id
    if message.tool_calls:
        turn["tool_calls"] = [
            {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": dict(c.arguments)}}
            for c in message.tool_calls
        ]
    return turn


def tools(specs: Sequence[ToolSpec]) -> list[dict[str, Any]] | None:
    """Return tools as a chat template takes them."""
    return [{"type": "function", "function": spec.record()} for spec in specs] or None


def tool_calls(text: str) -> tuple[ToolCall, ...]:
    """Return the calls in a generated text: ``<tool_call>`` blocks, or one JSON object with a name and arguments.

    A block that is no JSON object is a call without a name, its text under ``unreadable``.
    """
    blocks = _CALL.findall(text)
    if not blocks and text.strip().startswith("{"):
        call = _call(text.strip(), 0)
        return (call,) if call is not None and call.name else ()
    calls = (_call(block, index) or ToolCall("", {"unreadable": block}) for index, block in enumerate(blocks))
    return tuple(calls)


def _call(text: str, index: int) -> ToolCall | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        return None
    arguments = data.get("arguments", data.get("parameters", {}))
    return ToolCall(
        data["name"], arguments if isinstance(arguments, dict) else {"unreadable": arguments}, f"call{index}"
    )
