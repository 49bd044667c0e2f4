"""The rule executor: reads the question, sees the cells, obeys every relation. Exact, and nothing is learnt."""

from __future__ import annotations

from typing import ClassVar

from medground.models.base import ModelInfo
from medground.models.networks.gridvqa.analytic import Analytic


class RuleExecutor(Analytic):
    """The reasoning half of the analytic pair of GridVQA-X.

    Args:
        grid: cells a side.
    """

    name: ClassVar[str] = "gridvqa_rule"
    info: ClassVar[ModelInfo] = ModelInfo(
        "Rule executor", kind="baseline", licence="Apache-2.0", unverified="analytic: not a trained model"
    )

    def __init__(self, grid: int = 5) -> None:
        super().__init__(grid, relations=True)

    def fingerprint(self) -> str:
        """Depends on the grid."""
        return f"gridvqa-rule-2-{self.grid}"
