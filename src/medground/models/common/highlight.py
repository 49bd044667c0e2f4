"""Highlighting: a bias on the attention's keys, in the vision tower and in the language model.

The scores before the softmax become ``h + beta m``, with m 1 on highlighted keys and 0 elsewhere, alike for every
query, head and layer. LobA (arXiv 2505.00744, equations 4 and 5) and Prompt Highlighter (arXiv 2312.04302) do this;
they mean different things by "2": an additive bias of 2 raises the odds of a highlighted key by e squared, a weight of
2 (a bias of ln 2) by two. :class:`Strength` names the reading.

A bias is active inside :func:`highlighted` and nowhere else, so that no run can leave one behind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import torch
from torch import Tensor

from medground.errors import ConfigError

Reading = Literal["additive", "weight"]

ATTENTION: Final = "medground_highlight"
"""Name of the attention function in transformers' registry."""


@dataclass(frozen=True)
class Strength:
    """How strongly highlighted keys are favoured.

    Attributes:
        value: beta of the paper.
        reading: ``additive``: ``value`` is added to the scores; ``weight``: its logarithm, so odds rise by ``value``.

    Raises:
        ConfigError: a weight that is not above 0, or a number that is not finite.
    """

    value: float
    reading: Reading = "additive"

    def __post_init__(self) -> None:
        if not math.isfinite(self.value) or (self.reading == "weight" and self.value <= 0):
            raise ConfigError(
                "attention cannot be highlighted like that",
                where="beta",
                expected="a finite number; under the reading `weight` one above 0",
                got=self.value,
            )

    @property
    def bias(self) -> float:
        """What is added to the scores of highlighted keys."""
        return math.log(self.value) if self.reading == "weight" else self.value

    def record(self) -> dict[str, Any]:
        """Return what a run's record says about it."""
        return {"value": self.value, "reading": self.reading, "bias": self.bias, "odds": math.exp(self.bias)}


@dataclass(frozen=True)
class Highlight:
    """Biases of one forward pass; None: none.

    Attributes:
        vision: ``(N, keys)``, added to the scores in every layer of the vision tower; its classes of keys are the
            tower's own tokens, a class token included.
        language: ``(N, keys)`` over the prompt's tokens; tokens that are generated later have none.
        free_rows: query rows of the vision tower that get no bias (0 for the class token's).
    """

    vision: Tensor | None = None
    language: Tensor | None = None
    free_rows: tuple[int, ...] = ()
    _last: list[tuple[Any, ...]] = field(default_factory=list, repr=False, compare=False)

    def mask(self, given: Tensor | None, query: Tensor, keys: int, *, causal: bool) -> Tensor:
        """Return the additive mask of one layer, biases included, ``(N, 1, Q, K)``; layers that are alike share it.

        Args:
            given: the layer's own mask, bool or additive, or None.
            query: ``(N, H, Q, D)``.
            keys: how many.
            causal: whether it is the language model's layer.
        """
        about = (query.shape[2], keys, causal, query.dtype)
        if self._last and self._last[0][0] is given and self._last[0][1] == about:
            kept: Tensor = self._last[0][2]
            return kept
        bias = self.language if causal else self.vision
        assert bias is not None
        bias = torch.nn.functional.pad(bias.to(query.dtype), (0, keys - bias.shape[1]))[:, None, None, :]
        bias = bias.expand(-1, 1, query.shape[2], -1)
        if not causal and self.free_rows:
            bias = bias.clone()
            bias[:, :, list(self.free_rows)] = 0
        made = _additive(given, query, keys, causal=causal) + bias
        self._last[:] = [(given, about, made)]
        return made


NO_HIGHLIGHT: Final = Highlight()
_ACTIVE: ContextVar[Highlight] = ContextVar("medground_highlight", default=NO_HIGHLIGHT)


def active() -> Highlight:
    """Return the biases of the present forward pass."""
    return _ACTIVE.get()


@contextmanager
def highlighted(highlight: Highlight) -> Iterator[None]:
    """Make a highlight active for the calls inside."""
    token = _ACTIVE.set(highlight)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


_RECORD: ContextVar[list[Tensor] | None] = ContextVar("medground_recorded_attention", default=None)


@contextmanager
def recording() -> Iterator[list[Tensor]]:
    """Collect where the language model's last token looks: ``(N, H, keys)`` a layer and forward pass, in order."""
    rows: list[Tensor] = []
    token = _RECORD.set(rows)
    try:
        yield rows
    finally:
        _RECORD.reset(token)


def _last_row(query: Tensor, key: Tensor, mask: Tensor | None, scaling: float | None) -> Tensor:
    """Return the attention weights of the last query, ``(N, H, keys)``."""
    keys = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = (query[:, :, -1:] @ keys.transpose(2, 3)) * scale
    # The last token of a causal batch sees everything, so a missing mask hides nothing from it.
    added = 0 if mask is None else _additive(mask, query, key.shape[2], causal=False)[:, :, -1:]
    return (scores + added).softmax(-1)[:, :, 0]


def biased_softmax(scores: Tensor, marked: Tensor, bias: float) -> Tensor:
    """Return attention weights ``softmax(h + beta m)``.

    Args:
        scores: scaled scores ``(N, H, Q, K)``.
        marked: ``(N, K)``, 1 on highlighted keys.
        bias: beta, additive.
    """
    return (scores + bias * marked[:, None, None, :].to(scores.dtype)).softmax(-1)


def expected_mass(plain: Tensor, bias: float) -> Tensor:
    """Return the attention on highlighted keys in closed form, from what it is without the bias.

    ``w s / (1 + (w - 1) s)`` with ``w = exp(beta)``: odds rise by exactly ``w``.
    """
    weight = math.exp(bias)
    return weight * plain / (1 + (weight - 1) * plain)


def _additive(attention_mask: Tensor | None, query: Tensor, keys: int, *, causal: bool) -> Tensor:
    """Return the mask as an additive one ``(N or 1, 1, Q, K)``: 0 or minus infinity."""
    rows = query.shape[2]
    if attention_mask is None:
        allowed = torch.ones(rows, keys, dtype=torch.bool, device=query.device)
        # Transformers passes no mask for a pure causal batch: the causal part is built here.
        allowed = allowed.tril(keys - rows) if causal else allowed
        attention_mask = allowed[None, None]
    attention_mask = attention_mask[..., :keys]
    if attention_mask.dtype == torch.bool:
        zero = torch.zeros((), dtype=query.dtype, device=query.device)
        return torch.where(attention_mask, zero, torch.finfo(query.dtype).min)
    return attention_mask.to(query.dtype)


def attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **more: Any
) -> tuple[Tensor, None]:
    """Attend as transformers' ``sdpa`` does, with the active bias on the keys; without one it is ``sdpa`` itself."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    now, causal = _ACTIVE.get(), bool(getattr(module, "is_causal", False))
    bias = now.language if causal else now.vision
    if bias is not None:
        attention_mask = now.mask(attention_mask, query, key.shape[2], causal=causal)
        more = {**more, "is_causal": False}
    rows = _RECORD.get()
    if causal and rows is not None:
        rows.append(_last_row(query, key, attention_mask, more.get("scaling")))
    out, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **more)
    return out, None


def register() -> None:
    """Make the attention function known to transformers under :data:`ATTENTION`."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(ATTENTION, attention)
    AttentionMaskInterface.register(ATTENTION, sdpa_mask)
