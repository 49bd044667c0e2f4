"""KAD (Zhang et al. 2023): bare finding names ask a chest X-ray through a query decoder.

The published weights are for 512 and 1024 pixels (a whole ResNet-50, stride 32); a variant cut after the third stage
exists for 224. Any resolution runs with any weights, and the grid follows: 16 x 16 at 512, 7 x 7 at 224.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from medground.imaging.reading import Radiograph
from medground.models.base import MatchScores, ModelInfo
from medground.models.checkpoints import Layout, closest, read_weights
from medground.models.common.adapter import Adapter, Parts
from medground.models.common.dual import encode_distinct
from medground.models.common.inputs import IMAGENET_MEAN, IMAGENET_STD, Preprocess
from medground.models.common.presence import presence, presence_margin
from medground.models.common.text import Prompts, Tokenizer
from medground.models.common.transformers import bert, blank, read_config
from medground.models.layers.query_decoder import QueryDecoder
from medground.models.layers.resnet import ResNet50, sequential_names

# The image group stores its ResNet twice; the copy that is used is `res_features`. `decoder_norm` is `decoder.norm`.
LAYOUT = Layout(
    groups=("image_encoder", "text_encoder", "model"),
    unused=("optimizer", "lr_scheduler", "config", "epoch"),
    ignore=("image_encoder.resnet.*", "*.logit_scale", "model.decoder_norm.*", "*position_ids"),
)
TEXT_LENGTH = 256
LOSS_SCALE = math.log(1 / 0.07)
"""What the authors' loss of images and reports multiplies by: the logarithm itself, not its exponential."""
NAMES = {
    "effusion": "pleural effusion",
    "mass": "lung mass",
    "nodule": "lung nodule",
    "pleural thickening": "pleural thicken",
}


class ImageEncoder(nn.Module):
    """ResNet-50 and two linear layers a cell.

    Args:
        stages: 4 for the published weights (stride 32), 3 for the 224 variant (stride 16).
    """

    def __init__(self, stages: int) -> None:
        super().__init__()
        self.backbone = ResNet50(stages)
        self.stride = 4 * 2 ** (stages - 1)
        self.res_l1 = nn.Linear(self.backbone.channels, self.backbone.channels)
        self.res_l2 = nn.Linear(self.backbone.channels, 768)

    def forward(self, pixels: Tensor) -> Tensor:
        """Map images ``(N, 3, H, W)`` to tokens ``(N, cells, 768)``, row by row."""
        cells = self.backbone(pixels).flatten(2).transpose(1, 2)
        tokens: Tensor = self.res_l2(functional.relu(self.res_l1(cells)))
        return tokens


class TextEncoder(nn.Module):
    """BERT's pooled output through two linear layers."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.bert_model = bert(config, pooler=True)
        self.mlp_embed = nn.Sequential(nn.Linear(config.hidden_size, 768), nn.GELU(), nn.Linear(768, 768))

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map token ids ``(K, T)`` to vectors ``(K, 768)``, which are not normed."""
        vectors: Tensor = self.mlp_embed(self.bert_model(input_ids=ids, attention_mask=mask).pooler_output)
        return vectors


class Decoder(nn.Module):
    """The query decoder, one norm for all that goes in and comes out, and a two-way head."""

    def __init__(self, attention: Literal["all", "last"] = "last") -> None:
        super().__init__()
        self.decoder = QueryDecoder(768, norm_inputs=True, attention=attention)
        self.mlp_head = nn.Sequential(nn.Linear(768, 2))

    def forward(self, tokens: Tensor, texts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Ask tokens ``(N, T, 768)`` about texts ``(C, 768)``.

        Returns:
            The answers ``(N, C, 768)``, two logits each, and attention ``(layers, N, C, T)``.
        """
        answers, attention = self.decoder(texts, tokens)
        return answers, self.mlp_head(answers), attention


class KadNetwork(nn.Module):
    """The three groups of a KAD file."""

    def __init__(self, stages: int, text_config: Any, attention: Literal["all", "last"] = "last") -> None:
        super().__init__()
        self.image_encoder = ImageEncoder(stages)
        self.text_encoder = TextEncoder(text_config)
        self.model = Decoder(attention)


def published(name: str) -> str:
    """Return the entry of the authors' file (``group.name``) for a parameter of :class:`KadNetwork`."""
    prefix = "image_encoder.backbone."
    inner = name.removeprefix(prefix)
    return name if inner == name else f"image_encoder.res_features.{sequential_names(inner)}"


@dataclass(kw_only=True, eq=False, repr=False)
class Kad(Adapter):
    """KAD.

    Args:
        checkpoint: the authors' ``best_valid.pt`` of KAD-512 or KAD-1024 (or of the 224 variant; told apart by shape).
        text_model: folder of ``xmcmic/Med-KEBERT``: configuration and tokenizer (weights are in the checkpoint).
        prompts: finding -> text; by default the authors' bare names.
        resolution: side of the input in pixels, 512 as published.
        layers: which cross-attention is the map: the ``last`` layer's, as published, or the ``mean`` of all four.
    """

    name: ClassVar[str] = "kad"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="KAD",
        kind="zero-shot",
        pretrained_on="chest radiographs",
        licence="MIT, as its repository says; the holder's line names another laboratory",
        citation="Zhang et al., Knowledge-enhanced visual-language pre-training on chest radiology images, "
        "Nature Communications 2023",
        obtain="best_valid.pt of KAD-512 or KAD-1024 from the authors (xiaoman-zhang/KAD); folder of xmcmic/Med-KEBERT "
        "from Hugging Face",
        seen={"mimic_cxr": "images"},
        query_dependent=True,
    )

    checkpoint: Path
    text_model: Path
    prompts: dict[str, str] | None = None
    resolution: int = 512
    layers: Literal["last", "mean"] = "last"

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`."""
        tokenizer = Tokenizer(self.text_model, TEXT_LENGTH)
        config = read_config(self.text_model, "BertConfig")
        weights = read_weights(self.checkpoint, LAYOUT)
        with torch.device("meta"):
            variants = {str(stages): KadNetwork(stages, config) for stages in (4, 3)}
        stages = int(closest(variants, weights, published=published, ignore=self.unneeded(LAYOUT)))
        network = blank(lambda: KadNetwork(stages, config, "last" if self.layers == "last" else "all"))
        self.filled(network, weights, LAYOUT, published)
        preprocess = Preprocess("squash", self.resolution, "bicubic", IMAGENET_MEAN, IMAGENET_STD)
        return Parts(network, weights, preprocess, Prompts("{label}", self.prompts, NAMES), tokenizer, [self.layers])

    def encode_texts(self, findings: Sequence[str]) -> Tensor:
        """Return the vectors ``(C, 768)`` of the findings' names."""
        ids, mask = self.tokenise([self.wording.of(finding)[0] for finding in findings])
        network: Any = self.network
        vectors: Tensor = network.text_encoder(ids.to(self.runtime.device), mask.to(self.runtime.device))
        return vectors

    def match(self, images: Sequence[Radiograph], captions: Sequence[Sequence[str]]) -> MatchScores:
        """Return dot products of pooled image vectors with caption vectors: KAD's own loss of images and reports.

        The loss takes vectors that are not normed and multiplies by ln(1 / .07), as its code does. What it was trained
        with are the entities of a report, in a row; a whole sentence is new to it.

        Raises:
            ModelError: the images do not have one equally long list of captions each.
        """
        network: Any = self.network
        places, pooled = encode_distinct(self, images, captions, lambda batch: network.image_encoder(batch).mean(1))
        texts = list(dict.fromkeys(text for own in captions for text in own))
        with self.runtime.inference():
            ids, mask = self.tokenise(texts)
            vectors = network.text_encoder(ids.to(self.runtime.device), mask.to(self.runtime.device)).double().cpu()
        encoded = dict(zip(texts, vectors, strict=True))
        raw = [
            (torch.stack([encoded[text] for text in own]) @ pooled[place].double()).numpy()
            for place, own in zip(places, captions, strict=True)
        ]
        read = np.array([self.tokenise.alike(own) for own in captions])
        return MatchScores(np.stack(raw), LOSS_SCALE, "contrastive", read)

    def ground(self, pixels: Tensor, texts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`Adapter.ground`; the map is the chosen layers' attention."""
        network: Any = self.network
        _, logits, attention = network.model(network.image_encoder(pixels), texts)
        side = pixels.shape[-1] // network.image_encoder.stride
        return presence_margin(logits), presence(logits), attention.mean(0).unflatten(-1, (side, side))
