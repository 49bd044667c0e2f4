"""MedCLIP (Wang et al. 2022): Swin-T or ResNet-50 with Bio_ClinicalBERT.

Pooling and projection of the image tower are linear and without bias, so the map is lossless: its mean over the 49
cells is the image's cosine with the text. The text vector is a mean over all tokens of its batch row, padding included,
so it depends on its company: one finding's prompts are one batch, as the authors do it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from medground.models.base import ModelInfo
from medground.models.checkpoints import Layout, closest, read_weights
from medground.models.common.adapter import Parts
from medground.models.common.dual import DualEncoder
from medground.models.common.inputs import Preprocess
from medground.models.common.saliency import gradcam
from medground.models.common.text import Prompts, Tokenizer
from medground.models.common.transformers import bert, bert_config_or, blank
from medground.models.layers.resnet import ResNet50

LAYOUT = Layout(ignore=("*relative_position_index", "*position_ids", "text_model.model.pooler.*"))
TEXT_LENGTH = 77
JOINT = 512
SCALE_LIMIT = 4.6052
MEAN, STD = (0.5862785803043838,) * 3, (0.27950088968644304,) * 3
# Bio_ClinicalBERT is a cased BERT-base.
VOCABULARY = 28996
# Names of Swin's parameters in `transformers` 5, and the former ones that published files hold.
_SWIN = {
    "attention.q_proj": "attention.self.query",
    "attention.k_proj": "attention.self.key",
    "attention.v_proj": "attention.self.value",
    "attention.o_proj": "attention.output.dense",
    "attention.relative_position_bias.relative_position_bias_table": "attention.self.relative_position_bias_table",
    "mlp.fc1": "intermediate.dense",
    "mlp.fc2": "output.dense",
}


class SwinTower(nn.Module):
    """Swin-T and its projection."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import SwinConfig, SwinModel

        self.model: Any = blank(lambda: SwinModel(SwinConfig(), add_pooling_layer=False))
        self.projection_head = nn.Linear(768, JOINT, bias=False)

    def cells(self, pixels: Tensor) -> Tensor:
        """Map images ``(N, 3, 224, 224)`` to normed tokens ``(N, 49, 768)``, row by row."""
        tokens: Tensor = self.model(pixel_values=pixels).last_hidden_state
        return tokens

    def project(self, cells: Tensor) -> Tensor:
        """Map tokens or their mean to the joint space."""
        joint: Tensor = self.projection_head(cells)
        return joint


class ResNetWithHead(ResNet50):
    """ResNet-50 whose classifier is the projection."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(self.channels, JOINT, bias=False)


class ResNetTower(nn.Module):
    """ResNet-50 and its projection."""

    def __init__(self) -> None:
        super().__init__()
        self.model = ResNetWithHead()

    def cells(self, pixels: Tensor) -> Tensor:
        """Map images ``(N, 3, H, W)`` to features ``(N, cells, 2048)``, row by row."""
        features: Tensor = self.model(pixels).flatten(2).transpose(1, 2)
        return features

    def project(self, cells: Tensor) -> Tensor:
        """Map features or their mean to the joint space."""
        joint: Tensor = self.model.fc(cells)
        return joint


class TextTower(nn.Module):
    """BERT: hidden states 1, 2 and last, averaged over tokens and layers, projected."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.model = bert(config)
        self.projection_head = nn.Linear(config.hidden_size, JOINT, bias=False)

    def forward(self, ids: Tensor, mask: Tensor, mask_padding: bool = False) -> Tensor:
        """Map one batch of texts to un-normed vectors ``(K, 512)``.

        Args:
            ids: ``(K, T)``, padded to the batch's longest.
            mask: ``(K, T)``; attention always leaves padding out.
            mask_padding: leave padding out of the mean, too, which is not what the authors do.
        """
        hidden = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        layers = torch.stack([hidden[1], hidden[2], hidden[-1]], 1)
        weight = mask[:, None, :, None].to(layers) if mask_padding else torch.ones_like(layers[..., :1])
        vectors: Tensor = self.projection_head(((layers * weight).sum(2) / weight.sum(2)).mean(1))
        return vectors


class MedclipNetwork(nn.Module):
    """Both towers and the temperature."""

    def __init__(self, tower: Literal["swin", "resnet"], text_config: Any) -> None:
        super().__init__()
        self.vision_model = SwinTower() if tower == "swin" else ResNetTower()
        self.text_model = TextTower(text_config)
        self.logit_scale = nn.Parameter(torch.zeros(()))

    def scale(self) -> Tensor:
        """Return the multiplier of cosines."""
        return temperature(self.logit_scale)


def temperature(stored: Tensor) -> Tensor:
    """Return the multiplier of cosines for a stored logarithm, which is clamped first, as published."""
    return stored.clamp(0, SCALE_LIMIT).exp()


def published(name: str) -> str:
    """Return the entry of the authors' file for a parameter of :class:`MedclipNetwork`."""
    match = re.fullmatch(r"(vision_model\.model\.encoder\.layers\.\d+\.blocks\.\d+)\.(.+?)(\.weight|\.bias|)", name)
    return f"{match[1]}.{_SWIN.get(match[2], match[2])}{match[3]}" if match else name


@dataclass(kw_only=True, eq=False, repr=False)
class Medclip(DualEncoder):
    """MedCLIP.

    Args:
        checkpoint: the authors' ``pytorch_model.bin`` (Swin-T or ResNet-50, told apart by its entries), or its folder.
        text_model: folder of ``emilyalsentzer/Bio_ClinicalBERT``: tokenizer, and configuration if there is one.
        ensemble: a finding's score over its prompts: ``mean`` (published) or ``max``.
        mask_padding: leave padding out of the text's mean; the authors leave it in.
        saliency: ``similarity`` (the lossless map) or ``gradcam``.
    """

    name: ClassVar[str] = "medclip"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="MedCLIP",
        kind="zero-shot",
        pretrained_on="chest radiographs",
        licence="MIT, as the LICENSE of its repository says; its setup.py names BSD",
        citation="Wang et al., MedCLIP: contrastive learning from unpaired medical images and text, EMNLP 2022",
        obtain="pytorch_model.bin from the address in the authors' medclip_vit_weight.txt or medclip_resnet_weight.txt "
        "(RyanWangZf/MedCLIP); folder of emilyalsentzer/Bio_ClinicalBERT from Hugging Face",
        seen={"mimic_cxr": "images", "chexpert": "images and labels of the training set"},
    )
    rules: ClassVar[tuple[str, ...]] = ("similarity", "gradcam")
    tower_rules: ClassVar[tuple[str, ...]] = ()

    checkpoint: Path
    text_model: Path
    ensemble: Literal["mean", "max"] = "mean"
    mask_padding: bool = False

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`."""
        tokenizer = Tokenizer(self.text_model, TEXT_LENGTH)
        config = bert_config_or(self.text_model, vocab_size=VOCABULARY)
        weights = read_weights(self.checkpoint, LAYOUT)
        with torch.device("meta"):
            variants = {"swin": MedclipNetwork("swin", config), "resnet": MedclipNetwork("resnet", config)}
        fitting = closest(variants, weights, published=published, ignore=self.unneeded(LAYOUT))
        network = blank(lambda: MedclipNetwork("swin" if fitting == "swin" else "resnet", config))
        self.filled(network, weights, LAYOUT, published)
        preprocess = Preprocess("pad_square", 224, "bicubic", MEAN, STD)
        return Parts(network, weights, preprocess, self.words(), tokenizer, [self.ensemble, self.mask_padding])

    def image_features(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """See :meth:`DualEncoder.image_features`; the mean of the cells is the image's vector."""
        network: Any = self.network
        tower = network.vision_model
        cells = tower.cells(pixels)
        side = math.isqrt(cells.shape[1])
        return tower.project(cells.mean(1)), tower.project(cells).unflatten(1, (side, side))

    def embed(self, texts: Sequence[str]) -> Tensor:
        """See :meth:`DualEncoder.embed`; the texts are one padded batch."""
        ids, mask = (part.to(self.runtime.device) for part in self.tokenise(texts))
        network: Any = self.network
        vectors: Tensor = network.text_model(ids, mask, self.mask_padding)
        return vectors

    def caption_vectors(self, captions: Sequence[str]) -> Tensor:
        """Return the normed vectors ``(K, 512)``, each caption by itself: in company padding would enter its mean."""
        with self.runtime.inference():
            vectors = torch.cat([self.embed([caption]) for caption in captions])
            return functional.normalize(vectors.float().cpu(), dim=-1)

    def scale(self) -> float:
        """See :meth:`DualEncoder.scale`."""
        network: Any = self.network
        return float(network.scale())

    def encoded(self, prompts: Prompts, findings: Sequence[str]) -> Any:
        """Return each finding's normed prompt vectors ``(K, 512)``; its prompts are one batch."""
        return [functional.normalize(self.embed(prompts.of(finding)), dim=-1) for finding in findings]

    def scores(self, vectors: Tensor, texts: Any) -> Tensor:
        """Return the mean or greatest cosine of each finding's prompts ``(n, C)``; of single texts, the cosine."""
        if isinstance(texts, Tensor):
            return super().scores(vectors, texts)
        return torch.stack([self._joined(super(Medclip, self).scores(vectors, own)) for own in texts], -1)

    def maps(self, pixels: Tensor, vectors: Tensor, cells: Tensor, texts: Any) -> Tensor:
        """Return maps ``(n, C, 7, 7)``; with ``similarity`` their mean is the cosine of the prompt it is made for."""
        del pixels
        scaled = cells / vectors.norm(dim=-1)[:, None, None, None]
        maps = []
        for own in texts:
            per_prompt = scaled @ own.T
            if self.ensemble == "max":
                # the map of the prompt that gave the score
                best = super().scores(vectors, own).argmax(-1)
                maps.append(per_prompt[torch.arange(len(cells)), ..., best])
            else:
                maps.append(per_prompt.mean(-1))
        return torch.stack(maps, 1)

    def _joined(self, cosines: Tensor) -> Tensor:
        return cosines.amax(-1) if self.ensemble == "max" else cosines.mean(-1)

    def seen(self, pixels: Tensor, texts: Any) -> tuple[Tensor, Tensor]:
        """See :meth:`DualEncoder.seen`; Grad-CAM is taken on the cells before their mean and projection."""
        if self.saliency != "gradcam":
            return super().seen(pixels, texts)
        network: Any = self.network
        tower = network.vision_model
        cells = tower.cells(pixels)
        side = math.isqrt(cells.shape[1])
        flat = gradcam(cells, lambda part: self.scores(tower.project(part.mean(1)), texts) * self.scale())
        return tower.project(cells.mean(1)), flat.reshape(*flat.shape[:2], side, side)
