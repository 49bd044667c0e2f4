"""MultiViz (Liang et al. 2023), its cross-modal part: the gradient by the image of the gradient by the words.

Each word is scored by its embedding times the gradient of the output by it; the heat map is the gradient by the image
of the sum of absolute scores. Where nothing multiplies image and text, the map is exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from medground.explainers.base import Attribution, Pool, Table, gradients

if TYPE_CHECKING:
    from torch import Tensor


class MultiViz:
    """Second-order gradient maps, one value a pixel, from one forward and two backward passes.

    Args:
        output: ``sum`` of all logits, as the published code runs; ``chosen`` is the explained answer's, a branch
            which the published code cannot run.
        words: positions of the words to score; None: all.
        pool_cells: give one value a cell (the sum of its pixels) instead of one a pixel.
    """

    name: ClassVar[str] = "multiviz"

    def __init__(
        self,
        output: Literal["sum", "chosen"] = "sum",
        words: tuple[int, ...] | None = None,
        pool_cells: bool = False,
    ) -> None:
        self.output, self.words, self.pool_cells = output, words, pool_cells

    def calls(self, words: int, cells: int, pool: int) -> int:  # noqa: ARG002  # the contract of all explainers
        """See :class:`medground.explainers.base.Local`; a backward pass counts as a call."""
        return 3

    def explain(self, pool: Pool, index: int) -> Attribution:
        """See :class:`medground.explainers.base.Local`.

        Raises:
            ModelError: the model gives no gradients.
        """
        import torch

        example, target = pool.examples[index], pool.predicted(index)
        model = gradients(pool.asker.model)
        image = torch.from_numpy(example.image.copy()).requires_grad_(True)
        embedded = model.embed(example.question).detach().requires_grad_(True)

        def out(image: Tensor, words: Tensor) -> Tensor:
            logits = model.answer_embedded(image, example.question, words)
            return logits.sum() if self.output == "sum" else logits[target]

        with _one_thread():
            scores, gradient = second_order(out, image, embedded, self.words)
        pool.asker.calls += 3
        heat = np.abs(gradient).sum(-1)
        if self.pool_cells:
            side = heat.shape[0] // pool.grid
            heat = heat.reshape(pool.grid, side, pool.grid, side).sum((1, 3))
        return Attribution(image=heat, text=np.abs(scores), target=target, calls=3)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch on one thread: for a single example, sharing operations costs more than it saves."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def second_order(
    out: Callable[[Any, Any], Tensor], image: Tensor, words: Tensor, chosen: Sequence[int] | None = None
) -> tuple[Table, Table]:
    """Return the score of every word and the gradient by the image of the sum of their absolute values.

    Args:
        out: image and words to one number, twice differentiable.
        image: any shape, requires a gradient.
        words: ``(words, width)``, requires a gradient.
        chosen: positions that enter the sum; None: all.
    """
    import torch

    (by_words,) = torch.autograd.grad(out(image, words), words, create_graph=True)
    scores = (words * by_words).sum(1)
    picked = scores if chosen is None else scores[list(chosen)]
    total = picked.abs().sum()
    if total.requires_grad:
        (by_image,) = torch.autograd.grad(total, image, allow_unused=True, materialize_grads=True)
    else:
        by_image = torch.zeros_like(image)
    return scores.detach().double().numpy(), by_image.double().numpy()
