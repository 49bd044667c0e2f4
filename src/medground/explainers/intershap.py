"""InterSHAP (Wenderoth et al. 2025): the interaction of two players, image and text, in a probability.

It works on probabilities, so it is zero for a model whose probabilities are additive; one that is additive in its
logits still gets about 0.25 from the softmax.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medground.explainers.base import Pool, Scores
from medground.metrics.interactions import modality_interaction


class InterShap:
    """The share of the interaction between image and text in the probability of the answer, 0..1.

    Backgrounds are all other samples of the pool: the values come from its matrix, without further calls.

    Args:
        all_pairs: the empty coalition is the mean over all pairs of the pool instead of its matched pairs.
    """

    name: ClassVar[str] = "intershap"

    def __init__(self, all_pairs: bool = False) -> None:
        self.all_pairs = all_pairs

    def calls(self, words: int, cells: int, pool: int) -> int:  # noqa: ARG002  # the contract of all explainers
        """See :class:`medground.explainers.base.Global`."""
        return 0

    def score(self, pool: Pool) -> Scores:
        """Return the local share an example, 0..1; ``overall`` is the headline: matrices averaged before the share."""
        shifted = np.exp(pool.logits - pool.logits.max(2, keepdims=True))
        interaction = modality_interaction(shifted / shifted.sum(2, keepdims=True), all_pairs=self.all_pairs)
        return Scores(each=interaction.local, overall=interaction.overall, extras={"matrices": interaction.matrices})
