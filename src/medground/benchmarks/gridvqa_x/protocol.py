"""How a kept attribution is read: which of it counts, which words are the cause, and how a map is binarised.

``causes`` reads as the paper does, on absolute values, with every word of a direction marked. ``positive`` takes what
speaks for the answer alone, as CLEVR-XAI does (Arras et al. 2022); ``released`` takes the released masks of words. Each
is made from kept answers: no model and no explainer is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medground.benchmarks.doors import RunFileSection
from medground.errors import ConfigError, did_you_mean
from medground.metrics.relevance import Rule
from medground.worlds.gridvqa.masks import Convention

Sign = Literal["absolute", "positive"]


class Protocol(BaseModel):
    """The choices of one reading. Two protocols with equal fields give equal numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="how reports call it")
    sign: Sign = Field(
        "absolute",
        description="attribution of either sign by its size, or only what speaks for the answer (the rest is zero)",
    )
    words: Convention = Field(
        "correct", description="words of the cause: every word of a direction, or those that the released masks mark"
    )
    binarise: Rule = Field("otsu", description="what stands out of a map, for its overlap with the cause")
    source: str = Field("", description="where the choices come from")

    def counted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return an attribution without what does not count: of the same shape, zero there."""
        return np.maximum(values, 0.0) if self.sign == "positive" else values

    @property
    def choices(self) -> Mapping[str, Any]:
        """What changes a number: all but its name and source."""
        return self.model_dump(mode="json", exclude={"name", "source"})

    def in_words(self) -> str:
        """Return the choices in a line."""
        counted = {"absolute": "attribution of either sign", "positive": "only attribution that speaks for the answer"}
        marked = {"correct": "every word of a direction", "released": "the words that the released masks mark"}
        return f"{self.name}: {counted[self.sign]}; {marked[self.words]}; maps binarised by {self.binarise}"


CAUSES = Protocol(name="causes", source="arXiv 2606.14740, with every word of a direction marked")
NAMED: Mapping[str, Protocol] = {
    "causes": CAUSES,
    "positive": Protocol(name="positive", sign="positive", source="Arras et al. 2022: positive relevance alone"),
    "released": Protocol(
        name="released",
        words="released",
        source='the released masks of words, which leave out "left", "right" and "of"',
    ),
}


def resolve_protocol(choice: str | Mapping[str, Any]) -> Protocol:
    """Return a named protocol, or one made of a mapping whose ``base`` (``causes``) names where it starts from.

    Raises:
        ConfigError: there is no such protocol or choice, or a changed one bears a name that is taken.
    """
    if isinstance(choice, str):
        if choice not in NAMED:
            raise ConfigError(
                f"there is no protocol named {choice!r}",
                where="benchmark.protocol",
                expected=f"{', '.join(NAMED)}, or a mapping of choices",
                fix=did_you_mean(choice, NAMED),
            )
        return NAMED[choice]
    changes = dict(choice)
    base = changes.pop("base", CAUSES.name)
    if not isinstance(base, str):
        raise ConfigError(
            "a protocol's base is a name", where="benchmark.protocol.base", expected=", ".join(NAMED), got=base
        )
    start = resolve_protocol(base)
    renamed = {"name": f"{base} (changed)", "source": f"{base}, changed"} if set(changes) - {"name", "source"} else {}
    try:
        protocol = Protocol.model_validate(start.model_dump() | renamed | changes)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(
            f"the protocol is not right: {first['msg'].lower()}",
            where=".".join(["benchmark.protocol", *map(str, first["loc"])]),
            expected=f"base, {', '.join(Protocol.model_fields)}" if first["type"] == "extra_forbidden" else None,
            got=repr(first["input"]),
        ) from error
    published = NAMED.get(protocol.name)
    if published is not None and protocol.choices != published.choices:
        raise ConfigError(
            "a protocol with choices of its own needs a name of its own",
            where="benchmark.protocol.name",
            got=protocol.name,
        )
    return protocol


def protocols() -> dict[str, Mapping[str, Any]]:
    """Return the named protocols: in a line, and with all their choices."""
    return {name: {"in words": p.in_words(), **p.model_dump(mode="json")} for name, p in NAMED.items()}


def run_file() -> list[RunFileSection]:
    """Return the mapping that ``protocol`` may be."""
    text = "By name (`causes`, `positive`, `released`), or choices of your own; `base` names the one they start from."
    return [RunFileSection("`benchmark.protocol` of `gridvqa_x`", text, Protocol)]
