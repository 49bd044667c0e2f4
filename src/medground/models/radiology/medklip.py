"""MedKLIP (Wu et al. 2023): a book of 75 observations asks a chest X-ray, and attention says where.

Written from the published architecture; the authors' code has no licence and is not used. The text encoder and the
book are not in the checkpoint: both come from the user's files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional

from medground.models.base import ModelInfo
from medground.models.checkpoints import Layout
from medground.models.common.adapter import Parts
from medground.models.common.book_adapter import BookAdapter
from medground.models.common.presence import presence, presence_margin
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


@dataclass(kw_only=True, eq=False, repr=False)
class Medklip(BookAdapter):
    """MedKLIP.

    Args:
        checkpoint: the authors' file, usually ``checkpoint_final.pth``.
        resolution: side of the input in pixels; the grid has a sixteenth of it.
    """

    name: ClassVar[str] = "medklip"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="MedKLIP",
        kind="zero-shot",
        pretrained_on="chest radiographs",
        licence="no licence published: use the authors' files with their permission",
        citation="Wu et al., MedKLIP: medical knowledge enhanced language-image pre-training, ICCV 2023",
        obtain="checkpoint and observation explanation.json from the authors (MediaBrain-SJTU/MedKLIP); folder of "
        "emilyalsentzer/Bio_ClinicalBERT from Hugging Face",
        seen={"mimic_cxr": "images"},
        query_dependent=True,
    )

    resolution: int = 224

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`."""
        return self.with_book(MedklipNetwork(), LAYOUT, published, self.resolution, [])

    def encode_texts(self, findings: Sequence[str]) -> tuple[Tensor, list[int]]:
        """Return the texts of all queries ``(Q, 768)``, and which query answers each finding."""
        asked = self.queries(findings)
        texts, rows = [str(text) for text in self.entries.values()], []
        for query in asked:
            rows.append(len(texts) if query.position is None else query.position)
            texts += [query.text] if query.position is None else []
        return self.class_tokens(texts), rows

    def ground(self, pixels: Tensor, texts: Any) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`Adapter.ground`; the map is the mean attention of the four layers."""
        encoded, rows = texts
        _, logits, attention = self.network(pixels, encoded)
        side = pixels.shape[-1] // GRID_STRIDE
        maps = attention[:, :, rows].mean(0).unflatten(-1, (side, side))
        return presence_margin(logits[:, rows]), presence(logits[:, rows]), maps
