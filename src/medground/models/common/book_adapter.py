"""The shell of MedKLIP and its kin: observations of the authors' book ask a picture, in the words of a frozen BERT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from medground.models.checkpoints import Layout, read_weights
from medground.models.common import book as entity_book
from medground.models.common.adapter import Adapter, Parts
from medground.models.common.inputs import IMAGENET_MEAN, IMAGENET_STD, Preprocess
from medground.models.common.text import Prompts, Tokenizer, read_book
from medground.models.common.transformers import load_bert

TEXT_LENGTH = 64
TEXTS_AT_ONCE = 64


@dataclass(kw_only=True, eq=False, repr=False)
class BookAdapter(Adapter):
    """A grounder whose text encoder and book are the user's files, not in the checkpoint.

    Args:
        checkpoint: the authors' file.
        text_model: folder of ``emilyalsentzer/Bio_ClinicalBERT``: weights, configuration, tokenizer.
        book: the authors' ``observation explanation.json``.
        prompts: finding -> description, for findings that the book lacks or that shall be worded anew. Each is one more
            query and changes the other answers a little, because queries see each other.
        equalise: equalise the histogram first, as the authors do for RSNA's DICOM files.
    """

    checkpoint: Path
    text_model: Path
    book: Path
    prompts: dict[str, str] | None = None
    equalise: bool = False

    def with_book(
        self, network: nn.Module, layout: Layout, published: Callable[[str], str], size: int, options: Sequence[Any]
    ) -> Parts:
        """Return the parts around a network; reads the book and the text encoder."""
        self.entries = read_book(self.book)
        entity_book.check_book(self.entries, self.book)
        bert, text_hash = load_bert(self.text_model)
        self._bert: Any = bert.eval().requires_grad_(False).to(self.runtime.device)
        weights = read_weights(self.checkpoint, layout)
        return Parts(
            self.filled(network, weights, layout, published),
            weights,
            Preprocess("squash", size, "bilinear", IMAGENET_MEAN, IMAGENET_STD, equalise=self.equalise),
            Prompts("{label}", self.prompts),
            Tokenizer(self.text_model, TEXT_LENGTH),
            [text_hash, list(self.entries.items()), *options],
        )

    def queries(self, findings: Sequence[str]) -> list[entity_book.Query]:
        """Return where each finding's answer stands in the book, or what is asked behind it."""
        return entity_book.queries(findings, self.entries, self.wording)

    def class_tokens(self, texts: Sequence[str]) -> Tensor:
        """Return the last hidden state of the class token ``(K, 768)`` of each text."""
        device, parts = self.runtime.device, []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            ids, mask = self.tokenise(texts[start : start + TEXTS_AT_ONCE])
            parts.append(self._bert(input_ids=ids.to(device), attention_mask=mask.to(device)).last_hidden_state[:, 0])
        return torch.cat(parts)
