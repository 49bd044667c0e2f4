"""BioViL (Boecking et al. 2022) and BioViL-T (Bannur et al. 2023): a ResNet-50 and CXR-BERT in 128 dimensions.

Written from the published architecture (MIT). Every cell of the last stage is projected; the picture's vector is their
mean, and a map is the cosine of every cell with the text, smoothed by a Gaussian of 1.5 cells. BioViL-T was trained
with a picture of an earlier examination; without one, as here, a learned vector takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from scipy import ndimage
from torch import Tensor, nn
from torch.nn import functional

from medground.models.base import ModelInfo
from medground.models.checkpoints import Layout, load_weights, read_weights
from medground.models.common.adapter import Parts
from medground.models.common.dual import DualEncoder
from medground.models.common.inputs import Preprocess
from medground.models.common.text import Prompts, Tokenizer
from medground.models.common.transformers import bert, blank, read_config
from medground.models.layers.resnet import ResNet50

JOINT, HALF = 128, 256
RESIZED = 512
CROPS = {"biovil": 480, "biovil_t": 448}
SIGMA = 1.5
# What both files hold beside what one picture needs: ResNet's own head, and the pooler over two examinations.
IMAGE_LAYOUT = Layout(ignore=("encoder.encoder.fc.*", "encoder.vit_pooler.*", "classifier.*"))
TEXT_LAYOUT = Layout(ignore=("cls.*", "bert.pooler.*", "*position_ids"))


class Projector(nn.Module):
    """Two 1x1 convolutions with a batch norm and a ReLU between them, for every cell."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.model = nn.Sequential(
            nn.Conv2d(channels, JOINT, 1, bias=False), nn.BatchNorm2d(JOINT), nn.ReLU(), nn.Conv2d(JOINT, JOINT, 1)
        )

    def forward(self, cells: Tensor) -> Tensor:
        """Map ``(N, channels, h, w)`` to ``(N, 128, h, w)``."""
        projected: Tensor = self.model(cells)
        return projected


class Trunk(nn.Module):
    """BioViL's image encoder: ``channels`` numbers a cell."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = ResNet50()
        self.channels = self.encoder.channels

    def forward(self, pixels: Tensor) -> Tensor:
        """Map ``(N, 3, H, W)`` to ``(N, 2048, H / 32, W / 32)``."""
        cells: Tensor = self.encoder(pixels)
        return cells


class TemporalTrunk(Trunk):
    """BioViL-T's: cells in 256 dimensions, and beside each what has changed, which is a constant for one picture."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone_to_vit = nn.Conv2d(self.encoder.channels, HALF, 1, bias=False)
        self.missing_previous_emb = nn.Parameter(torch.zeros(1, HALF, 1, 1))
        self.channels = 2 * HALF

    def forward(self, pixels: Tensor) -> Tensor:
        """Map ``(N, 3, H, W)`` to ``(N, 512, H / 32, W / 32)``."""
        cells = self.backbone_to_vit(self.encoder(pixels))
        return torch.cat([cells, self.missing_previous_emb.expand_as(cells)], 1)


class ImageTower(nn.Module):
    """Trunk and projector, as the image file holds them."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.encoder = TemporalTrunk() if variant == "biovil_t" else Trunk()
        self.projector = Projector(self.encoder.channels)

    def forward(self, pixels: Tensor) -> Tensor:
        """Map ``(N, 3, H, W)`` to cells ``(N, 128, H / 32, W / 32)`` of the joint space."""
        cells: Tensor = self.projector(self.encoder(pixels))
        return cells


class ProjectionHead(nn.Module):
    """From the class token to the joint space."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense_to_hidden = nn.Linear(width, JOINT)
        self.LayerNorm = nn.LayerNorm(JOINT, eps=1e-12)
        self.dense_to_output = nn.Linear(JOINT, JOINT)

    def forward(self, states: Tensor) -> Tensor:
        """Map ``(K, width)`` to un-normed vectors ``(K, 128)``."""
        vectors: Tensor = self.dense_to_output(self.LayerNorm(functional.gelu(self.dense_to_hidden(states))))
        return vectors


class TextTower(nn.Module):
    """CXR-BERT with its projection head, as the text folder holds them."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.bert = bert(config)
        self.cls_projection_head = ProjectionHead(config.hidden_size)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Map token ids and mask ``(K, T)`` to un-normed vectors ``(K, 128)``."""
        states = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
        vectors: Tensor = self.cls_projection_head(states)
        return vectors


class BiovilNetwork(nn.Module):
    """Both towers."""

    def __init__(self, variant: str, config: Any) -> None:
        super().__init__()
        self.image = ImageTower(variant)
        self.text = TextTower(config)


@dataclass(kw_only=True, eq=False, repr=False)
class Biovil(DualEncoder):
    """BioViL, or BioViL-T on single pictures.

    Args:
        checkpoint: ``biovil_image_resnet50_proj_size_128.pt``, or ``biovil_t_image_model_proj_size_128.pt``.
        text_model: folder of ``microsoft/BiomedVLP-CXR-BERT-specialized`` or ``microsoft/BiomedVLP-BioViL-T``: weights,
            configuration, tokenizer.
        variant: which of the two the files are.
        saliency: ``similarity``.
        smooth: width of the Gaussian over a map, in cells; 0: none.
    """

    name: ClassVar[str] = "biovil"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="BioViL",
        kind="zero-shot",
        licence="MIT",
        citation="Boecking et al., Making the most of text semantics to improve biomedical vision-language processing, "
        "ECCV 2022",
        obtain="biovil_image_resnet50_proj_size_128.pt and the folder of microsoft/BiomedVLP-CXR-BERT-specialized from "
        "Hugging Face",
        seen={"mimic_cxr": "images and reports"},
    )
    rules: ClassVar[tuple[str, ...]] = ("similarity",)

    checkpoint: Path
    text_model: Path
    template: str | list[str] = "There is {label}"
    variant: Literal["biovil", "biovil_t"] = "biovil"
    smooth: float = SIGMA

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`."""
        config = read_config(self.text_model, "BertConfig")
        network = blank(lambda: BiovilNetwork(self.variant, config))
        weights = read_weights(self.checkpoint, IMAGE_LAYOUT)
        self.filled(network.image, weights, IMAGE_LAYOUT)
        texts = read_weights(self.text_model, TEXT_LAYOUT)
        load_weights(network.text, texts, ignore=self.unneeded(TEXT_LAYOUT))
        # Grey levels over the whole range, and no norm after that.
        plain = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
        preprocess = Preprocess("center_crop", CROPS[self.variant], "bilinear", *plain, RESIZED, stretch=True)
        tokenizer = Tokenizer(self.text_model, config.max_position_embeddings)
        return Parts(network, weights, preprocess, self.words(), tokenizer, [texts.sha256, self.variant, self.smooth])

    def takes_size(self, size: int) -> bool:
        """See :meth:`DualEncoder.takes_size`: a convolutional tower takes any that leaves it a cell."""
        return size >= 32

    def image_features(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`DualEncoder.image_features`."""
        network: Any = self.network
        cells = network.image(pixels).permute(0, 2, 3, 1)
        return cells.mean((1, 2)), cells

    def embed(self, texts: Sequence[str]) -> Tensor:
        """See :meth:`DualEncoder.embed`."""
        return super().embed([text.rstrip("!?.") for text in texts])  # as the authors cut them

    def encoded(self, prompts: Prompts, findings: Sequence[str]) -> Any:
        """Return one normed vector a finding ``(C, E)``: the mean of its prompts' un-normed ones, as published."""
        texts = [prompts.of(finding) for finding in findings]
        vectors = self.embed([text for own in texts for text in own])
        parts = torch.split(vectors, [len(own) for own in texts])
        return functional.normalize(torch.stack([part.mean(0) for part in parts]), dim=-1)

    def scale(self) -> float:
        """See :meth:`DualEncoder.scale`: the files store no temperature."""
        return 1.0

    def maps(self, pixels: Tensor, vectors: Tensor, cells: Tensor, texts: Tensor) -> Tensor:
        """See :meth:`DualEncoder.maps`."""
        plain = super().maps(pixels, vectors, cells, texts)
        if not self.smooth:
            return plain
        smoothed = ndimage.gaussian_filter(plain.float().cpu().numpy(), (0, 0, self.smooth, self.smooth))
        return torch.from_numpy(smoothed).to(plain.device)
