"""M3AE (Chen et al. 2022): image and text tokens attend to each other, and a head says whether they match.

Written from the published architecture; the authors' code has no licence and is not used. A caption is scored by the
matching head. The authors give no map; ours is the text's attention to the image, averaged over layers, heads and the
caption's own tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from medground.imaging.reading import Radiograph
from medground.models.base import MatchScores, ModelInfo
from medground.models.checkpoints import LIGHTNING, Layout, Source, Weights, read_weights
from medground.models.common.adapter import Adapter, Parts
from medground.models.common.dual import encode_distinct
from medground.models.common.inputs import CLIP_MEAN, CLIP_STD, Preprocess
from medground.models.common.presence import presence, presence_margin
from medground.models.common.text import Prompts, Tokenizer
from medground.models.common.transformers import blank, read_config
from medground.models.layers.coattention import CoAttentionLayer, padding_bias
from medground.models.layers.openai_names import vision_source

LAYOUT = Layout(
    under="state_dict",
    unused=LIGHTNING,
    ignore=(
        "vision_encoder.token_embedding.weight",
        "vision_encoder.positional_embedding",
        "vision_encoder.ln_final.*",
        "language_encoder.pooler.*",
        "mlm_head.*",
        "mim_head.*",
        "*position_ids",
    ),
)
VISION = "vision_encoder.visual."
POSITIONS = "vision_encoder.visual.positional_embedding"
WIDTH, PATCH = 768, 16
TEXT, IMAGE = 0, 1  # rows of the modality embedding


class Pooler(nn.Module):
    """Dense and tanh on the first token."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(WIDTH, WIDTH)

    def forward(self, stream: Tensor) -> Tensor:
        """Map ``(N, T, 768)`` to ``(N, 768)``."""
        pooled: Tensor = torch.tanh(self.dense(stream[:, 0]))
        return pooled


class MatchingHead(nn.Module):
    """Two logits of the joined poolers: no match, match."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2 * WIDTH, 2)


class VisionEncoder(nn.Module):
    """CLIP's image tower without its last block, the final norm on all tokens."""

    def __init__(self, image_size: int, depth: int) -> None:
        super().__init__()
        from transformers import CLIPVisionConfig, CLIPVisionModel

        config = CLIPVisionConfig(
            hidden_size=WIDTH,
            intermediate_size=4 * WIDTH,
            num_hidden_layers=depth,
            num_attention_heads=12,
            image_size=image_size,
            patch_size=PATCH,
        )
        self.visual: Any = CLIPVisionModel(config)

    def forward(self, pixels: Tensor) -> Tensor:
        """Map images ``(N, 3, H, W)`` to tokens ``(N, 1 + patches, 768)``."""
        tokens: Tensor = self.visual.post_layernorm(self.visual(pixel_values=pixels).last_hidden_state)
        return tokens


class M3aeNetwork(nn.Module):
    """The matching path of M3AE.

    Args:
        text_config: of RoBERTa.
        image_size: side of the input in pixels.
        vision_depth: blocks of the image tower; 11 of CLIP's 12.
        depth: co-attention layers of each stream.
    """

    def __init__(self, text_config: Any, image_size: int = 288, vision_depth: int = 11, depth: int = 6) -> None:
        super().__init__()
        from transformers import RobertaModel

        self.vision_encoder = VisionEncoder(image_size, vision_depth)
        self.language_encoder: Any = RobertaModel(text_config, add_pooling_layer=False)
        self.multi_modal_language_proj = nn.Linear(text_config.hidden_size, WIDTH)
        self.multi_modal_vision_proj = nn.Linear(WIDTH, WIDTH)
        self.modality_type_embeddings = nn.Embedding(2, WIDTH)
        self.multi_modal_vision_layers = nn.ModuleList(CoAttentionLayer() for _ in range(depth))
        self.multi_modal_language_layers = nn.ModuleList(CoAttentionLayer() for _ in range(depth))
        self.multi_modal_vision_pooler = Pooler()
        self.multi_modal_language_pooler = Pooler()
        self.itm_head = MatchingHead()

    def image_stream(self, pixels: Tensor) -> Tensor:
        """Map images ``(N, 3, H, W)`` to the tokens ``(N, 1 + patches, 768)`` that enter co-attention."""
        tokens = self.multi_modal_vision_proj(self.vision_encoder(pixels))
        stream: Tensor = tokens + self.modality_type_embeddings.weight[IMAGE]
        return stream

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map token ids and mask ``(K, T)`` to the text tower's states ``(K, T, 768)``."""
        states: Tensor = self.language_encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return states

    def text_stream(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map token ids and mask ``(K, T)`` to the tokens ``(K, T, 768)`` that enter co-attention."""
        tokens = self.multi_modal_language_proj(self.encode(ids, mask))
        stream: Tensor = tokens + self.modality_type_embeddings.weight[TEXT]
        return stream

    def join(self, text: Tensor, mask: Tensor, image: Tensor) -> tuple[Tensor, Tensor, list[Tensor], list[Tensor]]:
        """Run co-attention on pairs; both streams of a layer read the pair that enters it.

        Args:
            text: ``(P, T, 768)``.
            mask: ``(P, T)``, 1 on tokens.
            image: ``(P, S, 768)``.

        Returns:
            Both streams, and each layer's weights of text over image ``(P, 12, T, S)`` and of image over text.
        """
        bias = padding_bias(mask, text.dtype)
        over_image, over_text = [], []
        for of_text, of_image in zip(self.multi_modal_language_layers, self.multi_modal_vision_layers, strict=True):
            next_text, seen = of_text(text, image, bias, None)
            image, read = of_image(image, text, None, bias)
            text = next_text
            over_image.append(seen)
            over_text.append(read)
        return text, image, over_image, over_text

    def fused(self, text: Tensor, image: Tensor) -> Tensor:
        """Return the joined poolers ``(P, 1536)`` of two streams, text first."""
        return torch.cat([self.multi_modal_language_pooler(text), self.multi_modal_vision_pooler(image)], -1)


def published(name: str) -> Source:
    """Return the entry of the authors' file for a parameter of :class:`M3aeNetwork`."""
    return vision_source(name.removeprefix(VISION), VISION) if name.startswith(VISION) else Source(name)


def resize_positions(positions: Tensor, cells: int) -> Tensor:
    """Return position embeddings ``(1 + cells, D)`` for another square grid: bicubic, the first kept as it is."""
    side, new = math.isqrt(len(positions) - 1), math.isqrt(cells)
    grid = positions[1:].float().reshape(1, side, side, -1).permute(0, 3, 1, 2)
    resized = functional.interpolate(grid, (new, new), mode="bicubic", align_corners=False)
    return torch.cat([positions[:1].float(), resized.permute(0, 2, 3, 1).reshape(new * new, -1)])


def at_resolution(weights: Weights, image_size: int) -> Weights:
    """Return weights whose positions fit an input of ``image_size``; a table that is no square grid is left alone."""
    stored, cells = weights.tensors.get(POSITIONS), (image_size // PATCH) ** 2
    if (
        stored is None
        or stored.dim() != 2
        or len(stored) - 1 == cells
        or math.isqrt(len(stored) - 1) ** 2 != len(stored) - 1
    ):
        return weights
    return replace(weights, tensors={**weights.tensors, POSITIONS: resize_positions(stored, cells)})


def caption_map(over_image: Sequence[Tensor], mask: Tensor) -> Tensor:
    """Return maps ``(P, h, w)``: the caption's attention to the patches, averaged over layers, heads and its tokens.

    Args:
        over_image: each layer's weights ``(P, heads, T, 1 + h w)``.
        mask: ``(P, T)``; the first and the last token are special and are left out.
    """
    mean = torch.stack([layer.mean(1) for layer in over_image]).mean(0)[..., 1:]
    inner = mask.clone()
    inner[:, 0] = 0
    inner[torch.arange(len(mask)), mask.sum(-1) - 1] = 0
    weight = inner.to(mean)[..., None]
    flat = (mean * weight).sum(1) / weight.sum(1)
    side = math.isqrt(flat.shape[-1])
    return flat.reshape(-1, side, side)


@dataclass(kw_only=True, eq=False, repr=False)
class M3ae(Adapter):
    """M3AE.

    Args:
        checkpoint: the authors' ``m3ae.ckpt``.
        text_model: folder of ``roberta-base``: configuration and tokenizer (weights are in the checkpoint).
        template: caption with ``{label}`` for the finding.
        prompts: finding -> caption.
        resolution: side of the input in pixels: 288 as pretrained, 384 in the authors' question answering; other sizes
            resize the position embeddings.
        text_length: most tokens of a caption.
    """

    name: ClassVar[str] = "m3ae"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="M3AE",
        kind="zero-shot",
        pretrained_on="biomedical",
        licence="no licence published: use the authors' files with their permission",
        citation="Chen et al., Multi-modal masked autoencoders for medical vision-and-language pre-training, "
        "MICCAI 2022",
        obtain="m3ae.ckpt from the authors (zhjohnchan/M3AE); folder of roberta-base from Hugging Face",
        seen={
            "roco": "images and captions, with the matching task",
            "medicat": "images and captions, with the matching task",
        },
    )

    checkpoint: Path
    text_model: Path
    template: str = "There is {label}."
    prompts: dict[str, str] | None = None
    resolution: int = 288
    text_length: int = 64

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`."""
        tokenizer = Tokenizer(self.text_model, self.text_length)
        config = read_config(self.text_model, "RobertaConfig")
        weights = at_resolution(read_weights(self.checkpoint, LAYOUT), self.resolution)
        network = self.filled(blank(lambda: M3aeNetwork(config, self.resolution)), weights, LAYOUT, published)
        preprocess = Preprocess("center_crop", self.resolution, "bicubic", CLIP_MEAN, CLIP_STD)
        return Parts(network, weights, preprocess, Prompts(self.template, self.prompts), tokenizer)

    def encode_texts(self, findings: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return the findings' captions as streams ``(C, T, 768)``, and their mask."""
        return self._streams([self.wording.of(finding)[0] for finding in findings])

    def _streams(self, captions: Sequence[str]) -> tuple[Tensor, Tensor]:
        ids, mask = (part.to(self.runtime.device) for part in self.tokenise(captions))
        network: Any = self.network
        return network.text_stream(ids, mask), mask

    def ground(self, pixels: Tensor, texts: Any) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`Adapter.ground`; images are encoded once, co-attention runs on every pair."""
        network: Any = self.network
        streams, mask = texts
        logits, maps = [], []
        for image in network.image_stream(pixels):
            pair = network.join(streams, mask, image.expand(len(streams), -1, -1))
            logits.append(network.itm_head.fc(network.fused(*pair[:2])))
            maps.append(caption_map(pair[2], mask))
        both = torch.stack(logits)
        return presence_margin(both), presence(both), torch.stack(maps)

    def match(self, images: Sequence[Radiograph], captions: Sequence[Sequence[str]]) -> MatchScores:
        """Return match minus no match, in logits, of N images with K captions each; its sigmoid is the probability.

        Raises:
            ModelError: the images do not have one equally long list of captions each.
        """
        network: Any = self.network
        places, streams = encode_distinct(self, images, captions, network.image_stream)
        texts: dict[tuple[str, ...], tuple[Tensor, Tensor]] = {}
        rows = []
        for place, own in zip(places, captions, strict=True):
            with self.runtime.inference():
                if tuple(own) not in texts:
                    texts[tuple(own)] = self._streams(own)
                text, mask = texts[tuple(own)]
                pair = network.join(text, mask, streams[place].to(self.runtime.device).expand(len(own), -1, -1))
                margin = presence_margin(network.itm_head.fc(network.fused(*pair[:2])))
            rows.append(margin.double().cpu().numpy())
        read = np.array([self.tokenise.alike(own) for own in captions])
        return MatchScores(np.stack(rows), 1.0, "itm", read)
