"""The tiny LLaVA of the golden cases: random numbers that follow from the parameters' names."""

from __future__ import annotations

import json
from pathlib import Path

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
