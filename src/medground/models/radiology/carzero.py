"""CARZero (Lai et al. 2024): image and text ask each other through cross-attention, and agreement is learned.

Findings do not see each other. The published evaluation z-normalises scores over the batch, which makes a picture's
score depend on its neighbours; that is not imitated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from medground.errors import ModelError
from medground.models.base import ModelInfo
from medground.models.checkpoints import LIGHTNING, Layout, read_weights
from medground.models.common.adapter import Adapter, Parts
from medground.models.common.inputs import Preprocess
from medground.models.common.text import Prompts, Tokenizer
from medground.models.common.transformers import bert, blank, read_config
from medground.models.layers.query_decoder import QueryDecoder
from medground.models.layers.vit import VisionTransformer

# `decoder_norm` is `decoder.norm`; self-attention and its norm are in the file and never used.
LAYOUT = Layout(
    under="state_dict",
    unused=LIGHTNING,
    rename=lambda name: name.rpartition("CARZero.")[2].removeprefix("module."),
    ignore=(
        "fusion_module.decoder_norm.*",
        "fusion_module.logit_scale",
        "fusion_module.decoder.layers.*.self_attn.*",
        "fusion_module.decoder.layers.*.norm1.*",
        "text_encoder.model.pooler.*",
        "*position_ids",
    ),
)
TEXT_ROWS = 97
TEXT_LAYERS = 4
MEAN, STD = (0.4978,) * 3, (0.2449,) * 3
PREPROCESS = Preprocess("fit_then_crop", 224, "area", MEAN, STD, resize_to=256)


class Tower(nn.Module):
    """One encoder under the name that the file has for it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model


class FusionModule(nn.Module):
    """Queries ask a memory; a small network scores the answers."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = QueryDecoder(768, self_attention=False, norm_inputs=True)
        widths = (768, 1024, 512, 256)
        hidden: list[nn.Module] = []
        for before, after in pairwise(widths):
            # The third is a dropout in training; it keeps its place in the row, which numbers the entries.
            hidden += [nn.Linear(before, after), nn.ReLU(), nn.Identity()]
        self.mlp_head = nn.Sequential(*hidden, nn.Linear(widths[-1], 1))

    def forward(self, queries: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Score queries ``(Q, 768)`` against memories ``(M, T, 768)``: ``(M, Q)``, and attention ``(4, M, Q, T)``."""
        answers, attention = self.decoder(queries, memory)
        return self.mlp_head(answers)[..., 0], attention


class CarzeroNetwork(nn.Module):
    """The three parts of a CARZero file."""

    def __init__(self, text_config: Any) -> None:
        super().__init__()
        self.img_encoder = Tower(VisionTransformer())
        self.text_encoder = Tower(bert(text_config))
        self.fusion_module = FusionModule()

    def text_features(self, ids: Tensor, mask: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Return sentence vectors ``(C, D)`` and word rows ``(C, 97, D)``; see :func:`aggregate`."""
        states = self.text_encoder.model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        return aggregate(torch.stack(states[-TEXT_LAYERS:], 1), words)


def fuse(
    fusion: FusionModule, tokens: Tensor, sentences: Tensor, words: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Let images and texts ask each other.

    Args:
        fusion: the module.
        tokens: ``(N, 197, 768)``, the image's own vector first.
        sentences: ``(C, 768)``.
        words: ``(C, 97, 768)``; the zero rows behind a text are asked too, as published.

    Returns:
        Scores ``(N, C)`` of texts asking images and of images asking texts, and both attentions, ``(4, N, C, 197)``
        and ``(4, C, N, 98)``.
    """
    by_text, image_attention = fusion(sentences, tokens)
    by_image, text_attention = fusion(tokens[:, 0], torch.cat([sentences[:, None], words], 1))
    return by_text, by_image.T, image_attention, text_attention


def saliency(attention: Tensor) -> Tensor:
    """Return maps ``(N, C, h, w)`` of attention ``(4, N, C, 1 + h w)``: mean over layers, the class token dropped."""
    cells = attention.mean(0)[..., 1:]
    side = round(cells.shape[-1] ** 0.5)
    return cells.reshape(*cells.shape[:2], side, side)


def clean(text: str) -> str:
    """Return a text as the authors clean it: sentences of one word are dropped, and with them a bare finding.

    >>> clean("No pneumothorax. Atelectasis. 2. Mild edema")
    'no pneumothorax mild edema'
    """
    kept = []
    for sentence in re.split(r"[0-9]+\.|\.", text.replace("\n", " ")):
        words = re.findall(r"\w+", sentence.lower())
        if len(words) > 1:
            ascii_only = [word.encode("ascii", "ignore").decode() for word in words]
            kept.append(" ".join(word for word in ascii_only if word))
    return " ".join(kept)


def cleaned(finding: str, prompt: str, model: str) -> str:
    """Return a prompt as it is read; see :func:`clean`.

    Raises:
        ModelError: nothing is left of it.
    """
    if text := clean(prompt):
        return text
    raise ModelError(
        f"nothing is left of a prompt: {model}'s text cleaning drops sentences of one word",
        where=finding,
        got=prompt,
        fix=f"prompts: {{{finding}: There is {prompt.lower()}}}",
    )


def word_weights(tokenizer: Any, ids: Tensor) -> Tensor:
    """Return which pieces make which word, ``(C, T, T)``: row w of a text has 1 at the pieces of its w-th word.

    A piece that starts with ``##`` belongs to the word before it. ``[CLS]`` and ``[SEP]`` count as words; what follows
    ``[SEP]`` is left out.
    """
    weights = torch.zeros(*ids.shape, ids.shape[1])
    for text, row in enumerate(ids.tolist()):
        word = -1
        for position, token in enumerate(tokenizer.convert_ids_to_tokens(row)):
            word += not token.startswith("##")
            weights[text, word, position] = 1
            if token == tokenizer.sep_token:
                break
    return weights


def aggregate(hidden: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """Return sentence vectors ``(C, D)`` and word rows ``(C, T, D)`` of hidden states ``(C, L, T, D)``.

    Pieces are summed into words, and layers are summed; a sentence is the mean over all T rows, zero rows included.
    """
    rows = torch.einsum("cwt,cltd->clwd", words.to(hidden), hidden)
    return rows.mean(2).sum(1), rows.sum(1)


@dataclass(kw_only=True, eq=False, repr=False)
class Carzero(Adapter):
    """CARZero.

    Args:
        checkpoint: the authors' ``CARZero_best_model.ckpt``.
        text_model: folder of ``Laihaoran/BioClinicalMPBERT``: configuration and tokenizer (weights are in the
            checkpoint).
        template: prompt with ``{label}`` for the finding; of two words or more.
        prompts: finding -> prompt.
    """

    name: ClassVar[str] = "carzero"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="CARZero",
        kind="zero-shot",
        pretrained_on="chest radiographs",
        licence="Apache-2.0",
        citation="Lai et al., CARZero: cross-attention alignment for radiology zero-shot classification, CVPR 2024",
        obtain="CARZero_best_model.ckpt from the authors (laihaoran/CARZero); folder of Laihaoran/BioClinicalMPBERT "
        "from Hugging Face",
        seen={"mimic_cxr": "images"},
    )

    checkpoint: Path
    text_model: Path
    template: str = "There is {label}"
    prompts: dict[str, str] | None = None

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`."""
        tokenizer = Tokenizer(self.text_model, TEXT_ROWS, pad_to_length=True)
        config = read_config(self.text_model, "BertConfig")
        weights = read_weights(self.checkpoint, LAYOUT)
        network = self.filled(blank(lambda: CarzeroNetwork(config)), weights, LAYOUT)
        return Parts(network, weights, PREPROCESS, Prompts(self.template, self.prompts), tokenizer)

    def encode_texts(self, findings: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return sentence vectors ``(C, 768)`` and word rows ``(C, 97, 768)``.

        Raises:
            ModelError: nothing is left of a prompt after the authors' cleaning.
        """
        ids, mask = self.tokenise([cleaned(finding, self.wording.of(finding)[0], "CARZero") for finding in findings])
        words = word_weights(self.tokenise.inner, ids)
        network: Any = self.network
        device = self.runtime.device
        features: tuple[Tensor, Tensor] = network.text_features(ids.to(device), mask.to(device), words.to(device))
        return features

    def ground(self, pixels: Tensor, texts: Any) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`Adapter.ground`; the sigmoid is ours, the authors rank raw scores."""
        sentences, words = texts
        network: Any = self.network
        tokens = network.img_encoder.model(pixels)
        by_text, by_image, attention, _ = fuse(network.fusion_module, tokens, sentences, words)
        scores = (by_text + by_image) / 2
        return scores, scores.float().sigmoid(), saliency(attention)
