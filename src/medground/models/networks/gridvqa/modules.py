"""The network of the second edition: modules that are learnt, wired as the grammar goes.

The wiring is given: words are dealt into slots (a target and up to four relations a side), by their order alone. What
is learnt, from answers and grounded cells:

* what a cell looks like (a small convolutional stem), and what a word means for it: an attribute only rules cells out;
* where a direction points: how a place beside another is scored, from the signs of their offsets;
* whether relations matter at all: how much support a cell needs from its anchors. The shortcut model learns that none
  is needed;
* what the first word asks for, and how sharply counts become answers.

Nothing depends on absolute places, so one set of weights serves any grid. The count is the expected number of cells
that fit their description and stand where every relation wants them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from medground.models.networks.gridvqa import slots, tokens
from medground.models.networks.gridvqa.network import FORMS, MOST, PATCH

ATTRIBUTE, DIRECTION, HEAD = (slots.USES.index(use) for use in ("attribute", "direction", "head"))
OFFSETS = 5
STEEP = 6.0
"""How steeply support opens a region at first; what it takes is learnt."""


@dataclass(frozen=True)
class Size:
    """Widths of word embeddings and cells, and channels of the stem."""

    width: int = 48
    channels: int = 16


class Output(NamedTuple):
    """What the network says and how it came to it.

    Attributes:
        fits: ``(N, slots, cells)`` logits: the cell fits the slot's description.
        inside: ``(N, sides, cells)`` share of a target in each cell, 0 to 1.
        form: ``(N, 3)`` logits of the form.
        answers: ``(N, 20)`` log-probabilities.
    """

    fits: Tensor
    inside: Tensor
    form: Tensor
    answers: Tensor


class ModuleNet(nn.Module):
    """Cells and words in, grounded cells and answers out."""

    def __init__(self, size: Size = Size()) -> None:
        super().__init__()
        width = size.width
        self.stem = nn.Sequential(nn.Conv2d(3, size.channels, 4, 4), nn.GELU(), nn.Conv2d(size.channels, width, 4, 4))
        self.word = nn.Embedding(tokens.SIZE, width)
        self.look = nn.Linear(width, width)
        self.thing = nn.Linear(width, 1)
        self.point = nn.Linear(width, OFFSETS)
        self.need = nn.Parameter(torch.tensor([1.0, 0.5]))
        self.ask = nn.Linear(width, len(FORMS))
        self.sharp = nn.Parameter(torch.tensor([2.0, 2.0]))
        self.prior = nn.Parameter(torch.zeros(MOST + 1))

    def see(self, images: Tensor, grid: int) -> Tensor:
        """Return one token a cell, ``(N, cells, width)``, from ``(N, 3, H, W)`` in [0, 1] by area means."""
        side = grid * PATCH
        if images.shape[-2:] != (side, side):
            images = functional.adaptive_avg_pool2d(images, side)
        return self.stem(images * 2 - 1).flatten(2).transpose(1, 2)  # type: ignore[no-any-return]  # Any

    def forward(self, cells: Tensor, words: Tensor, codes: Tensor) -> Output:
        """Answer.

        Args:
            cells: ``(N, cells, width)`` from :meth:`see`.
            words: ``(N, L, width)`` embeddings of the words.
            codes: ``(N, L, 3)`` from :func:`medground.models.networks.gridvqa.slots.batch`.
        """
        described, pointed, told = _slots(words, codes)
        # An attribute can only rule out: what it says is at most zero for every cell.
        looks = functional.gelu(cells)
        clash = torch.einsum("ncw,nlw->nlc", self.look(looks), words)
        ruled = torch.einsum("nls,nlc->nsc", described, -functional.softplus(clash))
        fits = ruled + self.thing(looks).transpose(1, 2)
        region = self._region(fits, torch.einsum("nls,nlw->nsw", pointed, words), told, cells.shape[1])
        chance = fits.sigmoid()
        inside = torch.stack(
            [
                chance[:, first] * region[:, first + 1 : first + 1 + slots.RELATIONS].prod(1)
                for first in range(0, slots.SLOTS, 1 + slots.RELATIONS)
            ],
            1,
        )
        form = self.ask(torch.einsum("nl,nlw->nw", torch.eq(codes[..., 2], HEAD).to(words.dtype), words))
        return Output(fits, inside, form, self._answers(inside, form))

    def _region(self, fits: Tensor, direction: Tensor, told: Tensor, cells: int) -> Tensor:
        """Return how far every cell stands where each relation wants it, ``(N, slots, cells)``; 1 without one."""
        offsets = _offsets(round(cells**0.5)).to(fits)
        beside = torch.einsum("abf,nsf->nsab", offsets, self.point(direction)).sigmoid()
        support = torch.einsum("nsab,nsb->nsa", beside, fits.sigmoid())
        much, least = self.need
        return torch.where(told[..., None], (STEEP * (much * support - least)).sigmoid(), torch.ones_like(support))

    def _answers(self, inside: Tensor, form: Tensor) -> Tensor:
        """Return log-probabilities: the form's, plus those of the answers within it."""
        first, second = inside.sum(-1).unbind(-1)
        steps = torch.arange(MOST + 1, device=inside.device, dtype=inside.dtype)
        near, far = self.sharp.exp()
        count = self.prior - torch.log1p(near * (steps - first.clamp(max=float(MOST))[:, None]) ** 2)
        exists = far * torch.tanh(2 * first - 1)
        more = far * torch.tanh(2 * (first - second) - 1)
        log_form = form.log_softmax(-1)
        sign = functional.logsigmoid
        yes = torch.logaddexp(log_form[:, 1] + sign(exists), log_form[:, 2] + sign(more))
        no = torch.logaddexp(log_form[:, 1] + sign(-exists), log_form[:, 2] + sign(-more))
        return torch.cat([log_form[:, :1] + count.log_softmax(-1), yes[:, None], no[:, None]], 1)


def _slots(words: Tensor, codes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return which word describes and which points in which slot, ``(N, L, slots)``, and which slots are relations."""
    slot = functional.one_hot(codes[..., 1], slots.SLOTS)
    described = slot * torch.eq(codes[..., 2], ATTRIBUTE)[..., None]
    pointed = slot * torch.eq(codes[..., 2], DIRECTION)[..., None]
    told = described.any(1) & pointed.any(1)
    return described.to(words.dtype), pointed.to(words.dtype), told


@lru_cache(maxsize=16)
def _offsets(grid: int) -> Tensor:
    """Return for every pair of cells the signs of their offsets, these squared, and one: ``(cells, cells, 5)``."""
    with torch.inference_mode(False):  # kept for later calls, which may want gradients
        y, x = (part.float() for part in torch.meshgrid(torch.arange(grid), torch.arange(grid), indexing="ij"))
        dx, dy = (torch.sign(part.reshape(-1, 1) - part.reshape(1, -1)) for part in (x, y))
        return torch.stack([dx, dy, dx**2, dy**2, torch.ones_like(dx)], -1)
