"""A small network of the MDETR kind: one joint encoder over cells and words, object queries, a question query.

Where it differs from MDETR, and why:

* one image token a cell, and one object query tied to a cell: no boxes, no matching; grounding is the role of a cell
  (nothing, target of either clause, n-th anchor). On a grid a box says no more than its cell, and costs accuracy.
* the count is read from the grounding: the expected number of targets, compared with every possible count. This
  takes away the bottleneck of counting through one query; accuracy then equals the quality of the grounding.
* words carry how many directions have been read before them, so that a description knows its relation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from medground.models.networks.gridvqa import tokens

GRID, PATCH = 5, 16
SIDE = GRID * PATCH
ROLES = ("none", "target", "second target", "anchor 1", "anchor 2", "anchor 3", "anchor 4")
MOST = 17
ANSWERS = (*(str(n) for n in range(MOST)), f"{MOST}+", "yes", "no")
FORMS = ("count", "exists", "compare")


@dataclass(frozen=True)
class Size:
    """Width, depth and heads of the network."""

    width: int = 64
    layers: int = 4
    heads: int = 4
    hidden: int = 128


class Output(NamedTuple):
    """Logits of the roles ``(N, cells, roles)``, of the form ``(N, 3)`` and log-probabilities of the answers."""

    roles: Tensor
    form: Tensor
    answers: Tensor


class Attention(nn.Module):
    """Multi-head attention of queries over a memory."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.query = nn.Linear(size.width, size.width)
        self.memory = nn.Linear(size.width, 2 * size.width)
        self.out = nn.Linear(size.width, size.width)

    def forward(self, queries: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        """Return ``(N, Q, width)``; ``mask`` ``(N, 1, 1, M)`` is True where the memory may be read."""
        q = self._split(self.query(queries))
        k, v = (self._split(part) for part in self.memory(memory).chunk(2, dim=-1))
        read = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(read.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]  # torch modules return Any

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class Block(nn.Module):
    """A pre-norm transformer layer: attention, then two linear maps."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size.width)
        self.attention = Attention(size)
        self.feed = nn.Sequential(
            nn.LayerNorm(size.width),
            nn.Linear(size.width, size.hidden),
            nn.GELU(),
            nn.Linear(size.hidden, size.width),
        )

    def forward(self, x: Tensor, memory: Tensor | None, mask: Tensor | None) -> Tensor:
        """Return x after one layer; without ``memory`` it attends to itself."""
        queries = self.norm(x)
        x = x + self.attention(queries, queries if memory is None else memory, mask)
        return x + self.feed(x)  # type: ignore[no-any-return]  # torch modules return Any


class GridNet(nn.Module):
    """Cells and words in, roles and answers out."""

    codes: Tensor

    def __init__(self, size: Size = Size()) -> None:
        super().__init__()
        width = size.width
        self.stem = nn.Sequential(nn.Conv2d(3, 24, 4, 4), nn.GELU(), nn.Conv2d(24, width, 4, 4))
        self.place = nn.Linear(4 * GRID, width)
        self.word = nn.Embedding(tokens.SIZE, width)
        self.clause = nn.Embedding(tokens.CLAUSES, width)
        self.side = nn.Embedding(tokens.SIDES, width)
        self.query = nn.Parameter(torch.randn(2, width) * 0.02)
        self.encoder = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.memory = nn.LayerNorm(width)
        self.decoder = Block(size)
        self.last = nn.LayerNorm(width)
        self.role = nn.Linear(width, len(ROLES))
        self.form = nn.Linear(width, len(FORMS))
        self.free = nn.Linear(width, len(ANSWERS))
        self.sharp = nn.Parameter(torch.tensor([2.0, 2.0]))
        nn.init.zeros_(self.free.weight)
        self.register_buffer("codes", _places(), persistent=False)

    def see(self, images: Tensor) -> Tensor:
        """Return one token a cell, ``(N, cells, width)``, from ``(N, 3, H, W)`` in [0, 1] by area means."""
        if images.shape[-2:] != (SIDE, SIDE):
            images = functional.adaptive_avg_pool2d(images, SIDE)
        return self.stem(images * 2 - 1).flatten(2).transpose(1, 2)  # type: ignore[no-any-return]  # Any

    def read(self, codes: Tensor) -> Tensor:
        """Return one token a word, ``(N, L, width)``, from ``(N, L, 3)`` codes."""
        return self.ground(self.word(codes[..., 0]), codes)

    def ground(self, words: Tensor, codes: Tensor) -> Tensor:
        """Add to word embeddings what is known of their positions."""
        return words + self.clause(codes[..., 1]) + self.side(codes[..., 2])  # type: ignore[no-any-return]  # Any

    def forward(self, cells: Tensor, words: Tensor, present: Tensor) -> Output:
        """Answer.

        Args:
            cells: ``(N, cells, width)`` from :meth:`see`.
            words: ``(N, L, width)`` from :meth:`read`.
            present: ``(N, L)`` True where a word stands.
        """
        place = self.place(self.codes)
        x = torch.cat([cells + place, words], 1)
        seen = torch.cat([present.new_ones(len(cells), cells.shape[1]), present], 1)[:, None, None]
        for block in self.encoder:
            x = block(x, None, seen)
        queries = torch.cat([self.query[:1] + place, self.query[1:]]).expand(len(cells), -1, -1)
        y = self.last(self.decoder(queries, self.memory(x), seen))
        roles, form = self.role(y[:, :-1]), self.form(y[:, -1])
        return Output(roles, form, self._answers(roles, form, self.free(y[:, -1])))

    def _answers(self, roles: Tensor, form: Tensor, free: Tensor) -> Tensor:
        """Return log-probabilities: the form's, plus those of the answers within it."""
        first, second = roles.softmax(-1)[..., 1:3].sum(1).unbind(-1)
        steps = torch.arange(MOST + 1, device=roles.device, dtype=roles.dtype)
        near, far = self.sharp.exp()
        # Logarithm and tanh keep logits within the range of a usual classifier, however wrong a count is.
        count = free[:, : MOST + 1] - torch.log1p(near * (steps - first[:, None]) ** 2)
        lean = free[:, MOST + 1] - free[:, MOST + 2]
        exists = far * torch.tanh(2 * first - 1) + lean
        more = far * torch.tanh(2 * (first - second) - 1) + lean
        log_form = form.log_softmax(-1)
        yes = torch.logaddexp(
            log_form[:, 1] + functional.logsigmoid(exists), log_form[:, 2] + functional.logsigmoid(more)
        )
        no = torch.logaddexp(
            log_form[:, 1] + functional.logsigmoid(-exists), log_form[:, 2] + functional.logsigmoid(-more)
        )
        return torch.cat([log_form[:, :1] + count.log_softmax(-1), yes[:, None], no[:, None]], 1)


def _places() -> Tensor:
    """Return row and column of every cell as one-hot and thermometer codes, ``(cells, 4 * GRID)``."""
    hot = torch.eye(GRID)
    step = torch.tril(torch.ones(GRID, GRID))
    axis = torch.cat([hot, step], 1)
    return torch.stack([torch.cat([axis[y], axis[x]]) for y in range(GRID) for x in range(GRID)])
