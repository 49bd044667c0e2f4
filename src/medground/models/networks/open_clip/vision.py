"""open_clip's image towers: a vision transformer, CLIP's modified ResNet, and timm's plain vision transformers."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from medground.errors import ConfigError
from medground.models.checkpoints import Source
from medground.models.common.saliency import Tower, hugging_face_clip, timm_vit
from medground.models.layers.attention_pool import AttentionPool
from medground.models.layers.openai_names import clip_source
from medground.models.layers.resnet import ResNet
from medground.models.layers.vit import Mlp, VisionTransformer
from medground.models.networks.open_clip.config import OpenClipConfig, Vision

TIMM_WIDTHS = {"tiny": (192, 12, 3), "small": (384, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}
"""Plain vision transformers of timm: width, blocks and heads by size."""


class VisionTower(nn.Module, ABC):
    """An image tower and its way into the joint space."""

    @abstractmethod
    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Map images ``(n, 3, H, W)`` to their vectors ``(n, E)`` and to their cells ``(n, h, w, E)``."""

    def tower(self) -> Tower | None:
        """Return the blocks, taken apart for saliency rules; None where there are none."""
        return None

    def published(self, name: str) -> Source:
        """Return open_clip's entry, below ``visual.``, for a parameter."""
        return Source(f"visual.{name}")


class Transformer(VisionTower):
    """open_clip's vision transformer, in transformers' classes."""

    def __init__(self, config: OpenClipConfig) -> None:
        super().__init__()
        from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

        vision = config.vision_cfg
        assert isinstance(vision.layers, int)
        norm = vision.norm_kwargs
        self.model: Any = CLIPVisionModelWithProjection(
            CLIPVisionConfig(
                hidden_size=vision.width,
                intermediate_size=int(vision.width * vision.mlp_ratio),
                num_hidden_layers=vision.layers,
                num_attention_heads=max(1, vision.width // vision.head_width),
                patch_size=vision.patch_size,
                image_size=vision.image_size,
                projection_dim=config.embed_dim,
                hidden_act=config.activation,
                layer_norm_eps=norm.eps if norm else 1e-5,
            )
        )

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`VisionTower.forward`."""
        hidden = self.model.vision_model(pixel_values=pixels).last_hidden_state
        tokens: Tensor = self.model.visual_projection(self.model.vision_model.post_layernorm(hidden))
        side = math.isqrt(tokens.shape[1] - 1)
        return tokens[:, 0], tokens[:, 1:].reshape(len(tokens), side, side, -1)

    def tower(self) -> Tower:
        """See :meth:`VisionTower.tower`."""
        return hugging_face_clip(self.model)

    def published(self, name: str) -> Source:
        """See :meth:`VisionTower.published`."""
        return clip_source(name.removeprefix("model."))


class ModifiedResNet(VisionTower):
    """CLIP's ResNet with a stem of three convolutions and attention pooling."""

    def __init__(self, config: OpenClipConfig) -> None:
        super().__init__()
        vision = config.vision_cfg
        assert isinstance(vision.layers, tuple)
        self.trunk = ResNet(vision.layers, vision.width, clip_style=True)
        cells = (vision.image_size // 32) ** 2
        heads = vision.width * 32 // vision.head_width
        self.attnpool = AttentionPool(cells, self.trunk.channels, config.embed_dim, heads)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`VisionTower.forward`; a cell is what it alone would give through the pool's value path."""
        grid = self.trunk(pixels)
        vectors, _ = self.attnpool(grid)
        return vectors, self.attnpool.dense(grid).reshape(len(grid), *grid.shape[-2:], -1)

    def published(self, name: str) -> Source:
        """See :meth:`VisionTower.published`."""
        return Source(f"visual.{name.removeprefix('trunk.')}")


class TimmTransformer(VisionTower):
    """timm's plain vision transformer behind open_clip's head."""

    def __init__(self, config: OpenClipConfig) -> None:
        super().__init__()
        vision = config.vision_cfg
        width, depth, heads, patch = timm_shape(vision)
        self.mean = vision.timm_pool == "avg"
        self.trunk = VisionTransformer(width, depth, heads, patch, vision.image_size)
        self.head = nn.Module()
        if vision.timm_proj == "linear":
            self.head.proj = nn.Linear(width, config.embed_dim, bias=vision.timm_proj_bias)
        else:
            self.head.mlp = Mlp(width, 2 * config.embed_dim, config.embed_dim, bias=vision.timm_proj_bias)

    def project(self, tokens: Tensor) -> Tensor:
        """Map normed tokens to the joint space."""
        (head,) = self.head.children()
        joint: Tensor = head(tokens)
        return joint

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`VisionTower.forward`."""
        tokens = self.trunk(pixels)
        side = math.isqrt(tokens.shape[1] - 1)
        pooled = tokens[:, 1:].mean(1) if self.mean else tokens[:, 0]
        return self.project(pooled), self.project(tokens[:, 1:]).reshape(len(tokens), side, side, -1)

    def tower(self) -> Tower | None:
        """See :meth:`VisionTower.tower`; the rules read a class token, which a mean over patches leaves out."""
        return None if self.mean else timm_vit(self.trunk, self.project)


def timm_shape(vision: Vision) -> tuple[int, int, int, int]:
    """Return width, depth, heads and patch of a plain vision transformer of timm, such as ``vit_base_patch16_224``.

    Raises:
        ConfigError: it is none.
    """
    match = re.fullmatch(r"vit_(\w+?)_patch(\d+)_(\d+)(\.\w+)?", vision.timm_model_name or "")
    if match is None or match[1] not in TIMM_WIDTHS or int(match[3]) != vision.image_size:
        raise ConfigError(
            "this network of timm is not built here",
            where="vision_cfg.timm_model_name",
            expected=f"vit_SIZE_patchN_{vision.image_size}, SIZE one of {', '.join(TIMM_WIDTHS)}",
            got=vision.timm_model_name,
        )
    return *TIMM_WIDTHS[match[1]], int(match[2])


def build_vision(config: OpenClipConfig) -> VisionTower:
    """Return the image tower that a configuration asks for."""
    vision = config.vision_cfg
    if vision.timm_model_name:
        return TimmTransformer(config)
    return Transformer(config) if isinstance(vision.layers, int) else ModifiedResNet(config)
