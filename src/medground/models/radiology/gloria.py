"""GLoRIA (Huang et al. 2021): a ResNet-50 and Bio_ClinicalBERT, matched as wholes and word by word.

Written from the published architecture (Apache-2.0). A score is the mean of the cosine of picture and sentence and of
five times the best cosine of a word with what it attends to in the picture; of several prompts the best counts. A map
is the attention of that prompt's words, averaged.

The authors' code takes the number of characters of a prompt for its number of words, so that empty rows take part in
the attention: ``rows: characters`` does so too, ``words``, the default, takes the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from medground.models.base import ModelInfo
from medground.models.checkpoints import LIGHTNING, Layout, read_weights
from medground.models.common.adapter import Adapter, Parts
from medground.models.common.inputs import Preprocess
from medground.models.common.text import Prompts, Tokenizer
from medground.models.common.transformers import bert, bert_config_or, blank
from medground.models.layers.resnet import ResNet50
from medground.models.radiology.carzero import aggregate, cleaned, word_weights

LAYOUT = Layout(
    under="state_dict",
    unused=LIGHTNING,
    rename=lambda name: name.rpartition("gloria.")[2],
    ignore=("text_encoder.model.pooler.*", "*position_ids", "img_encoder.model.fc.*"),
)
ROWS, LAYERS, WIDTH = 97, 4, 768
SEEN = 299
"""Pixels of the side that the image tower sees: its input is enlarged to them."""
SHARPNESS, WORD_WEIGHT = 4.0, 5.0
"""The temperatures of attention over cells, and of words against the sentence."""
PREPROCESS = Preprocess("fit_then_crop", 224, "area", (0.5,) * 3, (0.5,) * 3, resize_to=256)


class ImageEncoder(nn.Module):
    """ResNet-50: its third stage gives cells, its fourth the picture's vector."""

    def __init__(self) -> None:
        super().__init__()
        self.model = ResNet50()
        self.global_embedder = nn.Linear(self.model.channels, WIDTH)
        self.local_embedder = nn.Conv2d(self.model.channels // 2, WIDTH, 1, bias=False)

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Map ``(N, 3, 224, 224)`` to vectors ``(N, 768)`` and cells ``(N, 768, 19, 19)``."""
        enlarged = functional.interpolate(pixels, (SEEN, SEEN), mode="bilinear", align_corners=True)
        *_, third, fourth = self.model.stages(enlarged)
        return self.global_embedder(fourth.mean((2, 3))), self.local_embedder(third)


class TextEncoder(nn.Module):
    """BERT under the name that the file has for it."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.model = bert(config)


class GloriaNetwork(nn.Module):
    """Both encoders."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.img_encoder = ImageEncoder()
        self.text_encoder = TextEncoder(config)


class Asked(NamedTuple):
    """One prompt: its sentence ``(768,)``, the rows that attend ``(R, 768)``, and how many of them are its words."""

    sentence: Tensor
    rows: Tensor
    words: int


def attend(words: Tensor, cells: Tensor) -> Tensor:
    """Return where words look, ``(N, W, cells)``, rows adding to 1.

    Words first share each cell among them; each word then shares itself among the cells.

    Args:
        words: ``(W, D)``.
        cells: ``(N, D, cells)``.
    """
    shared = torch.einsum("wd,ndc->nwc", words, cells).softmax(1)
    return (shared * SHARPNESS).softmax(-1)


def agreement(asked: Asked, vectors: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
    """Return scores ``(N,)`` of one prompt and maps ``(N, cells)``.

    Args:
        asked: the prompt.
        vectors: ``(N, D)``.
        cells: ``(N, D, cells)``.
    """
    attention = attend(asked.rows, cells)
    seen = torch.einsum("nwc,ndc->nwd", attention, cells)
    by_word = functional.cosine_similarity(asked.rows[None], seen, dim=-1)
    whole = functional.cosine_similarity(asked.sentence[None], vectors, dim=-1)
    return (WORD_WEIGHT * by_word.amax(1) + whole) / 2, attention[:, : asked.words].mean(1)


@dataclass(kw_only=True, eq=False, repr=False)
class Gloria(Adapter):
    """GLoRIA with a ResNet-50.

    Args:
        checkpoint: the authors' ``chexpert_resnet50.ckpt``.
        text_model: folder of ``emilyalsentzer/Bio_ClinicalBERT``: tokenizer, and configuration if there is one (weights
            are in the checkpoint).
        template: prompt with ``{label}``, of two words or more, or several, of which the best counts.
        prompts: finding -> prompt, or several.
        rows: which rows of a prompt take part in the attention: its ``words``, or as many as it has ``characters``, as
            the authors' code does.
    """

    name: ClassVar[str] = "gloria"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="GLoRIA",
        kind="zero-shot",
        licence="Apache-2.0",
        citation="Huang et al., GLoRIA: a multimodal global-local representation learning framework for "
        "label-efficient medical image recognition, ICCV 2021",
        obtain="chexpert_resnet50.ckpt from the authors (marshuang80/gloria); folder of "
        "emilyalsentzer/Bio_ClinicalBERT from Hugging Face",
        seen={"chexpert": "images and reports of the training set"},
    )

    checkpoint: Path
    text_model: Path
    template: str | list[str] = "there is {label}"
    prompts: dict[str, str | list[str]] | None = None
    rows: Literal["words", "characters"] = "words"

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`."""
        config = bert_config_or(self.text_model, vocab_size=28996)
        tokenizer = Tokenizer(self.text_model, ROWS, pad_to_length=True)
        weights = read_weights(self.checkpoint, LAYOUT)
        network = self.filled(blank(lambda: GloriaNetwork(config)), weights, LAYOUT)
        return Parts(network, weights, PREPROCESS, Prompts(self.template, self.prompts), tokenizer, [self.rows])

    def encode_texts(self, findings: Sequence[str]) -> list[list[Asked]]:
        """Return what each finding's prompts become.

        Raises:
            ModelError: nothing is left of a prompt after the authors' cleaning.
        """
        return [[self._asked(finding, text) for text in self.wording.of(finding)] for finding in findings]

    def _asked(self, finding: str, text: str) -> Asked:
        ids, mask = self.tokenise([cleaned(finding, text, "GLoRIA")])
        network: Any = self.network
        device = self.runtime.device
        states = network.text_encoder.model(
            input_ids=ids.to(device), attention_mask=mask.to(device), output_hidden_states=True
        ).hidden_states
        pieces = word_weights(self.tokenise.inner, ids)
        sentences, rows = aggregate(torch.stack(states[-LAYERS:], 1), pieces.to(device))
        # The first row is the class token's; of the words' rows the last is that of [SEP].
        words = int((pieces[0].sum(-1) > 0).sum()) - 2
        count = words if self.rows == "words" else min(len([c for c in text if c != "["]), ROWS - 1)
        return Asked(sentences[0], rows[0, 1 : 1 + count], words)

    def ground(self, pixels: Tensor, texts: Any) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`Adapter.ground`; the probability, the sigmoid of a score, is ours."""
        network: Any = self.network
        vectors, grid = network.img_encoder(pixels)
        cells = grid.flatten(2)
        scores, maps = [], []
        for prompts in texts:
            each = [agreement(asked, vectors, cells) for asked in prompts]
            values = torch.stack([value for value, _ in each])
            best = values.argmax(0)
            scores.append(values.amax(0))
            maps.append(torch.stack([own for _, own in each])[best, torch.arange(len(best), device=best.device)])
        both = torch.stack(scores, 1)
        return both, both.sigmoid(), torch.stack(maps, 1).reshape(*both.shape, *grid.shape[2:])
