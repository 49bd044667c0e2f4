"""PMC-CLIP (Lin et al. 2023): CLIP's modified ResNet-50 with PubMedBERT.

The fusion part of the file serves its masked-language training only and does not enter the score. The text tower was
trained and is used without an attention mask, padding to 77 tokens included. The authors define no map; ours is what
each cell alone would give through the attention pool, compared with the text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from medground.models.base import ModelInfo
from medground.models.checkpoints import Layout, read_weights
from medground.models.common.adapter import Parts
from medground.models.common.dual import DualEncoder
from medground.models.common.inputs import CLIP_MEAN, CLIP_STD, Preprocess
from medground.models.common.saliency import gradcam
from medground.models.common.text import Tokenizer
from medground.models.common.transformers import bert, bert_config_or, blank
from medground.models.layers.attention_pool import AttentionPool
from medground.models.layers.resnet import ResNet50

LAYOUT = Layout(
    under="state_dict",
    unused=("epoch", "name", "optimizer", "scaler"),
    ignore=(
        "positional_embedding",
        "ln_final.*",
        "mlm_projection",
        "img_special_token",
        "fusion_module.*",
        "text_encoder.pooler.*",
        "*position_ids",
    ),
)
TEXT_LENGTH = 77
JOINT = 768
POOL_HEADS = 32
STRIDE = 32


class Visual(ResNet50):
    """The modified ResNet-50 and its attention pool."""

    def __init__(self, image_size: int) -> None:
        super().__init__(clip_style=True)
        self.attnpool = AttentionPool((image_size // STRIDE) ** 2, self.channels, JOINT, POOL_HEADS)


class PmcClipNetwork(nn.Module):
    """The matching path: both towers and the temperature."""

    def __init__(self, text_config: Any, image_size: int = 224) -> None:
        super().__init__()
        self.visual = Visual(image_size)
        self.text_encoder = bert(text_config)
        self.text_projection = nn.Parameter(torch.zeros(text_config.hidden_size, JOINT))
        self.logit_scale = nn.Parameter(torch.zeros(()))

    def text(self, ids: Tensor, class_id: int, mask: Tensor | None = None) -> Tensor:
        """Map token ids ``(K, 77)`` to un-normed vectors ``(K, 768)``, read at the class token.

        Args:
            ids: padded to 77.
            class_id: id of the class token.
            mask: none, as published; with one the numbers differ.
        """
        hidden = self.text_encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        place = (ids == class_id).int().argmax(-1)
        vectors: Tensor = hidden[torch.arange(len(ids), device=ids.device), place] @ self.text_projection
        return vectors


@dataclass(kw_only=True, eq=False, repr=False)
class PmcClip(DualEncoder):
    """PMC-CLIP.

    Args:
        checkpoint: the authors' ``checkpoint.pt``.
        text_model: folder of ``microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext``: tokenizer, and
            configuration if there is one.
        saliency: ``similarity`` (cells through the pool's value path), ``gradcam``, or ``attention`` (the pool's own,
            the same for every finding).
    """

    name: ClassVar[str] = "pmc_clip"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="PMC-CLIP",
        kind="zero-shot",
        pretrained_on="biomedical",
        licence="MIT",
        citation="Lin et al., PMC-CLIP: contrastive language-image pre-training using biomedical documents, "
        "MICCAI 2023",
        obtain="checkpoint.pt from axiong/pmc_oa or axiong/pmc_oa_beta (dataset repositories on Hugging Face); folder "
        "of the tokenizer microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext",
        seen={"pmc_oa": "figures and captions"},
    )
    rules: ClassVar[tuple[str, ...]] = ("similarity", "gradcam", "attention")
    tower_rules: ClassVar[tuple[str, ...]] = ()

    checkpoint: Path
    text_model: Path

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`."""
        tokenizer = Tokenizer(self.text_model, TEXT_LENGTH, pad_to_length=True)
        config = bert_config_or(self.text_model)
        weights = read_weights(self.checkpoint, LAYOUT)
        network = self.filled(blank(lambda: PmcClipNetwork(config)), weights, LAYOUT)
        preprocess = Preprocess("center_crop", 224, "bicubic", CLIP_MEAN, CLIP_STD)
        return Parts(network, weights, preprocess, self.words(), tokenizer)

    def image_features(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`DualEncoder.image_features`; with ``attention`` the cells carry the pool's weights."""
        network: Any = self.network
        grid = network.visual(pixels)
        vectors, weights = network.visual.attnpool(grid)
        side = grid.shape[-1]
        if self.saliency == "attention":
            return vectors, weights[:, 1:].reshape(-1, side, side, 1)
        return vectors, network.visual.attnpool.dense(grid).unflatten(1, (side, side))

    def embed(self, texts: Sequence[str]) -> Tensor:
        """See :meth:`DualEncoder.embed`."""
        ids, _ = self.tokenise(texts)
        network: Any = self.network
        vectors: Tensor = network.text(ids.to(self.runtime.device), self.tokenise.inner.cls_token_id)
        return vectors

    def scale(self) -> float:
        """See :meth:`DualEncoder.scale`."""
        network: Any = self.network
        return math.exp(network.logit_scale)

    def maps(self, pixels: Tensor, vectors: Tensor, cells: Tensor, texts: Tensor) -> Tensor:
        """See :meth:`DualEncoder.maps`."""
        if self.saliency == "attention":
            return cells.permute(0, 3, 1, 2).expand(-1, len(texts), -1, -1)
        return super().maps(pixels, vectors, cells, texts)

    def seen(self, pixels: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`DualEncoder.seen`; Grad-CAM is taken on the grid that enters the pool."""
        if self.saliency != "gradcam":
            return super().seen(pixels, texts)
        network: Any = self.network
        grid = network.visual(pixels)

        def logits(flat: Tensor) -> Tensor:
            pooled, _ = network.visual.attnpool(flat.transpose(1, 2).reshape(grid.shape))
            return self.scores(pooled, texts) * self.scale()

        flat = gradcam(grid.flatten(2).transpose(1, 2), logits)
        return network.visual.attnpool(grid)[0], flat.reshape(*flat.shape[:2], *grid.shape[-2:])
