"""EMAP (Hessel & Lee 2020): how much of the answers no additive function of image and text can give.

The published synergy in percent has no printed formula; ours is the L1 norm of what the projection leaves, as a share
of it and the norm of the projection (see ``metrics.interactions.projection_synergy``). The drop in accuracy from the
model to its projection, EMAP's own figure, is among the extras.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from medground.explainers.base import Pool, Scores
from medground.metrics.interactions import projection_synergy


class Emap:
    """The share of the answers that no additive function of image and text gives, in percent.

    Args:
        centred: subtract the mean over answers from all logits first; a softmax does not see it.
        norm: 1 or 2, over answers.
    """

    name: ClassVar[str] = "emap"

    def __init__(self, centred: bool = True, norm: int = 1) -> None:
        self.centred, self.norm = centred, norm

    def calls(self, words: int, cells: int, pool: int) -> int:  # noqa: ARG002  # the contract of all explainers
        """See :class:`medground.explainers.base.Global`."""
        return 0

    def score(self, pool: Pool) -> Scores:
        """Return percent an example; ``overall`` is their mean."""
        synergy = projection_synergy(pool.logits, centred=self.centred, norm=self.norm)
        defined = synergy.percent[~np.isnan(synergy.percent)]
        return Scores(
            each=synergy.percent,
            overall=float(defined.mean()) if defined.size else float("nan"),
            extras={
                "residual": synergy.residual,
                "additive": synergy.additive,
                "projected_answer": synergy.projection.argmax(1),
            },
        )
