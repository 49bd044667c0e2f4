"""BiomedCLIP (Zhang et al. 2023), as open_clip saves it, without open_clip and timm."""

from __future__ import annotations

import math
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
from medground.models.common.open_clip_config import follow_open_clip
from medground.models.common.saliency import Tower, timm_vit
from medground.models.common.text import Tokenizer
from medground.models.common.transformers import bert, bert_config_or, blank
from medground.models.layers.vit import VisionTransformer

LAYOUT = Layout(ignore=("text.transformer.pooler.*", "*position_ids"))
CONTEXT = 256
JOINT, HIDDEN = 512, 640


class Head(nn.Module):
    """The projection of the image tower."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj = nn.Linear(width, JOINT, bias=False)


class Visual(nn.Module):
    """Image tower and projection."""

    def __init__(self, trunk: VisionTransformer) -> None:
        super().__init__()
        self.trunk = trunk
        self.head = Head(trunk.norm.normalized_shape[0])

    def forward(self, pixels: Tensor) -> Tensor:
        """Map images to all tokens in the joint space ``(n, 1 + patches, 512)``, the image's own vector first."""
        tokens: Tensor = self.head.proj(self.trunk(pixels))
        return tokens


class Text(nn.Module):
    """BERT and a two-layer head on its class token."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.transformer = bert(config)
        width = config.hidden_size
        self.proj = nn.Sequential(nn.Linear(width, HIDDEN, bias=False), nn.GELU(), nn.Linear(HIDDEN, JOINT, bias=False))

    def class_state(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return the last hidden state of the class token ``(K, 768)``."""
        state: Tensor = self.transformer(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
        return state

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map token ids and mask ``(K, T)`` to un-normed vectors ``(K, 512)``."""
        vectors: Tensor = self.proj(self.class_state(ids, mask))
        return vectors


class BiomedclipNetwork(nn.Module):
    """Both towers and the temperature."""

    def __init__(self, text_config: Any, depth: int = 12) -> None:
        super().__init__()
        self.visual = Visual(VisionTransformer(depth=depth))
        self.text = Text(text_config)
        self.logit_scale = nn.Parameter(torch.zeros(()))


# What the published open_clip_config.json says of the network that is built here.
STATED = {
    "embed_dim": 512,
    "vision_cfg.timm_model_name": "vit_base_patch16_224",
    "vision_cfg.timm_pool": "",
    "vision_cfg.timm_proj": "linear",
    "vision_cfg.image_size": 224,
    "text_cfg.hf_proj_type": "mlp",
    "text_cfg.hf_pooler_type": "cls_last_hidden_state_pooler",
    "text_cfg.context_length": CONTEXT,
}


@dataclass(kw_only=True, eq=False, repr=False)
class Biomedclip(DualEncoder):
    """BiomedCLIP.

    Args:
        checkpoint: ``open_clip_pytorch_model.bin``, or the folder that holds it.
        text_model: folder of the tokenizer, ``microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract``; by default the
            checkpoint's folder. Without a ``config.json`` BERT-base is assumed, as published.
    """

    name: ClassVar[str] = "biomedclip"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="BiomedCLIP",
        kind="zero-shot",
        pretrained_on="biomedical",
        licence="MIT, as the model card says",
        citation="Zhang et al., BiomedCLIP: a multimodal biomedical foundation model, 2023",
        obtain="folder of microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224 from Hugging Face",
        seen={"pmc_15m": "figures and captions"},
    )

    checkpoint: Path
    text_model: Path | None = None
    template: str | list[str] = "this is a photo of {label}"

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`."""
        beside = self.checkpoint if self.checkpoint.is_dir() else self.checkpoint.parent
        folder = self.text_model or beside
        tokenizer = Tokenizer(folder, CONTEXT)
        config = bert_config_or(folder)
        weights = read_weights(self.checkpoint, LAYOUT)
        network = self.filled(blank(lambda: BiomedclipNetwork(config)), weights, LAYOUT)
        preprocess = follow_open_clip(beside, STATED, Preprocess("center_crop", 224, "bicubic", CLIP_MEAN, CLIP_STD))
        return Parts(network, weights, preprocess, self.words(), tokenizer)

    def image_features(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`DualEncoder.image_features`."""
        network: Any = self.network
        tokens = network.visual(pixels)
        side = math.isqrt(tokens.shape[1] - 1)
        return tokens[:, 0], tokens[:, 1:].unflatten(1, (side, side))

    def scale(self) -> float:
        """See :meth:`DualEncoder.scale`."""
        network: Any = self.network
        return math.exp(network.logit_scale)

    def tower(self) -> Tower:
        """See :meth:`DualEncoder.tower`."""
        network: Any = self.network
        return timm_vit(network.visual.trunk, network.visual.head.proj)
