"""The word counter: counts what fits the target's words anywhere. No direction and no anchor changes its answer."""

from __future__ import annotations

from typing import ClassVar

from medground.models.base import ModelInfo
from medground.models.networks.gridvqa.analytic import Analytic


class WordCounter(Analytic):
    """The shortcut half of the analytic pair of GridVQA-X.

    Args:
        grid: cells a side.
    """

    name: ClassVar[str] = "gridvqa_counter"
    info: ClassVar[ModelInfo] = ModelInfo(
        "Word counter", kind="baseline", licence="Apache-2.0", unverified="analytic: not a trained model"
    )

    def __init__(self, grid: int = 5) -> None:
        super().__init__(grid, relations=False)

    def fingerprint(self) -> str:
        """Depends on the grid."""
        return f"gridvqa-counter-2-{self.grid}"
