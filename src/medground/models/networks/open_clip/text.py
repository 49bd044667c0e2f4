"""open_clip's text towers: its own causal transformer, or one of transformers with a pooler and a projection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from medground.errors import ConfigError
from medground.models.checkpoints import Source
from medground.models.common.transformers import read_config
from medground.models.layers.openai_names import clip_source
from medground.models.networks.open_clip.config import OpenClipConfig


class TextTower(nn.Module, ABC):
    """A text tower and its way into the joint space."""

    @abstractmethod
    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map token ids and mask ``(K, T)`` to un-normed vectors ``(K, E)``."""

    def published(self, name: str, prefix: str) -> Source:
        """Return open_clip's entry for a parameter; ``prefix`` is ``text.`` in files of a custom text tower."""
        return Source(f"{prefix}{name}")


class CausalTransformer(TextTower):
    """open_clip's own text tower, in transformers' classes: read at the highest token id, which ends a text."""

    def __init__(self, config: OpenClipConfig) -> None:
        super().__init__()
        from transformers import CLIPTextConfig, CLIPTextModelWithProjection

        text = config.text_cfg
        self.model: Any = CLIPTextModelWithProjection(
            CLIPTextConfig(
                vocab_size=text.vocab_size,
                hidden_size=text.width,
                intermediate_size=int(text.width * text.mlp_ratio),
                num_hidden_layers=text.layers,
                num_attention_heads=text.heads,
                max_position_embeddings=text.context_length,
                projection_dim=config.embed_dim,
                hidden_act=config.activation,
                layer_norm_eps=text.norm_kwargs.eps if text.norm_kwargs else 1e-5,
                eos_token_id=2,  # transformers' sign for: read the text at the highest token id
            )
        )

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """See :meth:`TextTower.forward`; what follows a text's end is never read, so no mask is needed."""
        del mask
        vectors: Tensor = self.model(input_ids=ids).text_embeds
        return vectors

    def published(self, name: str, prefix: str) -> Source:
        """See :meth:`TextTower.published`."""
        source = clip_source(name.removeprefix("model."))
        return Source(f"{prefix}{source.name}", source.part, source.parts, source.transpose)


class HuggingFaceText(TextTower):
    """A text encoder of transformers, pooled and projected as open_clip does.

    Args:
        config: of the pair.
        folder: of the text encoder's ``config.json``.
    """

    def __init__(self, config: OpenClipConfig, folder: Path) -> None:
        super().__init__()
        from transformers import AutoModel

        own = read_config(folder, "AutoConfig")
        if getattr(own, "is_encoder_decoder", False):
            raise ConfigError("text encoders with a decoder are not built here", where=folder / "config.json")
        text = config.text_cfg
        self.pooler = text.hf_pooler_type
        self.transformer: Any = AutoModel.from_config(own, add_pooling_layer=self.pooler == "cls_pooler")
        width, joint = own.hidden_size, config.embed_dim
        hidden = (width + joint) // 2
        self.proj: nn.Module = nn.Linear(width, joint, bias=False)
        if text.hf_proj_type == "mlp":
            ends = nn.Linear(width, hidden, bias=False), nn.Linear(hidden, joint, bias=False)
            self.proj = nn.Sequential(ends[0], nn.GELU(), ends[1])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """See :meth:`TextTower.forward`."""
        output = self.transformer(input_ids=ids, attention_mask=mask)
        states = output.last_hidden_state
        if self.pooler == "mean_pooler":
            weight = mask[..., None].to(states)
            pooled = (states * weight).sum(1) / weight.sum(1)
        else:
            pooled = output.pooler_output if self.pooler == "cls_pooler" else states[:, 0]
        vectors: Tensor = self.proj(pooled)
        return vectors


def build_text(config: OpenClipConfig, folder: Path) -> TextTower:
    """Return the text tower that a configuration asks for; ``folder`` holds a text encoder's configuration."""
    return HuggingFaceText(config, folder) if config.text_cfg.hf_model_name else CausalTransformer(config)
