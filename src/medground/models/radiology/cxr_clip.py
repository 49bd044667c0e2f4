"""CXR-CLIP (You et al. 2023) with a ResNet-50: Bio_ClinicalBERT read at its last token, 512 joint dimensions.

Written from the published architecture. As in its authors' evaluation a probability is the softmax of two cosines,
those of "{label}" and of "No {label}", without the temperature. Pool and projection are linear, so every cell projected
alone shows its part of the score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from medground.errors import CheckpointError
from medground.models.base import ModelInfo
from medground.models.checkpoints import Layout, read_weights
from medground.models.common.adapter import Parts
from medground.models.common.dual import DualEncoder
from medground.models.common.inputs import IMAGENET_MEAN, IMAGENET_STD, Preprocess
from medground.models.common.text import Tokenizer
from medground.models.common.transformers import bert, bert_config_or, blank
from medground.models.layers.resnet import ResNet50

LAYOUT = Layout(
    under="model",
    unused=("config", "epoch", "optimizer", "scheduler", "train_loss"),
    ignore=("text_encoder.text_encoder.pooler.*", "*position_ids"),
)
JOINT, TEXT_LENGTH = 512, 256
SWIN = "image_encoder.image_encoder."


class ImageEncoder(nn.Module):
    """ResNet-50 under the name that the file has for it."""

    def __init__(self) -> None:
        super().__init__()
        self.resnet = ResNet50()


class TextEncoder(nn.Module):
    """BERT under the name that the file has for it."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.text_encoder = bert(config)


class Projection(nn.Module):
    """A linear map to the joint space, under the name that the file has for it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.projection = nn.Linear(width, JOINT)

    def forward(self, features: Tensor) -> Tensor:
        """Map ``(..., width)`` to ``(..., 512)``."""
        joint: Tensor = self.projection(features)
        return joint


class CxrClipNetwork(nn.Module):
    """Both encoders, both projections, the temperature."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.image_encoder = ImageEncoder()
        self.text_encoder = TextEncoder(config)
        self.image_projection = Projection(self.image_encoder.resnet.channels)
        self.text_projection = Projection(config.hidden_size)
        self.logit_scale = nn.Parameter(torch.zeros(()))

    def text(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map token ids and mask ``(K, T)`` to un-normed vectors ``(K, 512)``, read at the last token of each text."""
        states = self.text_encoder.text_encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        last = mask.sum(-1) - 1
        vectors: Tensor = self.text_projection(states[torch.arange(len(ids), device=ids.device), last])
        return vectors


@dataclass(kw_only=True, eq=False, repr=False)
class CxrClip(DualEncoder):
    """CXR-CLIP with a ResNet-50.

    Args:
        checkpoint: the authors' ``r50_m.tar``, ``r50_mc.tar`` or ``r50_mcc.tar``.
        text_model: folder of ``emilyalsentzer/Bio_ClinicalBERT``: tokenizer, and configuration if there is one (weights
            are in the checkpoint).
        saliency: ``similarity``.
    """

    name: ClassVar[str] = "cxr_clip"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="CXR-CLIP",
        kind="zero-shot",
        licence="CC BY-NC 4.0",
        citation="You et al., CXR-CLIP: toward large scale chest X-ray language-image pre-training, MICCAI 2023",
        obtain="r50_m.tar, r50_mc.tar or r50_mcc.tar from the authors (kakaobrain/cxr-clip); folder of "
        "emilyalsentzer/Bio_ClinicalBERT from Hugging Face",
        seen={
            "mimic_cxr": "images and reports",
            "chexpert": "images and labels of the training set (mc, mcc)",
            "nih_chestxray14": "images and labels of the training set (mcc)",
        },
    )
    rules: ClassVar[tuple[str, ...]] = ("similarity",)

    checkpoint: Path
    text_model: Path
    template: str | list[str] = "{label}"
    against: str | list[str] | None = "No {label}"

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`.

        Raises:
            CheckpointError: the file holds the variant with a Swin transformer.
        """
        weights = read_weights(self.checkpoint, LAYOUT)
        if any(name.startswith(SWIN) for name in weights.tensors):
            raise CheckpointError(
                "this file holds CXR-CLIP with a Swin transformer, which is not built here",
                where=self.checkpoint.name,
                expected="r50_m.tar, r50_mc.tar or r50_mcc.tar",
            )
        config = bert_config_or(self.text_model, vocab_size=28996)
        network = self.filled(blank(lambda: CxrClipNetwork(config)), weights, LAYOUT)
        preprocess = Preprocess("center_crop", 224, "bilinear", IMAGENET_MEAN, IMAGENET_STD)
        return Parts(network, weights, preprocess, self.words(), Tokenizer(self.text_model, TEXT_LENGTH))

    def takes_size(self, size: int) -> bool:
        """See :meth:`DualEncoder.takes_size`: a convolutional tower takes any that leaves it a cell."""
        return size >= 32

    def image_features(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`DualEncoder.image_features`."""
        network: Any = self.network
        cells = network.image_encoder.resnet(pixels).permute(0, 2, 3, 1)
        return network.image_projection(cells.mean((1, 2))), network.image_projection(cells)

    def scale(self) -> float:
        """See :meth:`DualEncoder.scale`."""
        network: Any = self.network
        return math.exp(float(network.logit_scale))
