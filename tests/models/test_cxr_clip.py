"""CXR-CLIP equals its published steps, written out here a second time on the file's own entries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.models.test_biovil import resnet_entries, resnet_stages
from torch import Tensor
from torch.nn import functional

from medground import registry
from medground.errors import CheckpointError
from medground.imaging.reading import Radiograph
from medground.models.base import CaptionMatcher, Grounder

FINDINGS = ["Effusion", "Nodule"]


def weights(bert_folder: Path) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(6)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    entries = {f"image_encoder.resnet.{n}": v for n, v in resnet_entries(draw).items() if not n.startswith("fc.")}
    for side, width in (("image", 2048), ("text", 768)):
        entries[f"{side}_projection.projection.weight"] = draw(512, width) / np.sqrt(width)
        entries[f"{side}_projection.projection.bias"] = draw(512) / 10
    bert = load_file(bert_folder / "model.safetensors")
    named = {f"text_encoder.text_encoder.{name}": value for name, value in bert.items()}
    return entries | named | {"logit_scale": torch.tensor(2.6)}


@pytest.fixture(scope="module")
def cxr_clip(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> Callable[..., Any]:
    path = tmp_path_factory.mktemp("cxr-clip") / "r50_m.tar"
    torch.save({"model": weights(bert_folder), "config": {"base": {"seed": 1}}, "epoch": 3}, path)
    return lambda **given: registry.create(
        "model", "cxr_clip", {"checkpoint": path, "text_model": bert_folder, "device": "cpu"} | given
    )


def projected(x: Tensor, w: dict[str, Tensor], side: str) -> Tensor:
    joint = functional.linear(x, w[f"{side}_projection.projection.weight"], w[f"{side}_projection.projection.bias"])
    return joint / joint.norm(dim=-1, keepdim=True)


def text_vector(folder: Path, tokenizer: Any, text: str, w: dict[str, Tensor]) -> Tensor:
    from transformers import BertModel

    batch = tokenizer([text, text + " in the left lung"], return_tensors="pt", padding="longest")
    states = BertModel.from_pretrained(folder).eval()(**batch).last_hidden_state
    return projected(states[0, int(batch["attention_mask"][0].sum()) - 1], w, "text")


def test_probabilities_and_maps_equal_the_published_steps(
    cxr_clip: Callable[..., Any], bert_folder: Path, pictures: list[Radiograph]
) -> None:
    model, w = cxr_clip(), weights(bert_folder)
    assert isinstance(model, Grounder)
    assert isinstance(model, CaptionMatcher)
    prediction = model.predict(pictures, FINDINGS)
    with torch.no_grad():
        cells = resnet_stages(model.inputs(pictures)[0], w, "image_encoder.resnet.")[-1]
        images = projected(cells.mean((2, 3)), w, "image")
        places = projected(cells.permute(0, 2, 3, 1), w, "image")
        for column, finding in enumerate(["effusion", "nodule"]):
            no, yes = (text_vector(bert_folder, model.tokenise.inner, t, w) for t in (f"No {finding}", finding))
            pair = torch.stack([images @ no, images @ yes], -1).softmax(-1)[:, 1]
            assert np.abs(prediction.probabilities[:, column] - pair.numpy()).max() < 1e-5
            assert np.abs(prediction.saliency[:, column] - (places @ yes).numpy()).max() < 1e-5
    assert prediction.saliency.shape == (3, 2, 7, 7)
    assert np.ptp(prediction.probabilities) > 1e-4


def test_the_variant_with_swin_is_named(cxr_clip: Callable[..., Any], tmp_path: Path) -> None:
    torch.save({"model": {"image_encoder.image_encoder.layernorm.weight": torch.ones(2)}}, tmp_path / "swint_m.tar")
    with pytest.raises(CheckpointError, match="Swin"):
        cxr_clip(checkpoint=tmp_path / "swint_m.tar")
