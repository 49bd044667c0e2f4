"""Ways of picking the next token when one or several forward passes speak: one file a method.

``decoding: {name: vcd, alpha: 1.0}`` is a switch of every chat model whose logits can be reached. ``plain`` takes the
model's own logits; the others ask the model twice, once under changed conditions, and contrast the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from medground.errors import ConfigError, did_you_mean
from medground.models.chat.decoding.base import Branch, Decoding, Plain, Prompt

__all__ = ["DECODINGS", "Branch", "Decoding", "Plain", "Prompt", "decoding_of"]

DECODINGS: Final[Mapping[str, str]] = {
    "plain": "medground.models.chat.decoding.base:Plain",
    "loba": "medground.models.chat.decoding.loba:LobaDecoding",
    "vcd": "medground.models.chat.decoding.vcd:Vcd",
    "prompt_highlighter": "medground.models.chat.decoding.prompt_highlighter:PromptHighlighter",
    "crg": "medground.models.chat.decoding.crg:Crg",
    "m3id": "medground.models.chat.decoding.m3id:M3id",
}
"""Name -> class."""


def decoding_of(given: Mapping[str, Any] | str | None) -> Decoding:
    """Return a decoding from a run file's mapping, ``{name: vcd, alpha: 1.0}``, or its name.

    Raises:
        ConfigError: there is no such method, or it has no such parameter.
    """
    from medground.registry import check

    parts = {"name": given} if isinstance(given, str) else dict(given or {"name": "plain"})
    name = str(parts.pop("name", ""))
    if name not in DECODINGS:
        raise ConfigError(
            f"there is no decoding named {name!r}",
            where="decoding.name",
            expected=", ".join(DECODINGS),
            fix=did_you_mean(name, DECODINGS),
        )
    module, _, attribute = DECODINGS[name].partition(":")
    cls = getattr(import_module(module), attribute)
    made: Decoding = cls(**check(cls, parts, where="decoding"))
    return made
