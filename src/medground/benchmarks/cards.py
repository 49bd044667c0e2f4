"""What is known of a model without building it: its own card, and that of the model inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medground.benchmarks.results import ModelFacts
from medground.models.base import ModelInfo


def card_of(cls: type[Any], parameters: Mapping[str, Any]) -> Any:
    """Return the facts of a component: ``ModelInfo``, ``DatasetInfo`` or None.

    A model made of another one (a blind twin, a chat model as a grounder) has seen in training what that one has seen,
    and is no better verified. Weights that the run file allows to be missing are said too.

    Args:
        cls: its class.
        parameters: of its constructor; ``of`` may hold the model inside it.
    """
    card = getattr(cls, "info", None)
    inner = parameters.get("of") if getattr(cls, "parts", {}).get("of") == "model" else None
    if inner is not None and isinstance(card, ModelInfo):
        within = card_of(getattr(inner, "cls", type(inner)), getattr(inner, "parameters", {}))
        if isinstance(within, ModelInfo):
            card = replace(
                card,
                title=f"{within.title} ({card.title})",
                kind=within.kind if card.kind == "unknown" else card.kind,
                seen={**within.seen, **card.seen},
                unverified=_joined(card.unverified, within.unverified),
            )
    ignored = parameters.get("ignore")
    if ignored:
        card = card if isinstance(card, ModelInfo) else ModelInfo(cls.__name__)
        patterns = ", ".join(map(str, ignored))
        reason = f"the run file lets weights be missing or left out (ignore: {patterns})"
        card = replace(card, unverified=_joined(reason, card.unverified))
    return card


def _joined(*reasons: str | None) -> str | None:
    return "; ".join(reason for reason in reasons if reason) or None


def facts_of(label: str, card: Any) -> ModelFacts:
    """Return what reports must know of a model of the run.

    Args:
        label: how the run calls it.
        card: its facts, as its entry gives them.
    """
    if not isinstance(card, ModelInfo):
        return ModelFacts(label=label, title=getattr(card, "title", label), kind=getattr(card, "kind", None))
    return ModelFacts(label=label, title=card.title, kind=card.kind, seen=dict(card.seen), unverified=card.unverified)
