"""MAVL (Phan et al. 2024): each disease asks with nine queries, its description and eight visual aspects.

Written from the published architecture; the authors' code has no licence and is not used. The text encoder and both
books come from the user's files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from medground.errors import ConfigError, ModelError
from medground.models.base import ModelInfo
from medground.models.checkpoints import Layout
from medground.models.common import book as entity_book
from medground.models.common.adapter import Parts
from medground.models.common.book_adapter import BookAdapter
from medground.models.common.presence import presence, presence_margin
from medground.models.common.text import key_of, read_book
from medground.models.layers.attention_pool import AttentionPool
from medground.models.layers.query_decoder import QueryDecoder
from medground.models.layers.resnet import ResNet50, sequential_names
from medground.models.radiology.medklip import GRID_STRIDE

LAYOUT = Layout(
    under="model",
    unused=("optimizer", "lr_scheduler", "config", "epoch"),
    rename=lambda name: name.replace("module.", ""),
    ignore=("*temp*", "location_emb.*"),
)
CONCEPTS = 9
MAP_CONCEPTS = (0, 6, 7, 8)  # description, patterns, shape, texture: the authors' choice for maps
RESOLUTION = 224  # the attention pool knows 14 x 14 positions
REFERENCES = (entity_book.POSITIONS["normal"], entity_book.POSITIONS["clear"])
Reduction = Literal["avg", "max", "global"]


class MavlNetwork(nn.Module):
    """MedKLIP's plan with convolutions behind the backbone, a pooled image vector, and nine answers a disease."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = ResNet50(stages=3)
        self.res_l1 = nn.Sequential(nn.Conv2d(1024, 1024, 1), nn.PReLU())
        self.res_l2 = nn.Conv2d(1024, 256, 1)
        self.pool = AttentionPool((RESOLUTION // GRID_STRIDE) ** 2, 1024, 256, heads=8)
        self.disease_embedding_layer = nn.Linear(768, 256)
        self.decoder = QueryDecoder(256)
        self.classifier = nn.Linear(CONCEPTS * 256, 2)

    def tokens(self, features: Tensor) -> Tensor:
        """Map backbone features ``(N, 1024, h, w)`` to tokens ``(N, h w, 256)``, row by row."""
        tokens: Tensor = self.res_l2(self.res_l1(features)).flatten(2).transpose(1, 2)
        return tokens

    def forward(self, features: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        """Ask backbone features ``(N, 1024, h, w)`` about texts ``(D, 9, 768)``.

        Returns:
            Two logits a disease ``(N, D, 2)`` and attention ``(4, N, 9 D, h w)``, disease by disease.
        """
        queries = self.disease_embedding_layer(texts.flatten(0, 1))
        answers, attention = self.decoder(queries, self.tokens(features))
        return self.classifier(answers.reshape(len(features), len(texts), -1)), attention

    def concept_cosines(self, features: Tensor, texts: Tensor) -> Tensor:
        """Return cosines ``(N, D, 9)`` of the pooled image vector with every projected concept."""
        image = functional.normalize(self.pool(features)[0], dim=-1)
        return torch.einsum("ne,dce->ndc", image, functional.normalize(self.disease_embedding_layer(texts), dim=-1))


def published(name: str) -> str:
    """Return the entry of the authors' file for a parameter of :class:`MavlNetwork`."""
    inner = name.removeprefix("backbone.")
    return name if inner == name else f"backbone.{sequential_names(inner)}"


def text_probability(cosines: Tensor) -> Tensor:
    """Return the text mode's probability ``(N, D)`` from cosines ``(N, D, 9)``.

    Per concept a softmax, without a temperature, of a reference's cosine and the disease's; averaged over the
    references "normal" and "clear", and over the concepts.
    """
    against = [torch.sigmoid(cosines - cosines[:, reference, None]) for reference in REFERENCES]
    return torch.stack(against).mean((0, -1))


def reduced(attention: Tensor, grid: tuple[int, int], concepts: Sequence[int], reduce: Reduction) -> Tensor:
    """Return maps ``(N, D, h, w)`` from attention ``(layers, N, 9 D, h w)``: mean over layers, then over concepts."""
    mean = attention.mean(0)
    by_concept = mean.reshape(len(mean), -1, CONCEPTS, mean.shape[-1])
    chosen = by_concept[:, :, [0] if reduce == "global" else list(concepts)]
    maps: Tensor = chosen.amax(2) if reduce == "max" else chosen.mean(2)
    return maps.reshape(*maps.shape[:2], *grid)


@dataclass(kw_only=True, eq=False, repr=False)
class Mavl(BookAdapter):
    """MAVL.

    Args:
        checkpoint: the authors' ``checkpoint_full_40.pth`` (steadier maps) or ``checkpoint_full_46.pth`` (better
            classification).
        concept_book: the authors' eight aspects a disease, such as ``gpt4_mimic.json``.
        mode: ``feature``: the classifier's softmax; ``text``: cosines against "normal" and "clear", which the authors
            use for rare and unseen diseases.
        concepts: which of the nine queries make the map.
        reduce: how they are joined: ``avg``, ``max``, or ``global`` (the description alone).
    """

    name: ClassVar[str] = "mavl"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="MAVL",
        kind="zero-shot",
        pretrained_on="chest radiographs",
        licence="no licence published: use the authors' files with their permission",
        citation="Phan et al., Decomposing disease descriptions for enhanced pathology detection, CVPR 2024",
        obtain="checkpoint_full_40.pth or checkpoint_full_46.pth, observation explanation.json and gpt4_mimic.json "
        "from the authors (HieuPhan33/CVPR2024_MAVL); folder of emilyalsentzer/Bio_ClinicalBERT from Hugging Face",
        seen={"mimic_cxr": "images"},
        query_dependent=True,
    )

    concept_book: Path
    mode: Literal["feature", "text"] = "feature"
    concepts: list[int] | None = None
    reduce: Reduction = "avg"

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`.

        Raises:
            ConfigError: a disease has no concept of a number given.
        """
        self.chosen = list(self.concepts or MAP_CONCEPTS)
        if any(not 0 <= concept < CONCEPTS for concept in self.chosen):
            raise ConfigError("there is no such concept", where="concepts", expected="0 to 8", got=self.chosen)
        self.aspects = read_book(self.concept_book)
        options = [list(self.aspects.items()), self.mode, self.chosen, self.reduce]
        return self.with_book(MavlNetwork(), LAYOUT, published, RESOLUTION, options)

    def encode_texts(self, findings: Sequence[str]) -> tuple[Tensor, list[int]]:
        """Return the texts of all diseases ``(D, 9, 768)``, and which disease is each finding's."""
        asked = self.queries(findings)
        diseases = [
            [str(text), *aspects_of(self.aspects, name, at)] for at, (name, text) in enumerate(self.entries.items())
        ]
        rows = []
        for finding, query in zip(findings, asked, strict=True):
            rows.append(len(diseases) if query.position is None else query.position)
            if query.position is None:
                diseases.append([query.text, *aspects_of(self.aspects, finding, None)])
        flat = [text for texts in diseases for text in texts]
        vectors = self.class_tokens(flat)
        return vectors.reshape(len(diseases), CONCEPTS, -1), rows

    def ground(self, pixels: Tensor, texts: Any) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`Adapter.ground`; the map joins the chosen concepts' attention, averaged over the layers."""
        encoded, rows = texts
        network: Any = self.network
        features = network.backbone(pixels)
        logits, attention = network(features, encoded)
        side = pixels.shape[-1] // GRID_STRIDE
        maps = reduced(attention, (side, side), self.chosen, self.reduce)[:, rows]
        if self.mode == "text":
            probability = text_probability(network.concept_cosines(features, encoded).float())[:, rows]
            return probability, probability, maps
        return presence_margin(logits[:, rows]), presence(logits[:, rows]), maps


def aspects_of(book: Mapping[str, Any], name: str, position: int | None) -> list[str]:
    """Return a disease's eight aspects in the published order, which is alphabetical.

    Args:
        book: the concept book: disease -> aspect -> text, or disease -> eight texts.
        name: of the disease.
        position: of the disease in the book of descriptions; taken when the concept book has no such name.

    Raises:
        ModelError: there is no such disease, or it does not have eight aspects.
    """
    named = {key_of(key): value for key, value in book.items()}
    entries = list(book.values())
    found = named.get(key_of(name))
    if found is None and position is not None and position < len(entries):
        found = entries[position]
    if isinstance(found, Mapping):
        found = [found[aspect] for aspect in sorted(found)]
    if not isinstance(found, list) or len(found) != CONCEPTS - 1:
        raise ModelError(
            f"the concept book has no eight aspects of {name!r}",
            expected="border, fluid, location, opacity, other, patterns, shape, texture",
            got="nothing" if found is None else found,
        )
    return [" ".join(text) if isinstance(text, list) else str(text) for text in found]
