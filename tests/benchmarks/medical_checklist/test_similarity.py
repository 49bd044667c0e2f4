"""Similarity of terms by a text encoder from a folder, equal to a plain computation, and labelled."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from medground.benchmarks.medical_checklist.build import build
from medground.benchmarks.medical_checklist.items import ChecklistItem
from medground.benchmarks.medical_checklist.similarity import PACKAGE, Encoder, measured
from medground.benchmarks.medical_checklist.sources.base import Captioned
from medground.benchmarks.medical_checklist.terminologies import embedded
from medground.errors import ConfigError, ModelError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    path = tmp_path_factory.mktemp("encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "liver", "spleen", "heart", "left", "right"]
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=raw, **named).save_pretrained(path)
    torch.manual_seed(3)
    config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    BertModel(config).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def items() -> list[ChecklistItem]:
    captions = [f"A cyst in the {w}." for w in ("liver", "spleen", "heart", "left kidney", "right lung")]
    return build([Captioned(str(i), c, None, str(i), "s") for i, c in enumerate(captions)], embedded.read())[0]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_vectors_are_pooled_as_named(folder: Path, pooling: Any) -> None:
    encoder = Encoder(folder, pooling)
    texts = ["left liver", "spleen", "heart right left"]
    got = encoder.vectors(texts)
    for text, vector in zip(texts, got, strict=True):
        with torch.inference_mode():
            states = encoder._model(**encoder._tokenizer(text, return_tensors="pt")).last_hidden_state[0].double()
        wanted = (states[0] if pooling == "cls" else states.mean(0)).numpy()
        assert np.allclose(vector, wanted / np.linalg.norm(wanted), atol=1e-6)


def test_items_are_measured_and_labelled(folder: Path, items: list[ChecklistItem]) -> None:
    assert {i.similarity_by for i in items} == {"3-grams (set cosine)"}
    assert measured(items, "3-grams") == items
    encoder = Encoder(folder, "cls")
    for item in measured(items, "sapbert", folder):
        a, b = encoder.vectors([item.term_positive.lower(), item.term_negative.lower()])
        assert item.similarity == pytest.approx(float(a @ b), abs=1e-6)
        assert item.similarity_by == "sapbert (cosine)"


def test_encoders_are_never_fetched(
    tmp_path: Path, folder: Path, items: list[ChecklistItem], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="folder of yours"):
        measured(items, "sapbert")
    with pytest.raises(ModelError, match="not there"):
        measured(items, "sapbert", tmp_path / "none")
    with pytest.raises(ModelError, match="no text encoder"):
        measured(items, "sapbert", tmp_path)
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    with pytest.raises(ConfigError, match="checklist"):
        measured(items, "minilm")
    monkeypatch.setitem(sys.modules, PACKAGE, SimpleNamespace(get_model_path=lambda: folder))
    assert {i.similarity_by for i in measured(items, "minilm")} == {"minilm (cosine)"}
