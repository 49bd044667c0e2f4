"""An explainer of your own: one class, and GridVQA-X says whether it tells reasoning from a shortcut."""

import numpy as np

from medground.explainers.base import Attribution, hide_cells, hide_words


class Occlusion:
    """What the answer loses when one cell is painted over, or one word removed.

    Args:
        fill: grey, black or white.
    """

    name = "occlusion"

    def __init__(self, fill: str = "white") -> None:
        self.fill = fill

    def calls(self, words: int, cells: int, *_: int) -> int:
        """Model calls of one explanation at most: they are planned before the run starts."""
        return cells + words

    def explain(self, pool, index: int) -> Attribution:
        """Explain the model's own answer to example ``index`` of the pool."""
        example, answer = pool.examples[index], pool.predicted(index)
        n_cells, n_words = pool.grid**2, len(example.words)
        images = hide_cells(example.image, ~np.eye(n_cells, dtype=bool), self.fill)
        texts = hide_words(example.question, ~np.eye(n_words, dtype=bool))
        without_cell = pool.asker.all_pairs(images, [example.question])[:, 0, answer]
        without_word = pool.asker.all_pairs(example.image[None], texts)[0, :, answer]
        whole = pool.own[index, answer]
        return Attribution(
            image=(whole - without_cell).reshape(pool.grid, pool.grid),
            text=whole - without_word,
            target=answer,
            calls=n_cells + n_words,
        )
