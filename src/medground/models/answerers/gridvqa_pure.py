"""M_pure: the small network trained on D_pure, where only obeying every relation pays."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from medground.models.base import ModelInfo
from medground.models.networks.gridvqa.answerer import Edition, NetAnswerer


class PureNet(NetAnswerer):
    """The reasoning half of the trained pair of GridVQA-X.

    Args:
        weights: another ``.safetensors`` file of the same network; None: the shipped one.
        device: as torch names it.
        batch: pairs a forward pass; few fit the processor's cache, and are faster a pair.
        edition: ``second``: right about every coalition of objects and words; ``first``: that of earlier releases, a
            transformer that is right about whole scenes of 5 by 5 cells alone.
        grid: cells a side of the boards.
    """

    name: ClassVar[str] = "gridvqa_pure"
    info: ClassVar[ModelInfo] = ModelInfo(
        "M_pure (small)",
        kind="supervised",
        licence="Apache-2.0, trained by medground",
        obtain="ships with medground; medground train gridvqa_x --variant pure makes it anew",
        seen={"gridvqa_x": "D_pure, other scenes"},
        unverified="a small network of this project, not the published checkpoint",
    )

    def __init__(
        self,
        weights: str | Path | None = None,
        device: str = "cpu",
        batch: int = 32,
        edition: Edition = "second",
        grid: int = 5,
    ) -> None:
        super().__init__("pure", weights, device, batch, edition, grid)
