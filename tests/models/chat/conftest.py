"""Tiny chat models: the golden LLaVA, whose numbers follow from its parameters' names, and folders of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from medground.models.standin import parameter

GOLDEN = Path(__file__).parents[2] / "golden" / "heal_medvqa"


@pytest.fixture(scope="session")
def tiny_facts():
    return json.loads((GOLDEN / "tiny_llava" / "expected.json").read_text())


@pytest.fixture(scope="session")
def tiny_numbers():
    return dict(np.load(GOLDEN / "tiny_llava" / "expected.npz", allow_pickle=False))


@pytest.fixture
def tiny(tiny_facts):
    from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

    config = tiny_facts["config"]
    model = LlavaForConditionalGeneration(
        LlavaConfig(
            vision_config=CLIPVisionConfig(**config["vision"]),
            text_config=LlamaConfig(**config["text"]),
            **config["llava"],
        )
    ).eval()
    state = {
        name: torch.from_numpy(parameter(name, tuple(value.shape))) if "position_ids" not in name else value
        for name, value in model.state_dict().items()
    }
    model.load_state_dict(state)
    return model


WORDS = [
    "<pad>",
    "<unk>",
    "<bos>",
    "<eos>",
    "<image>",
    "user",
    "assistant",
    "system",
    ":",
    "is",
    "there",
    "edema",
    "in",
    "the",
    "left",
    "lung",
    "yes",
    "no",
    "maybe",
    "?",
    "a",
    "b",
]
TEMPLATE = (
    "<bos> {% for m in messages %}{{ m['role'] }} : {% if m['content'] is string %}{{ m['content'] }} "
    "{% else %}{% for c in m['content'] %}{% if c['type'] == 'image' %}<image> {% else %}{{ c['text'] }} "
    "{% endif %}{% endfor %}{% endif %}{% endfor %}{% if add_generation_prompt %}assistant : {% endif %}"
)


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<bos>", "eos_token": "<eos>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, **special, extra_special_tokens={"image_token": "<image>"}, chat_template=TEMPLATE
    )


def text_config() -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        initializer_range=0.3, pad_token_id=0, bos_token_id=2, eos_token_id=3,
    )  # fmt: skip


@pytest.fixture(scope="session")
def blind_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import LlamaForCausalLM

    folder = tmp_path_factory.mktemp("llama")
    torch.manual_seed(0)
    LlamaForCausalLM(text_config()).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def seeing_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import (
        CLIPImageProcessor,
        CLIPVisionConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    folder = tmp_path_factory.mktemp("llava")
    torch.manual_seed(1)
    vision = CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=28, patch_size=7
    )
    config = LlavaConfig(text_config=text_config(), vision_config=vision, image_token_index=4, initializer_range=0.3)
    LlavaForConditionalGeneration(config).save_pretrained(folder)
    size = {"shortest_edge": 28}
    pictures = CLIPImageProcessor(size=size, crop_size={"height": 28, "width": 28})
    LlavaProcessor(
        pictures, tokenizer(), patch_size=7, vision_feature_select_strategy="default", chat_template=TEMPLATE,
        num_additional_image_tokens=1,
    ).save_pretrained(folder)  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def template() -> str:
    return TEMPLATE
