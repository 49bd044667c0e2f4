"""DIME (Lyu et al. 2022): splits an answer into what image and text say alone and what they say together.

The unimodal part of an output is its additive projection over a background of N samples; the multimodal part is the
rest. LIME explains each part separately, over cells of the image and words of the text.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from medground.explainers._surrogate import Surrogate, distances, fit, kernel
from medground.explainers.base import Attribution, Fill, Pool, Table, hide_cells, hide_words
from medground.metrics.interactions import unimodal_part

_WIDTH, _TEXT_WIDTH, _TEXT_SCALE = 0.25, 25.0, 100.0


class Dime:
    """LIME maps of what image and text say together; those of what each says alone are among the extras.

    Args:
        background: samples of the pool behind the projection, the instance included.
        perturbations: perturbed versions a modality, the original included (published code: 100).
        fill: colour of hidden cells (published code: black).
        multi: ``rest`` is the paper's multimodal part; ``full`` explains the whole output in its place, as the
            published code does.
        features: units a surrogate keeps (published code: 10 words); None: all.
        merge_words: whether equal words stand or fall together, as the library's default has it.
        seed: of background and perturbations.
    """

    name: ClassVar[str] = "dime"

    def __init__(
        self,
        background: int = 8,
        perturbations: int = 64,
        fill: Fill = "black",
        multi: Literal["rest", "full"] = "rest",
        features: int | None = None,
        merge_words: bool = False,
        seed: int = 0,
    ) -> None:
        self.background, self.perturbations, self.fill = background, perturbations, fill
        self.multi, self.features, self.merge_words, self.seed = multi, features, merge_words, seed

    def calls(self, words: int, cells: int, pool: int) -> int:  # noqa: ARG002  # the contract of all explainers
        """See :class:`medground.explainers.base.Local`."""
        patterns = self.perturbations + min(self.perturbations, 1 << words)
        return patterns * min(self.background, pool)

    def explain(self, pool: Pool, index: int) -> Attribution:
        """See :class:`medground.explainers.base.Local`."""
        full, rng = pool.logits, pool.rng(index, self.seed, self.name)
        target, chosen = pool.predicted(index), self._background(len(pool), index, rng)
        logits = full[np.ix_(chosen, chosen)][..., target, None]
        spent = pool.asker.calls
        example, instance = pool.examples[index], chosen.index(index)
        cells_on = _patterns_of_cells(self.perturbations, pool.grid**2, rng)
        words_on = _patterns_of_words(self.perturbations, example.words, rng, self.merge_words)
        images = pool.asker.all_pairs(
            hide_cells(example.image, cells_on, self.fill), [pool.questions[j] for j in chosen]
        )
        texts = _ask_texts(pool, chosen, hide_words(example.question, words_on))
        visual = self._parts(logits, instance, images[..., target, None], 0)
        textual = self._parts(logits, instance, texts[..., target, None], 1)
        image_fits = [self._fit(cells_on, part, _WIDTH, 1.0) for part in visual]
        text_fits = [self._fit(words_on, part, _TEXT_WIDTH, _TEXT_SCALE) for part in textual]
        shape = (pool.grid, pool.grid)
        return Attribution(
            image=image_fits[1].weights.reshape(shape),
            text=text_fits[1].weights,
            target=target,
            calls=pool.asker.calls - spent,
            extras={
                "unimodal_image": image_fits[0].weights.reshape(shape),
                "unimodal_text": text_fits[0].weights,
                "score_image": image_fits[1].score,
                "score_text": text_fits[1].score,
            },
        )

    def _background(self, n: int, index: int, rng: np.random.Generator) -> list[int]:
        """Return the instance and other positions of the pool, in order."""
        others = [i for i in range(n) if i != index]
        drawn = rng.permutation(others)[: self.background - 1].tolist() if others else []
        return sorted([index, *drawn])

    def _parts(self, logits: Table, instance: int, replaced: Table, axis: int) -> tuple[Table, Table]:
        """Return the unimodal and the multimodal part of every perturbed version."""
        unimodal = unimodal_part(logits, instance, replaced, axis=axis)[:, 0]
        whole = replaced[:, instance, 0]
        return unimodal, whole if self.multi == "full" else whole - unimodal

    def _fit(self, on: NDArray[np.bool_], outputs: Table, width: float, scale: float) -> Surrogate:
        return fit(on, outputs, kernel(distances(on, scale), width), features=self.features)


def _ask_texts(pool: Pool, chosen: list[int], texts: list[str]) -> Table:
    """Return ``(texts, samples, answers)``; equal texts are asked once."""
    unique = sorted(set(texts))
    logits = pool.asker.all_pairs(pool.images[chosen], unique)
    return logits[:, [unique.index(text) for text in texts]].swapaxes(0, 1)


def _patterns_of_cells(n: int, cells: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return n patterns, each cell present by a coin; the first shows all."""
    on = rng.random((n, cells)) < 0.5
    on[0] = True
    return on


def _patterns_of_words(n: int, words: list[str], rng: np.random.Generator, merged: bool) -> NDArray[np.bool_]:
    """Return n patterns, each without a drawn number of drawn words; the first is whole."""
    names = [word if merged else f"{i}" for i, word in enumerate(words)]
    units = list(dict.fromkeys(names))
    on = np.ones((n, len(units)), bool)
    for row in on[1:]:
        row[rng.permutation(len(units))[: rng.integers(1, len(units) + 1)]] = False
    return on[:, [units.index(name) for name in names]]
