"""DeViDe (Luo et al. 2024): neither its architecture nor its weights are public.

What the abstract says (a ViT-B image encoder, a Med-KEBERT text encoder, retrieval and cross-view fusion) and what its
published numbers resemble (a decoder of KAD's kind) make this adapter: every size is an option, and it loads nothing
without the user's own table of names. Its results are never DeViDe's unless the user can vouch for file and table.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from medground.errors import ConfigError
from medground.models.base import ModelInfo
from medground.models.checkpoints import Layout, read_weights
from medground.models.common.adapter import Adapter, Parts
from medground.models.common.inputs import IMAGENET_MEAN, IMAGENET_STD, Preprocess
from medground.models.common.presence import presence, presence_margin
from medground.models.common.text import Prompts, Tokenizer
from medground.models.common.transformers import blank, read_config
from medground.models.layers.query_decoder import QueryDecoder
from medground.models.layers.vit import VisionTransformer
from medground.models.radiology.kad import TEXT_LENGTH, TextEncoder

WIDTH = 768


class DevideNetwork(nn.Module):
    """A ViT, a BERT with two linear layers, a query decoder and a two-way head.

    Args:
        text_config: of BERT.
        image_size: side of the input in pixels.
        patch: side of a patch.
        depth: blocks of the ViT.
        layers: of the decoder.
        feed_forward: hidden width of the decoder.
        self_attention: whether queries see each other.
        norm_inputs: whether the decoder's norm is applied to queries and memory, too.
    """

    def __init__(
        self,
        text_config: Any,
        image_size: int = 224,
        patch: int = 16,
        depth: int = 12,
        layers: int = 4,
        feed_forward: int = 1024,
        self_attention: bool = True,
        norm_inputs: bool = True,
    ) -> None:
        super().__init__()
        self.image_encoder = VisionTransformer(WIDTH, depth, patch=patch, image_size=image_size)
        self.text_encoder = TextEncoder(text_config)
        self.decoder = QueryDecoder(
            WIDTH, 4, layers, feed_forward, self_attention=self_attention, norm_inputs=norm_inputs
        )
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, pixels: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        """Ask images about texts ``(C, 768)``: logits ``(N, C, 2)``, attention ``(layers, N, C, cells)``."""
        answers, attention = self.decoder(texts, self.image_encoder(pixels)[:, 1:])
        return self.head(answers), attention


@dataclass(kw_only=True, eq=False, repr=False)
class Devide(Adapter):
    """An adapter for a user's own DeViDe weights. Not the published model: see ``info.unverified``.

    Args:
        checkpoint: the user's file.
        text_model: folder of a BERT: configuration and tokenizer (weights are in the checkpoint).
        key_map: JSON object, name in this network (or the beginning of names) -> name in the file. Required.
        under: top-level key of the file that holds the weights, if there is one.
        prompts: finding -> text; by default the finding's name.
        resolution: side of the input in pixels.
        patch: side of a patch.
        depth: blocks of the image encoder.
        decoder_layers: of the query decoder.
        feed_forward: hidden width of the query decoder.
        self_attention: whether queries see each other.
        norm_inputs: whether the decoder's norm is applied to queries and memory, too.
        layers: which cross-attention is the map.
    """

    name: ClassVar[str] = "devide"
    info: ClassVar[ModelInfo] = ModelInfo(
        title="DeViDe (user's weights)",
        kind="zero-shot",
        pretrained_on="chest radiographs",
        licence="no code or weights published",
        citation="Luo et al., DeViDe: faceted medical knowledge for improved medical vision-language pre-training, "
        "arXiv 2404.03618",
        obtain="nothing is published: your own checkpoint, a table of its names (key_map), the folder of its BERT",
        seen={"mimic_cxr": "images"},
        unverified="architecture and checkpoint layout are not published: these results are of the user's own weights",
        query_dependent=True,
    )

    checkpoint: Path
    text_model: Path
    key_map: Path | None = None
    under: str | None = None
    prompts: dict[str, str] | None = None
    resolution: int = 224
    patch: int = 16
    depth: int = 12
    decoder_layers: int = 4
    feed_forward: int = 1024
    self_attention: bool = True
    norm_inputs: bool = True
    layers: Literal["last", "mean"] = "last"

    def assemble(self) -> Parts:
        """See :meth:`Adapter.assemble`.

        Raises:
            ConfigError: there is no table of names.
        """
        if self.key_map is None:
            raise ConfigError(
                "DeViDe has no published checkpoint layout, so nothing is loaded without your own table of names",
                where="key_map",
                expected="a JSON object: name in this network, or the beginning of names -> name in your file",
                fix="key_map: FILE, a JSON object from your names to the expected ones",
            )
        tokenizer = Tokenizer(self.text_model, TEXT_LENGTH)
        table = read_key_map(self.key_map)
        layout = Layout(under=self.under)
        weights = read_weights(self.checkpoint, layout)
        network = self.filled(blank(self._network), weights, layout, lambda name: renamed(name, table))
        preprocess = Preprocess("squash", self.resolution, "bicubic", IMAGENET_MEAN, IMAGENET_STD)
        options = [table, self.layers, self.self_attention, self.norm_inputs]
        return Parts(network, weights, preprocess, Prompts("{label}", self.prompts), tokenizer, options)

    def _network(self) -> DevideNetwork:
        shape = (self.resolution, self.patch, self.depth, self.decoder_layers, self.feed_forward)
        config = read_config(self.text_model, "BertConfig")
        return DevideNetwork(config, *shape, self.self_attention, self.norm_inputs)

    def encode_texts(self, findings: Sequence[str]) -> Tensor:
        """Return the vectors ``(C, 768)`` of the findings' texts."""
        ids, mask = self.tokenise([self.wording.of(finding)[0] for finding in findings])
        network: Any = self.network
        vectors: Tensor = network.text_encoder(ids.to(self.runtime.device), mask.to(self.runtime.device))
        return vectors

    def ground(self, pixels: Tensor, texts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`Adapter.ground`; the map is the chosen layers' attention."""
        logits, attention = self.network(pixels, texts)
        chosen = attention[-1] if self.layers == "last" else attention.mean(0)
        side = math.isqrt(chosen.shape[-1])
        return presence_margin(logits), presence(logits), chosen.unflatten(-1, (side, side))


def read_key_map(path: Path) -> dict[str, str]:
    """Read a table of names.

    Raises:
        ConfigError: the file is no JSON object of strings.
    """
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError("the table of names cannot be read", where=path, got=str(error)) from error
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise ConfigError("the table of names is a JSON object of strings", where=path, got=type(table).__name__)
    return table


def renamed(name: str, table: Mapping[str, str]) -> str:
    """Return the entry of the user's file for a parameter: by its whole name, else by its longest beginning."""
    beginnings = [key for key in table if name.startswith(key)]
    longest = max(beginnings, key=len, default="")
    return table[longest] + name.removeprefix(longest) if longest else name
