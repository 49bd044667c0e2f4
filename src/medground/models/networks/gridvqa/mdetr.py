"""MDETR with question heads, in the published key layout, for evaluation (Kamath et al. 2021, with GridVQA-X's edits).

ResNet body, RoBERTa, one encoder over image and text tokens, a decoder with object queries and six question queries.
GridVQA-X turns the decoder's cross-attention to the text back on and keeps the split heads of GQA, of which it uses
three: type of answer, yes or no, count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from medground.models.layers.resnet import EXPANSION, WIDTHS, Bottleneck

HEADS = {"type": 5, "obj": 3, "rel": 1594, "attr": 403, "cat": 678, "global": 111}
"""Question heads in the order of their queries, with their numbers of logits."""

YES_NO, COUNTS = 0, 101
"""The type that means yes or no; counts 0..100 are the first logits of the global head."""


@dataclass(frozen=True)
class Layout:
    """Sizes of the evaluated checkpoints.

    Attributes:
        blocks: of the ResNet's four stages.
        hidden: width of the transformer.
        heads: of its attention.
        feed: width of its feed-forward layers.
        layers: encoder and decoder layers.
        queries: object queries.
        classes: soft-token classes, without the one for nothing.
        contrastive: width of the alignment projections.
        text: arguments of ``RobertaConfig`` beside its defaults.
    """

    blocks: tuple[int, ...] = (3, 4, 23, 3)
    hidden: int = 256
    heads: int = 8
    feed: int = 2048
    layers: int = 6
    queries: int = 100
    classes: int = 255
    contrastive: int = 64
    text: dict[str, Any] = field(
        default_factory=lambda: {
            "vocab_size": 50265,
            "max_position_embeddings": 514,
            "type_vocab_size": 1,
            "layer_norm_eps": 1e-5,
        }
    )


class Body(nn.Module):
    """A ResNet with torchvision's names, up to stride 32."""

    def __init__(self, blocks: tuple[int, ...]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for i, (count, width, stride) in enumerate(zip(blocks, WIDTHS, (1, 2, 2, 2), strict=True)):
            first = Bottleneck(channels, width, stride, antialias=False)
            channels = width * EXPANSION
            rest = (Bottleneck(channels, width, 1, antialias=False) for _ in range(count - 1))
            self.add_module(f"layer{i + 1}", nn.Sequential(first, *rest))

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(N, 3, H, W)`` to ``(N, 2048, H / 32, W / 32)``."""
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, 2, padding=1)
        for i in range(4):
            x = getattr(self, f"layer{i + 1}")(x)
        return x


class EncoderLayer(nn.Module):
    """Post-norm self-attention with positions added to queries and keys."""

    def __init__(self, size: Layout) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(size.hidden, size.heads)
        self.linear1 = nn.Linear(size.hidden, size.feed)
        self.linear2 = nn.Linear(size.feed, size.hidden)
        self.norm1, self.norm2 = nn.LayerNorm(size.hidden), nn.LayerNorm(size.hidden)

    def forward(self, x: Tensor, places: Tensor, padding: Tensor) -> Tensor:
        """Return ``(tokens, N, hidden)``; ``padding`` ``(N, tokens)`` is True where nothing stands."""
        q = x + places
        x = self.norm1(x + self.self_attn(q, q, x, key_padding_mask=padding, need_weights=False)[0])
        return self.norm2(x + self.linear2(functional.relu(self.linear1(x))))  # type: ignore[no-any-return]  # Any


class DecoderLayer(nn.Module):
    """Self-attention of queries, cross-attention to the text, then to image and text together."""

    def __init__(self, size: Layout) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(size.hidden, size.heads)
        self.cross_attn_text = nn.MultiheadAttention(size.hidden, size.heads)
        self.cross_attn_image = nn.MultiheadAttention(size.hidden, size.heads)
        self.linear1 = nn.Linear(size.hidden, size.feed)
        self.linear2 = nn.Linear(size.feed, size.hidden)
        self.norm1, self.norm2 = nn.LayerNorm(size.hidden), nn.LayerNorm(size.hidden)
        self.norm3, self.norm4 = nn.LayerNorm(size.hidden), nn.LayerNorm(size.hidden)

    def forward(self, x: Tensor, queries: Tensor, memory: Tensor, places: Tensor, padding: Tensor, text: int) -> Tensor:
        """Return ``(queries, N, hidden)``; the last ``text`` tokens of the memory are those of the text."""
        q = x + queries
        x = self.norm1(x + self.self_attn(q, q, x, need_weights=False)[0])
        words, gaps = memory[-text:], padding[:, -text:]
        read = self.cross_attn_text(x + queries, words, words, key_padding_mask=gaps, need_weights=False)[0]
        x = self.norm2(x + read)
        seen = self.cross_attn_image(x + queries, memory + places, memory, key_padding_mask=padding, need_weights=False)
        x = self.norm3(x + seen[0])
        return self.norm4(x + self.linear2(functional.relu(self.linear1(x))))  # type: ignore[no-any-return]  # Any


class Resizer(nn.Module):
    """Brings text tokens to the transformer's width."""

    def __init__(self, inner: int, outer: int) -> None:
        super().__init__()
        self.fc = nn.Linear(inner, outer)
        self.layer_norm = nn.LayerNorm(outer, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., inner)`` to ``(..., outer)``."""
        return self.layer_norm(self.fc(x))  # type: ignore[no-any-return]  # torch modules return Any


class Transformer(nn.Module):
    """Text encoder, joint encoder and decoder."""

    def __init__(self, size: Layout) -> None:
        super().__init__()
        from transformers import RobertaConfig, RobertaModel

        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList(EncoderLayer(size) for _ in range(size.layers))
        self.decoder = nn.Module()
        self.decoder.layers = nn.ModuleList(DecoderLayer(size) for _ in range(size.layers))
        self.decoder.norm = nn.LayerNorm(size.hidden)
        config = RobertaConfig(**size.text)
        self.text_encoder = RobertaModel(config)
        self.resizer = Resizer(config.hidden_size, size.hidden)

    def forward(self, image: Tensor, ids: Tensor, present: Tensor, queries: Tensor) -> Tensor:
        """Return the decoder's output ``(layers, N, queries, hidden)``.

        Args:
            image: ``(N, hidden, h, w)``.
            ids: ``(N, tokens)`` of the text.
            present: ``(N, tokens)`` 1 where a token stands.
            queries: ``(queries, hidden)``.
        """
        words = self.resizer(self.text_encoder(input_ids=ids, attention_mask=present).last_hidden_state)
        cells = image.flatten(2).permute(2, 0, 1)
        memory = torch.cat([cells, words.transpose(0, 1)])
        places = torch.cat([sine_places(image), torch.zeros_like(words.transpose(0, 1))])
        padding = torch.cat([present.new_zeros(len(ids), len(cells), dtype=torch.bool), present == 0], 1)
        for layer in self.encoder.layers:  # type: ignore[union-attr]  # a module list
            memory = layer(memory, places, padding)
        asked = queries[:, None].expand(-1, len(ids), -1)
        x, outputs = torch.zeros_like(asked), []
        for layer in self.decoder.layers:  # type: ignore[union-attr]  # a module list
            x = layer(x, asked, memory, places, padding, ids.shape[1])
            outputs.append(self.decoder.norm(x).transpose(0, 1))  # type: ignore[operator]  # a layer norm
        return torch.stack(outputs)


class Perceptron(nn.Module):
    """Three linear maps: the boxes' head."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(hidden, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 4)])


class Mdetr(nn.Module):
    """The whole network; grounding heads are held for their weights, and not run."""

    def __init__(self, size: Layout) -> None:
        super().__init__()
        self.backbone = nn.ModuleList([nn.ModuleDict({"body": Body(size.blocks)})])
        self.input_proj = nn.Conv2d(WIDTHS[-1] * EXPANSION, size.hidden, 1)
        self.transformer = Transformer(size)
        self.query_embed = nn.Embedding(size.queries, size.hidden)
        self.qa_embed = nn.Embedding(len(HEADS), size.hidden)
        self.class_embed = nn.Linear(size.hidden, size.classes + 1)
        self.bbox_embed = Perceptron(size.hidden)
        self.contrastive_align_projection_image = nn.Linear(size.hidden, size.contrastive)
        self.contrastive_align_projection_text = nn.Linear(size.hidden, size.contrastive)
        for name, logits in HEADS.items():
            self.add_module(f"answer_{name}_head", nn.Linear(size.hidden, logits))

    def forward(self, images: Tensor, ids: Tensor, present: Tensor, layer: int) -> dict[str, Tensor]:
        """Return the logits of the three heads that GridVQA-X uses.

        Args:
            images: ``(N, 3, H, W)``, normalised.
            ids: ``(N, tokens)``.
            present: ``(N, tokens)``.
            layer: which decoder layer the question queries are read from.
        """
        features = self.input_proj(self.backbone[0]["body"](images))  # type: ignore[index]  # a module dict
        queries = torch.cat([self.query_embed.weight, self.qa_embed.weight])
        answers = self.transformer(features, ids, present, queries)[layer][:, -len(HEADS) :]
        order = list(HEADS)
        return {
            name: getattr(self, f"answer_{name}_head")(answers[:, order.index(name)])
            for name in ("type", "obj", "global")
        }


def sine_places(image: Tensor) -> Tensor:
    """Return normalised sine positions of a feature map, ``(h w, N, hidden)``: rows first, then columns."""
    n, hidden, height, width = image.shape
    half = hidden // 2
    scale = 10000 ** (2 * (torch.arange(half, device=image.device) // 2) / half)

    def axis(length: int) -> Tensor:
        steps = torch.arange(1, length + 1, device=image.device) / (length + 1e-6) * 2 * math.pi
        waves = steps[:, None] / scale
        return torch.stack([waves[:, 0::2].sin(), waves[:, 1::2].cos()], 2).flatten(1)

    rows, columns = axis(height)[:, None].expand(-1, width, -1), axis(width)[None].expand(height, -1, -1)
    return torch.cat([rows, columns], 2).reshape(height * width, 1, hidden).expand(-1, n, -1)


def log_probabilities(heads: dict[str, Tensor]) -> Tensor:
    """Return ``(N, 103)``: counts 0..100, yes, no; the type's share first, then the answer's within it."""
    kind = heads["type"].log_softmax(-1)
    other = torch.cat([kind[:, :YES_NO], kind[:, YES_NO + 1 :]], 1).logsumexp(1, keepdim=True)
    counts = other + heads["global"][:, :COUNTS].log_softmax(-1)
    return torch.cat([counts, kind[:, YES_NO, None] + heads["obj"][:, :2].log_softmax(-1)], 1)
