"""Ways of picking the next token when one or several forward passes speak: one file a method.

``decoding: {name: vcd, alpha: 1.0}`` is a switch of every chat model whose logits can be reached. ``plain`` takes the
model's own logits; the others ask the model twice, once under changed conditions, and contrast the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, get_type_hints

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
    decoding: Decoding = cls(**_checked(cls, parts))
    return decoding


def _checked(cls: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a constructor's keywords with their declared types."""
    from pydantic import ConfigDict, ValidationError, create_model

    hints = {name: kind for name, kind in get_type_hints(cls.__init__).items() if name != "return"}
    unknown = [name for name in given if name not in hints]
    if unknown:
        raise ConfigError(
            f"{cls.__name__} has no parameter {unknown[0]!r}",
            where="decoding",
            expected=", ".join(hints) or "no parameters",
            fix=did_you_mean(unknown[0], hints),
        )
    fields: dict[str, Any] = {name: (hints[name], ...) for name in given}
    try:
        checked = create_model(cls.__name__, __config__=ConfigDict(extra="forbid"), **fields)(**given)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(
            f"{cls.__name__}: {first['msg'].lower()}",
            where=f"decoding.{first['loc'][0]}",
            got=repr(first["input"]),
        ) from error
    return {name: getattr(checked, name) for name in given}
