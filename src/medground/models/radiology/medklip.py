"""MedKLIP (Wu et al. 2023): a book of 75 observations asks a chest X-ray, and attention says where.

Written from the published architecture; the authors' code has no licence and is not used. The text encoder and the
book are not in the checkpoint: both come from the user's files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from medground.models.base import ModelInfo
from medground.models.checkpoints import Layout, load_weights, read_weights
from medground.models.common import book as entity_book
from medground.models.common.adapter import Adapter
from medground.models.common.inputs import IMAGENET_MEAN, IMAGENET_STD, Preprocess
from medground.models.common.runtime import Precision, Runtime
from medground.models.common.text import Prompts, Tokenizer, read_book
from medground.models.common.transformers import load_bert
from medground.models.layers.query_decoder import QueryDecoder
from medground.models.layers.resnet import ResNet50, sequential_names

LAYOUT = Layout(under="model", unused=("optimizer", "lr_scheduler", "config", "epoch"), ignore=("cl_fc.*",))
TEXT_LENGTH = 64
GRID_STRIDE = 16


class MedklipNetwork(nn.Module):
    """Image tokens from a ResNet-50 cut after its third stage, a query decoder, and a two-way classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = ResNet50(stages=3)
        self.res_l1 = nn.Linear(1024, 1024)
        self.res_l2 = nn.Linear(1024, 256)
        self.disease_embedding_layer = nn.Linear(768, 256)
        self.decoder = QueryDecoder(256)
        self.classifier = nn.Linear(256, 2)

    def tokens(self, pixels: Tensor) -> Tensor:
        """Map images ``(N, 3, H, W)`` to tokens ``(N, H / 16 x W / 16, 256)``, row by row; no positions are added."""
        cells = self.backbone(pixels).flatten(2).transpose(1, 2)
        tokens: Tensor = self.res_l2(functional.relu(self.res_l1(cells)))
        return tokens

    def forward(self, pixels: Tensor, texts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Ask images ``(N, 3, H, W)`` about texts ``(C, 768)``.

        Returns:
            The decoder's answers ``(N, C, 256)``, two logits each ``(N, C, 2)``, and attention ``(4, N, C, tokens)``.
        """
        answers, attention = self.decoder(self.disease_embedding_layer(texts), self.tokens(pixels))
        return answers, self.classifier(answers), attention


def published(name: str) -> str:
    """Return the entry of the authors' file for a parameter of :class:`MedklipNetwork`."""
    inner = name.removeprefix("backbone.")
    return name if inner == name else f"res_features.{sequential_names(inner)}"


class Medklip(Adapter):
    """MedKLIP.

    Args:
        checkpoint: the authors' file, usually ``checkpoint_final.pth``.
        text_model: folder of ``emilyalsentzer/Bio_ClinicalBERT``: weights, configuration, tokenizer.
        book: the authors' ``observation explanation.json``.
        prompts: finding -> description, for findings that the book lacks or that shall be worded anew. Each is one more
            query and changes the other answers a little, because queries see each other.
        resolution: side of the input in pixels; the grid has a sixteenth of it.
        equalise: equalise the histogram first, as the authors do for RSNA's DICOM files.
        device: ``auto``, ``cpu``, ``cuda`` or as torch names it.
        dtype: ``float32``, or ``bfloat16`` or ``float16`` by autocast on a GPU.
        deterministic: only deterministic kernels.
        ignore: patterns of checkpoint entries that may be missing, unexpected or mis-shaped.
    """

    name: ClassVar[str] = "medklip"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="MedKLIP",
        licence="no licence published: use the authors' files with their permission",
        citation="Wu et al., MedKLIP: medical knowledge enhanced language-image pre-training, ICCV 2023",
        obtain="checkpoint and observation explanation.json from the authors (MediaBrain-SJTU/MedKLIP); folder of "
        "emilyalsentzer/Bio_ClinicalBERT from Hugging Face",
        seen={"mimic_cxr": "images"},
        query_dependent=True,
    )

    def __init__(
        self,
        *,
        checkpoint: Path,
        text_model: Path,
        book: Path,
        prompts: dict[str, str] | None = None,
        resolution: int = 224,
        equalise: bool = False,
        device: str = "auto",
        dtype: Precision = "float32",
        deterministic: bool = False,
        ignore: list[str] | None = None,
    ) -> None:
        runtime = Runtime(device, dtype, deterministic=deterministic)
        self.book = read_book(book)
        entity_book.check_book(self.book, book)
        self._tokenizer = Tokenizer(text_model, TEXT_LENGTH)
        self._bert, text_hash = load_bert(text_model)
        self._bert = self._bert.eval().requires_grad_(False).to(runtime.device)
        network = MedklipNetwork()
        weights = read_weights(checkpoint, LAYOUT)
        load_weights(network, weights, published=published, ignore=(*LAYOUT.ignore, *(ignore or ())))
        super().__init__(
            network,
            Preprocess("squash", resolution, "bilinear", IMAGENET_MEAN, IMAGENET_STD, equalise=equalise),
            Prompts("{label}", prompts),
            runtime,
            [weights.sha256, text_hash, self._tokenizer.describe(), list(self.book.items())],
        )

    def encode_texts(self, findings: Sequence[str]) -> tuple[Tensor, list[int]]:
        """Return the texts of all queries ``(Q, 768)``, and which query answers each finding."""
        asked = entity_book.queries(findings, self.book, self.prompts)
        texts, rows = [str(text) for text in self.book.values()], []
        for query in asked:
            rows.append(len(texts) if query.position is None else query.position)
            texts += [query.text] if query.position is None else []
        return class_tokens(self._bert, self._tokenizer, texts, self.runtime.device), rows

    def ground(self, pixels: Tensor, texts: Any) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`Adapter.ground`; the map is the mean attention of the four layers."""
        encoded, rows = texts
        _, logits, attention = self.network(pixels, encoded)
        side = pixels.shape[-1] // GRID_STRIDE
        maps = attention[:, :, rows].mean(0).unflatten(-1, (side, side))
        return presence_margin(logits[:, rows]), presence(logits[:, rows]), maps


def class_tokens(bert: Any, tokenizer: Tokenizer, texts: Sequence[str], device: torch.device) -> Tensor:
    """Return the last hidden state of the class token ``(K, 768)`` of each text."""
    parts = []
    for start in range(0, len(texts), 64):
        ids, mask = tokenizer(texts[start : start + 64])
        parts.append(bert(input_ids=ids.to(device), attention_mask=mask.to(device)).last_hidden_state[:, 0])
    return torch.cat(parts)


def presence(logits: Tensor) -> Tensor:
    """Return the probability of the second of two logits ``(..., 2)``: present, not absent."""
    return logits.float().softmax(-1)[..., 1]


def presence_margin(logits: Tensor) -> Tensor:
    """Return present minus absent of two logits ``(..., 2)``; its sigmoid is :func:`presence`."""
    return logits[..., 1] - logits[..., 0]
