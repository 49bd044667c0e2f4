"""What a model declares that it can do, so that a benchmark refuses it early, with a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from medground.errors import ModelError

Capability = Literal[
    "ground",
    "match",
    "reply",
    "choose",
    "logits",
    "masks",
    "look",
    "pictures",
    "several_pictures",
    "attention_bias",
    "tools",
]
_METHODS: Mapping[str, Capability] = {
    "predict": "ground",
    "match": "match",
    "reply": "reply",
    "choose": "choose",
    "logits": "logits",
    "masks": "masks",
    "look": "look",
}


def capabilities_of(model: Any) -> frozenset[str]:
    """Return what a model, or a model's class, says it can do.

    It is what its attribute ``capabilities`` lists; a class that declares nothing can do what its methods are named
    after, and looks at one picture at a time.
    """
    declared = getattr(model, "capabilities", None)
    if declared is not None and not callable(declared) and not isinstance(declared, property):
        return frozenset(declared)
    own = {capability for method, capability in _METHODS.items() if callable(getattr(model, method, None))}
    return frozenset(own | {"pictures"} if own else own)


def require(model: Any, needed: Iterable[str], *, by: str) -> None:
    """Refuse a model that cannot do what is asked of it.

    Args:
        model: an instance, or a class that declares ``capabilities``.
        needed: capabilities.
        by: who asks, for the message: ``the benchmark xbench``.

    Raises:
        ModelError: one is missing.
    """
    able = capabilities_of(model)
    missing = [capability for capability in needed if capability not in able]
    if missing:
        raise ModelError(
            f"{by} needs a model that can {_SENTENCES.get(missing[0], missing[0])}",
            where=getattr(model, "name", type(model).__name__),
            expected=", ".join(needed),
            got=", ".join(sorted(able)) or "nothing",
        )


_SENTENCES = {
    "ground": "score findings and say where they are (ground)",
    "match": "say how well captions fit a picture (match)",
    "reply": "answer in words (reply)",
    "choose": "say how likely given words are (choose); servers often do not",
    "logits": "answer from a fixed list (logits)",
    "masks": "draw masks (masks)",
    "look": "say where it looks (look): hf_chat with attention: eager, small_chat or loba",
    "pictures": "look at a picture (pictures)",
    "several_pictures": "look at several pictures at once (several_pictures)",
    "attention_bias": "be told where to look (attention_bias): a model in this process, not one behind a server",
    "tools": "call tools (tools)",
}
