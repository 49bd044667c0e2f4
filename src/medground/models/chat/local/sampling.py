"""Sampling whose result for one conversation does not depend on the others of its batch.

The Gumbel-max trick: adding independent Gumbel noise to log-probabilities and taking the greatest is drawing from
them. Each conversation has a generator of its own, seeded by the seed, the sample's number and what was said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from medground.models.base import GenerationOptions, Message, conversation_hash


def generators(conversations: Sequence[Sequence[Message]], options: GenerationOptions) -> list[torch.Generator]:
    """Return one seeded generator a conversation."""
    streams = []
    for conversation in conversations:
        told = f"{options.seed}:{options.sample}:{conversation_hash(conversation)}"
        seed = int.from_bytes(hashlib.sha256(told.encode()).digest()[:7], "big")
        streams.append(torch.Generator().manual_seed(seed))
    return streams


class GumbelDraw:
    """A logits processor after which the likeliest token is a draw at a temperature, from the top share ``top_p``.

    Args:
        options: temperature and top_p.
        draws: one generator a row.
    """

    def __init__(self, options: GenerationOptions, draws: Sequence[torch.Generator]) -> None:
        self.options, self.draws = options, draws

    def __call__(self, _ids: Tensor, scores: Tensor) -> Tensor:
        """Return ``(N, vocabulary)`` scores with noise."""
        logs = (scores.float() / self.options.temperature).log_softmax(-1)
        if self.options.top_p < 1:
            ordered, order = logs.sort(descending=True, stable=True)
            before = ordered.exp().cumsum(-1) - ordered.exp()
            logs = logs.scatter(-1, order, ordered.masked_fill(before >= self.options.top_p, -torch.inf))
        width = logs.shape[-1]
        uniform = torch.stack([torch.rand(width, generator=draw, dtype=torch.float64) for draw in self.draws])
        noise = -(-uniform.clamp_min(1e-300).log()).log()
        return logs + noise.to(logs.device, logs.dtype)


class StopTexts:
    """A stopping rule: a row ends once one of the texts stands in what was generated.

    Args:
        texts: that end a reply.
        decode: from ids to text.
        width: of the prompts, in tokens.
    """

    def __init__(self, texts: Sequence[str], decode: Callable[[list[int]], str], width: int) -> None:
        self.texts, self.decode, self.width = texts, decode, width

    def __call__(self, ids: Tensor, _scores: Tensor, **_: object) -> Tensor:
        """Return ``(N,)``: which rows have ended."""
        written = [self.decode(row) for row in ids[:, self.width :].tolist()]
        ended = [any(text in words for text in self.texts) for words in written]
        return torch.tensor(ended, device=ids.device)
