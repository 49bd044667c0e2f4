"""Answers from the question alone, by a rule: always yes, always no, the longest choice. What must be beaten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from medground.models.base import GenerationOptions, Message, ModelInfo, Reply

Rule = Literal["yes", "no", "longest"]


class ReadingOnly:
    """A chat model that never looks: it always says the same, or takes the longest choice.

    Args:
        rule: ``yes``, ``no``, or ``longest``: of choices the longest, in characters; as a reply "yes".
    """

    name: ClassVar[str] = "reading_only"
    info: ClassVar[ModelInfo] = ModelInfo("Reading only", kind="baseline", licence="Apache-2.0")
    capabilities: ClassVar[frozenset[str]] = frozenset({"reply", "choose", "pictures", "several_pictures"})

    def __init__(self, *, rule: Rule = "yes") -> None:
        self.rule = rule

    def fingerprint(self) -> str:
        """Depends on the rule."""
        return f"reading-only-1-{self.rule}"

    def reply(
        self, conversations: Sequence[Sequence[Message]], options: GenerationOptions | None = None
    ) -> list[Reply]:
        """Return the same word for every conversation."""
        del options
        return [Reply("No" if self.rule == "no" else "Yes") for _ in conversations]

    def choose(
        self, conversations: Sequence[Sequence[Message]], choices: Sequence[Sequence[str]]
    ) -> list[NDArray[np.floating[Any]]]:
        """Return log-probabilities that are shared out among the choices that the rule takes; others get 1e-6."""
        return [self._shares(own) for _, own in zip(conversations, choices, strict=True)]

    def _shares(self, choices: Sequence[str]) -> NDArray[np.floating[Any]]:
        if self.rule == "longest":
            most = max(len(choice) for choice in choices)
            taken = np.array([len(choice) == most for choice in choices])
        else:
            taken = np.array([choice.strip().casefold().startswith(self.rule) for choice in choices])
        if not taken.any():
            taken[:] = True
        shares = np.where(taken, 1 / taken.sum(), 1e-6)
        return np.asarray(np.log(shares / shares.sum()))
