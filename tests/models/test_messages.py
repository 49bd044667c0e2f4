"""Turns, options and replies as values: hashes see everything, records come back, capabilities are declared."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import numpy as np
import pytest

from medground.errors import ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import (
    GenerationOptions,
    Message,
    Reply,
    ToolCall,
    ToolSpec,
    capabilities_of,
    conversation_hash,
    picture_hash,
    require,
)


def grey(value: float, shape: tuple[int, int] = (4, 6)) -> Radiograph:
    return Radiograph(np.full(shape, value, np.float32))


def test_the_hash_of_a_conversation_sees_all_that_is_shown() -> None:
    call = ToolCall("ctr", {"side": "left"}, "c1")
    variants = [
        (Message("user", "a", (grey(0.5),)),),
        (Message("user", "a", (grey(0.25),)),),
        (Message("user", "a", (grey(0.5, (6, 4)),)),),
        (Message("user", "a"),),
        (Message("system", "a"),),
        (Message("user", "b"),),
        (Message("assistant", "a", tool_calls=(call,)),),
        (Message("assistant", "a", tool_calls=(ToolCall("ctr", {"side": "right"}, "c1"),)),),
        (Message("tool", "a", call_id="c1"),),
        (Message("tool", "a", call_id="c2"),),
        (Message("user", "a"), Message("user", "a")),
    ]
    assert len({conversation_hash(v) for v in variants}) == len(variants)
    assert conversation_hash(variants[0]) == conversation_hash((Message("user", "a", (grey(0.5),)),))
    assert picture_hash(grey(0.5)).startswith("6x4:")


def test_a_picture_is_known_by_its_pixels_and_not_by_its_names() -> None:
    assert picture_hash(grey(0.5)) == picture_hash(grey(0.5).with_ids("case", "patient"))


def test_a_reply_comes_back_from_its_record() -> None:
    reply = Reply(
        "x",
        "refusal",
        "declined",
        "tool_calls",
        {"prompt_tokens": 3},
        (-0.5, -1.0),
        (ToolCall("t", {"a": [1]}, "c"),),
        {"k": 1},
        "m",
    )
    assert Reply.of(json.loads(json.dumps(reply.record()))) == reply
    assert Reply.of(Reply("y").record()) == Reply("y")


def test_options_have_a_record_of_every_field() -> None:
    options = GenerationOptions(stop=("\n",), tools=(ToolSpec("t", "d"),), schema={"type": "object"})
    assert set(options.record()) == set(GenerationOptions.__dataclass_fields__)
    json.dumps(options.record())


@pytest.mark.parametrize("wrong", [{"max_new_tokens": 0}, {"temperature": -1.0}, {"top_p": 0.0}, {"top_p": 1.5}])
def test_options_that_make_no_reply_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="no reply"):
        GenerationOptions(**wrong)


class Declares:
    name: ClassVar[str] = "declares"
    capabilities: ClassVar[frozenset[str]] = frozenset({"reply", "tools"})


class Shows:
    name: ClassVar[str] = "shows"

    def predict(self) -> None:
        """Ground."""


def test_capabilities_are_declared_or_told_from_methods() -> None:
    assert capabilities_of(Declares) == capabilities_of(Declares()) == {"reply", "tools"}
    assert capabilities_of(Shows()) == {"ground", "pictures"}
    require(Declares, {"reply"}, by="the benchmark x")
    with pytest.raises(ModelError, match="the benchmark x needs a model that can look at a picture") as caught:
        require(Declares(), ["reply", "pictures"], by="the benchmark x")
    assert caught.value.where == "declares"
    assert caught.value.got == "reply, tools"
