"""The published MDETR checkpoints of GridVQA-X (``checkpoint_pure.pth``, ``checkpoint_spur.pth``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from medground.errors import ModelError
from medground.models.base import ModelInfo

if TYPE_CHECKING:
    from torch import Tensor

_MEAN, _SD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class GridMdetr:
    """MDETR with ResNet-101 and RoBERTa-base behind the interface of a question answerer.

    Args:
        checkpoint: the published file, or any with its entries.
        tokenizer: a local folder with the tokenizer of roberta-base.
        layer: decoder layer that the question queries are read from. Upstream MDETR reads the first in its GQA code;
            the facts at hand do not say which one these checkpoints were trained with.
        size: pixels a side that pictures are brought to.
        device: as torch names it.
        batch: pairs a forward pass.
        ignore: patterns of entries that may be missing or unexpected.
    """

    name: ClassVar[str] = "gridvqa_mdetr"
    info: ClassVar[ModelInfo] = ModelInfo(
        "MDETR (GridVQA-X)",
        kind="supervised",
        licence="MIT (published code and checkpoints)",
        citation="Kamath et al., MDETR, ICCV 2021; GridVQA-X, arXiv 2606.14740",
        obtain="checkpoint_pure.pth or checkpoint_spur.pth of Aikyam-Lab/gridvqa-models; tokenizer of roberta-base",
        seen={"gridvqa_x": "scenes of the released generator"},
        unverified="built from the key layout and the description; never compared with the published outputs",
    )

    made_for: ClassVar[Mapping[str, int]] = {"grid": 5}

    def __init__(
        self,
        checkpoint: Path,
        tokenizer: Path,
        layer: Literal["first", "last"] = "first",
        size: int = 320,
        device: str = "cpu",
        batch: int = 16,
        ignore: tuple[str, ...] = (),
    ) -> None:
        import torch
        from transformers import AutoTokenizer

        from medground.models.checkpoints import Layout, load_weights, read_weights
        from medground.models.common.transformers import blank
        from medground.models.networks.gridvqa import mdetr

        held = read_weights(checkpoint, Layout(under="model", unused=("model_ema", "optimizer", "args", "epoch")))
        self._net = blank(lambda: mdetr.Mdetr(self.layout()))
        load_weights(self._net, held, ignore=(*IGNORED, *ignore))
        self._net.to(device).eval().requires_grad_(False)
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True)
        except (OSError, ValueError) as error:
            raise ModelError("no tokenizer can be read from this folder", where=tokenizer, got=error) from error
        self._device, self._sha256 = torch.device(device), held.sha256
        self._layer = 0 if layer == "first" else -1
        self._size, self._batch = size, batch
        self.answers: Sequence[str] = (*(str(n) for n in range(mdetr.COUNTS)), "yes", "no")

    @staticmethod
    def layout() -> Any:
        """Return the sizes of the published network."""
        from medground.models.networks.gridvqa.mdetr import Layout

        return Layout()

    def logits(self, images: NDArray[np.floating[Any]], questions: Sequence[str]) -> NDArray[np.floating[Any]]:
        """Return ``(N, 103)`` log-probabilities; ``images`` are ``(N, H, W, 3)`` in [0, 1]."""
        import torch

        from medground.models.networks.gridvqa.mdetr import log_probabilities

        found = []
        with torch.inference_mode():
            for start in range(0, len(questions), self._batch):
                texts = self._tokenizer(list(questions[start : start + self._batch]), padding=True, return_tensors="pt")
                heads = self._net(
                    self._pixels(images[start : start + self._batch]),
                    texts["input_ids"].to(self._device),
                    texts["attention_mask"].to(self._device),
                    self._layer,
                )
                found.append(log_probabilities(heads).float().cpu())
        return torch.cat(found).numpy()

    def _pixels(self, images: NDArray[np.floating[Any]]) -> Tensor:
        import torch
        from torch.nn import functional

        pixels = torch.from_numpy(np.ascontiguousarray(images, np.float32)).permute(0, 3, 1, 2).to(self._device)
        if pixels.shape[-2:] != (self._size, self._size):
            pixels = functional.interpolate(pixels, (self._size, self._size), mode="bilinear", antialias=True)
        mean, sd = (torch.tensor(v, device=self._device)[:, None, None] for v in (_MEAN, _SD))
        return (pixels - mean) / sd

    def fingerprint(self) -> str:
        """Depends on weights, the layer read, the size of pictures and the device."""
        return f"gridvqa-mdetr-1-{self._sha256[:16]}-{self._layer}-{self._size}-{self._device.type}"


IGNORED = ("*position_ids", "*.pooler.*", "criterion.*", "contrastive_align_projection_*")
"""Entries that evaluation does not use."""
