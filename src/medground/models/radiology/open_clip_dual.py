"""Any pair of towers that open_clip's configuration describes, by its folder, without open_clip.

Image towers: open_clip's vision transformer, CLIP's modified ResNet, timm's plain vision transformers. Text towers:
open_clip's own, or an encoder of transformers. Maps are the similarity of every cell, projected alone, with the text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from medground.errors import ConfigError
from medground.models.base import ModelInfo
from medground.models.checkpoints import Layout, Source, Weights, read_weights
from medground.models.common.adapter import Parts
from medground.models.common.dual import DualEncoder
from medground.models.common.open_clip_config import FILE, preprocess_of
from medground.models.common.saliency import Tower
from medground.models.common.text import Tokenizer
from medground.models.common.transformers import blank
from medground.models.networks.open_clip.config import OpenClipConfig, read_open_clip
from medground.models.networks.open_clip.text import build_text
from medground.models.networks.open_clip.vision import build_vision

LAYOUT = Layout(
    under="state_dict", unused=("epoch", "name", "optimizer", "scaler"), ignore=("*attn_mask", "*position_ids")
)


class OpenClipNetwork(nn.Module):
    """Both towers, the temperature, and a bias where there is one."""

    def __init__(self, config: OpenClipConfig, text_folder: Path) -> None:
        super().__init__()
        self.visual = build_vision(config)
        self.text = build_text(config, text_folder)
        shape = (1,) if config.nonscalar_logit_scale else ()
        self.logit_scale = nn.Parameter(torch.zeros(shape))
        self.logit_bias = None if config.init_logit_bias is None else nn.Parameter(torch.zeros(shape))

    def published(self, name: str, prefix: str) -> Source:
        """Return open_clip's entry for a parameter; ``prefix`` is that of the text tower's entries."""
        if name.startswith("visual."):
            return self.visual.published(name.removeprefix("visual."))
        if name.startswith("text."):
            return self.text.published(name.removeprefix("text."), prefix)
        return Source(name)


def text_prefix(weights: Weights) -> str:
    """Return what stands before the text tower's entries: ``text.`` where it is a module of its own."""
    return "text." if any(name.startswith("text.") for name in weights.tensors) else ""


@dataclass(kw_only=True, eq=False, repr=False)
class OpenClipDual(DualEncoder):
    """A dual encoder of open_clip.

    Args:
        checkpoint: a folder as open_clip saves it (``open_clip_config.json``, ``open_clip_model.safetensors`` or
            ``open_clip_pytorch_model.bin``, tokenizer), or a training checkpoint beside a configuration.
        config: the configuration; by default ``open_clip_config.json`` in the checkpoint's folder.
        text_model: folder of the tokenizer and, for a text encoder of transformers, of its ``config.json``; by default
            the checkpoint's folder.
        template: prompt with ``{label}`` for the finding, or several whose embeddings are averaged.
        saliency: ``similarity``; for image towers of open_clip's own transformer, and timm's with a class token, also
            ``surgery``, ``gradcam`` and ``chefer``.
    """

    name: ClassVar[str] = "open_clip_dual"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="A dual encoder of open_clip",
        licence="that of your checkpoint",
        obtain="a folder as open_clip saves it: open_clip_config.json, weights, tokenizer",
        unverified="what your checkpoint has been trained on is not known here",
    )

    checkpoint: Path
    config: Path | None = None
    text_model: Path | None = None
    template: str | list[str] = "a photo of a {label}"

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`.

        Raises:
            ConfigError: the configuration asks for what is not built here, or the saliency rule for a tower without
                a class token.
        """
        beside = self.checkpoint if self.checkpoint.is_dir() else self.checkpoint.parent
        folder, path = self.text_model or beside, self.config or beside / FILE
        config, pictures = read_open_clip(path)
        network = blank(lambda: OpenClipNetwork(config, folder))
        if self.saliency != "similarity" and network.visual.tower() is None:
            raise ConfigError(
                "this saliency rule takes a transformer with a class token apart, which this image tower is not",
                where="saliency",
                got=self.saliency,
                fix="saliency: similarity",
            )
        weights = read_weights(self.checkpoint, LAYOUT)
        self.filled(network, weights, LAYOUT, partial(network.published, prefix=text_prefix(weights)))
        preprocess = preprocess_of(pictures, config.vision_cfg.image_size, path)
        tokenizer = Tokenizer(folder, config.text_cfg.context_length)
        return Parts(network, weights, preprocess, self.words(), tokenizer, [config.model_dump(mode="json")])

    def image_features(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`DualEncoder.image_features`."""
        network: Any = self.network
        features: tuple[Tensor, Tensor] = network.visual(pixels)
        return features

    def scale(self) -> float:
        """See :meth:`DualEncoder.scale`."""
        network: Any = self.network
        return math.exp(float(network.logit_scale))

    def bias(self) -> float:
        """See :meth:`DualEncoder.bias`."""
        network: Any = self.network
        return 0.0 if network.logit_bias is None else float(network.logit_bias)

    def tower(self) -> Tower:
        """See :meth:`DualEncoder.tower`."""
        network: Any = self.network
        tower: Tower = network.visual.tower()
        return tower
