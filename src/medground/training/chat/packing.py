"""Several questions about a picture in one sequence: each sees the picture and itself, none the others.

Nine packed questions cost little more than one, for the picture's 196 tokens are seen once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from medground.models.networks.chat.network import IMAGE_TOKENS
from medground.models.networks.chat.tokens import BOS, IMAGE, PAD, SEG
from medground.training.chat.sampling import Turn

BUDGET: Final = 176
"""Tokens of questions a picture; what does not fit is left out."""

_FIRST: Final = IMAGE_TOKENS + 1
_PICTURE, _PADDING = -1, -2


class Packed(NamedTuple):
    """Sequences of a batch.

    Attributes:
        ids: ``(N, T)``.
        mask: what may be attended, ``(N, 1, T, T)``.
        positions: ``(N, T)``; every block starts where the picture ends.
        labels: ``(N, T)``, the token itself where it is to be learnt, else -100.
        seg: ``(M, 3)``: row, place of ``<SEG>``, and its mask's number.
        questions: how many.
    """

    ids: Tensor
    mask: Tensor
    positions: Tensor
    labels: Tensor
    seg: Tensor
    questions: int


def blocks(turns: Sequence[Turn], rng: np.random.Generator | None = None, follow: float = 0.0) -> list[list[Turn]]:
    """Group questions into blocks: a block of several is a conversation.

    Args:
        turns: in the order asked.
        rng: where blocks are joined at random.
        follow: chance that a question goes on with the conversation before it.
    """
    grouped: list[list[Turn]] = []
    for turn in turns:
        if grouped and rng is not None and len(grouped[-1]) < 3 and rng.random() < follow:
            grouped[-1].append(turn)
        else:
            grouped.append([turn])
    return grouped


def pack(lists: Sequence[Sequence[Sequence[Turn]]], budget: int = BUDGET) -> Packed:
    """Pack the blocks of every picture into one sequence.

    Args:
        lists: pictures, each with its blocks.
        budget: tokens of questions a picture.
    """
    rows = [_row(blocks_, budget) for blocks_ in lists]
    length = _FIRST + max(len(row[0]) for row in rows)
    n = len(rows)
    ids, owner = np.full((n, length), PAD), np.full((n, length), _PADDING)
    positions, labels = np.zeros((n, length), np.int64), np.full((n, length), -100)
    ids[:, 0], ids[:, 1:_FIRST], owner[:, :_FIRST] = BOS, IMAGE, _PICTURE
    positions[:, :_FIRST] = np.arange(_FIRST)
    seg: list[tuple[int, int, int]] = []
    for number, (words, owners, places, learnt, masks, _) in enumerate(rows):
        span = slice(_FIRST, _FIRST + len(words))
        ids[number, span], owner[number, span] = words, owners
        positions[number, span], labels[number, span] = places, learnt
        seg += [(number, _FIRST + at, mask) for at, mask in masks]
    order = np.arange(length)
    seen = (order[:, None] >= order) & ((owner[:, None, :] == _PICTURE) | (owner[:, :, None] == owner[:, None, :]))
    seen |= np.eye(length, dtype=bool)
    return Packed(
        torch.from_numpy(ids),
        torch.from_numpy(seen[:, None]),
        torch.from_numpy(positions),
        torch.from_numpy(labels),
        torch.tensor(seg, dtype=torch.long).reshape(-1, 3),
        sum(row[5] for row in rows),
    )


def _row(
    groups: Sequence[Sequence[Turn]], budget: int
) -> tuple[list[int], list[int], list[int], list[int], list[tuple[int, int]], int]:
    """Return ids, block numbers, positions, labels, masks (place, number) and the count of questions of a picture."""
    ids: list[int] = []
    owners: list[int] = []
    places: list[int] = []
    labels: list[int] = []
    masks: list[tuple[int, int]] = []
    block = asked = 0
    for group in groups:
        size = sum(len(turn.prompt) + len(turn.answer) for turn in group)
        if len(ids) + size > budget:
            continue
        places += range(_FIRST, _FIRST + size)
        owners += [block] * size
        for turn in group:
            start = len(ids) + len(turn.prompt)
            masks += [(start + at, turn.mask) for at, token in enumerate(turn.answer) if token == SEG]
            ids += turn.prompt + turn.answer
            labels += [-100] * len(turn.prompt) + turn.answer
        block, asked = block + 1, asked + len(group)
    return ids, owners, places, labels, masks, asked
