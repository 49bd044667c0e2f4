"""Occlusion (Zeiler and Fergus 2014): hide one cell, or leave out one word, and see what the answer loses.

The plainest question of all, and one call a unit: as many as the picture has cells and the question words.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from medground.explainers.base import Attribution, Fill, Pool, Table, hide_cells, hide_words

Output = Literal["logit", "log_probability", "probability"]


class Occlusion:
    """The loss of the explained answer, cell by cell and word by word; what speaks against it counts as nothing.

    Args:
        fill: what a hidden cell looks like: white is an empty one of GridVQA-X.
        output: which figure of the answer is watched.
    """

    name: ClassVar[str] = "occlusion"

    def __init__(self, fill: Fill = "white", output: Output = "logit") -> None:
        self.fill, self.output = fill, output

    def calls(self, words: int, cells: int, pool: int) -> int:  # noqa: ARG002  # the contract of all explainers
        """See :class:`medground.explainers.base.Local`."""
        return words + cells

    def explain(self, pool: Pool, index: int) -> Attribution:
        """See :class:`medground.explainers.base.Local`."""
        example, target = pool.examples[index], pool.predicted(index)
        cells, words = pool.grid**2, len(example.words)
        hidden = hide_cells(example.image, ~np.eye(cells, dtype=bool), self.fill)
        shortened = hide_words(example.question, ~np.eye(words, dtype=bool))
        # The first picture and the first question are whole.
        pairs = [(1 + cell, 0) for cell in range(cells)] + [(0, 1 + word) for word in range(words)]
        logits = pool.asker.pairs(
            np.concatenate([example.image[None], hidden]), [example.question, *shortened], np.array(pairs)
        )
        loss = np.maximum(watched(pool.own[index], target, self.output) - watched(logits, target, self.output), 0)
        return Attribution(
            image=loss[:cells].reshape(pool.grid, pool.grid), text=loss[cells:], target=target, calls=len(pairs)
        )


def watched(logits: Table, target: int, output: Output) -> Table:
    """Return a figure of one answer for logits ``(..., answers)``.

    Example:
        >>> watched(np.array([0.0, 0.0]), 1, "probability").item()
        0.5
    """
    if output == "logit":
        return np.asarray(logits[..., target])
    shifted = logits - logits.max(-1, keepdims=True)
    logs = shifted[..., target] - np.log(np.exp(shifted).sum(-1))
    return np.asarray(logs if output == "log_probability" else np.exp(logs))
