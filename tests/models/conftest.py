"""Tiny towers, tokenizers and pictures, made on the spot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from medground.imaging.reading import Radiograph

TEXT = (
    "a photo of the there is no this picture image in left right base lung pleural effusion cardiomegaly nodule mass "
    "pneumonia edema atelectasis pneumothorax infiltration consolidation opacity yes caption answer question "
    "normal clear description border fluid location other patterns shape texture evidence x ray"
)
WORDS = TEXT.split()


def bert_vocabulary() -> list[str]:
    pieces = ["##s", "##ly", "##thorax"]
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *pieces, ".", ",", "?", "-"]


@pytest.fixture(scope="session")
def picture() -> Callable[..., Radiograph]:
    """A smooth picture with noise: ``picture(width, height, seed)``."""

    def make(width: int = 60, height: int = 40, seed: int = 0) -> Radiograph:
        rng = np.random.default_rng(seed)
        y, x = np.mgrid[:height, :width]
        values = 0.5 + 0.3 * np.sin(x / 7 + seed) * np.cos(y / 5) + 0.1 * rng.standard_normal((height, width))
        return Radiograph(np.clip(values, 0, 1).astype(np.float32), case_id=f"case-{seed}")

    return make


@pytest.fixture(scope="session")
def pictures(picture: Callable[..., Radiograph]) -> list[Radiograph]:
    """A landscape, a portrait and a square picture."""
    return [picture(60, 40, 1), picture(44, 70, 2), picture(50, 50, 3)]


@pytest.fixture(scope="session")
def bert_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with its tokenizer, as a Hugging Face folder."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("bert")
    vocabulary = bert_vocabulary()
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=768,
        num_hidden_layers=2,
        num_attention_heads=12,
        intermediate_size=32,
        max_position_embeddings=256,
    )
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def clip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny CLIP with its tokenizer, as a Hugging Face folder: 224 pixels, patches of 32."""
    import torch
    from transformers import CLIPConfig, CLIPModel

    folder = tmp_path_factory.mktemp("clip")
    vocabulary = clip_tokenizer(folder)
    torch.manual_seed(0)
    tower = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    text = tower | {
        "vocab_size": len(vocabulary),
        "bos_token_id": vocabulary["<|startoftext|>"],
        "eos_token_id": vocabulary["<|endoftext|>"],
        "pad_token_id": vocabulary["<|endoftext|>"],
    }
    config = CLIPConfig(
        text_config=text, vision_config=tower | {"patch_size": 32, "image_size": 224}, projection_dim=16
    )
    CLIPModel(config).save_pretrained(folder)
    return folder


def clip_tokenizer(folder: Path) -> dict[str, int]:
    """Write a word-level tokenizer with CLIP's special tokens; return its vocabulary."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    names = ["<unk>", *WORDS, "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {word: index for index, word in enumerate(names)}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="<|startoftext|> $A <|endoftext|>",
        special_tokens=[(t, vocabulary[t]) for t in ("<|startoftext|>", "<|endoftext|>")],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token="<|startoftext|>",
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        unk_token="<unk>",
        model_max_length=77,
    ).save_pretrained(folder)
    return vocabulary


@pytest.fixture(scope="session")
def write_book(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, dict[str, object]], Path]:
    """Write a JSON book: ``write_book(name, content)``."""
    folder = tmp_path_factory.mktemp("books")

    def write(name: str, content: dict[str, object]) -> Path:
        path = folder / f"{name}.json"
        path.write_text(json.dumps(content))
        return path

    return write
