"""The network: LLaVA's classes of transformers, small, and a head that turns ``<SEG>`` into a mask."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

from medground.models.networks.chat.tokens import BOS, EOS, IMAGE, PAD, SIZE
from medground.models.networks.chat.tower import CELL, TowerConfig

IMAGE_TOKENS: Final = 196
HIDDEN: Final = 160
_MASK: Final = 64
_START: Final = 0.08
"""Deviation of fresh weights: about one over the square root of the width. The usual 0.02 is made for width 4096; here
it starves image tokens and attention for minutes."""


class Encoded(NamedTuple):
    """What the network sees of pictures.

    Attributes:
        features: image tokens of the language model, ``(N, 196, 160)``.
        cells: ``(N, 96, 28, 28)``.
        concepts: logits of eight findings and eight anatomies, ``(N, 16, 28, 28)``.
    """

    features: Tensor
    cells: Tensor
    concepts: Tensor


def configuration(words: int = SIZE) -> LlavaConfig:
    """Return the configuration of the language and vision parts, for the first ``words`` of the vocabulary."""
    text = LlamaConfig(
        vocab_size=words,
        hidden_size=HIDDEN,
        intermediate_size=432,
        num_hidden_layers=4,
        num_attention_heads=5,
        num_key_value_heads=5,
        max_position_embeddings=1024,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        tie_word_embeddings=False,
        initializer_range=_START,
    )
    return LlavaConfig(
        vision_config=TowerConfig(),
        text_config=text,
        image_token_id=IMAGE,
        image_seq_length=IMAGE_TOKENS,
        vision_feature_layer=-1,
        vision_feature_select_strategy="full",
        tie_word_embeddings=False,
        initializer_range=_START,
    )


class ChatNet(nn.Module):
    """A small LLaVA with a mask head.

    Args:
        words: how many of the vocabulary's first words it knows.
    """

    def __init__(self, words: int = SIZE) -> None:
        super().__init__()
        self.size = words
        self.llava = LlavaForConditionalGeneration(configuration(words))
        self.seg = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, _MASK))
        self.keys = nn.Conv2d(CELL, _MASK, 1)
        self.offset = nn.Parameter(torch.tensor(-2.0))

    @property
    def tower(self) -> Any:
        """The vision tower."""
        return self.llava.model.vision_tower

    def encode(self, pixels: Tensor) -> Encoded:
        """Encode pictures ``(N, 1, 224, 224)``, normalised."""
        seen = self.tower(pixels)
        features = self.llava.model.multi_modal_projector(seen.last_hidden_state)
        return Encoded(features, seen.pooler_output, seen.attentions[0])

    def hidden(self, features: Tensor, ids: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
        """Return the last hidden states of packed sequences, ``(N, T, 160)``.

        Args:
            features: image tokens ``(N, 196, 160)``; they take places 1 to 196.
            ids: ``(N, T)``.
            mask: what may be attended, bool ``(N, 1, T, T)``.
            positions: ``(N, T)``.
        """
        words = self.llava.get_input_embeddings()(ids)
        whole = torch.cat([words[:, :1], features.to(words.dtype), words[:, 1 + IMAGE_TOKENS :]], dim=1)
        out = self.llava.model.language_model(inputs_embeds=whole, attention_mask=mask, position_ids=positions)
        states: Tensor = out.last_hidden_state
        return states

    def words(self, hidden: Tensor) -> Tensor:
        """Map hidden states ``(..., 160)`` to logits over the vocabulary."""
        logits: Tensor = self.llava.lm_head(hidden)
        return logits

    def masks(self, hidden: Tensor, cells: Tensor) -> Tensor:
        """Turn hidden states of ``<SEG>`` into mask logits.

        Args:
            hidden: ``(M, 160)``.
            cells: cells of the picture of each, ``(M, 96, 28, 28)``.

        Returns:
            ``(M, 28, 28)``.
        """
        agreement = torch.einsum("mc,mchw->mhw", self.seg(hidden), self.keys(cells))
        return agreement / math.sqrt(_MASK) + self.offset
