"""GLoRIA equals its published steps, written out here a second time on the file's own entries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.models.test_biovil import resnet_entries, resnet_stages
from torch import Tensor
from torch.nn import functional

from medground import registry
from medground.errors import ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import Grounder

FINDINGS = ["Effusion", "Nodule"]
TEMPLATES = ["there is {label}", "no {label} in the left lung"]


def weights(bert_folder: Path) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(4)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    entries = {f"img_encoder.model.{n}": v for n, v in resnet_entries(draw).items() if not n.startswith("fc.")}
    entries |= {
        "img_encoder.global_embedder.weight": draw(768, 2048) / 45,
        "img_encoder.global_embedder.bias": draw(768) / 10,
        "img_encoder.local_embedder.weight": draw(768, 1024, 1, 1) / 320,
    }
    bert = load_file(bert_folder / "model.safetensors")
    return entries | {f"text_encoder.model.{name}": value for name, value in bert.items()}


@pytest.fixture(scope="module")
def gloria(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> Callable[..., Any]:
    path = tmp_path_factory.mktemp("gloria") / "chexpert_resnet50.ckpt"
    torch.save({"state_dict": {f"gloria.{n}": v for n, v in weights(bert_folder).items()}, "epoch": 3}, path)
    return lambda **given: registry.create(
        "model", "gloria", {"checkpoint": path, "text_model": bert_folder, "device": "cpu"} | given
    )


def image_side(pixels: Tensor, w: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Vectors (N, 768) and cells (N, 768, 19, 19)."""
    enlarged = functional.interpolate(pixels, (299, 299), mode="bilinear", align_corners=True)
    *_, local, x = resnet_stages(enlarged, w, "img_encoder.model.")
    vectors = functional.linear(
        x.mean((2, 3)), w["img_encoder.global_embedder.weight"], w["img_encoder.global_embedder.bias"]
    )
    return vectors, functional.conv2d(local, w["img_encoder.local_embedder.weight"])


def text_side(folder: Path, tokenizer: Any, text: str) -> tuple[Tensor, Tensor, list[str]]:
    """The sentence, the rows (97, 768), and the words of the rows, as the authors' loop makes them."""
    from transformers import BertModel

    batch = tokenizer(text, return_tensors="pt", padding="max_length", truncation=True, max_length=97)
    hidden = BertModel.from_pretrained(folder).eval()(**batch, output_hidden_states=True).hidden_states
    layers = torch.stack(hidden[-4:])[:, 0]  # (4, 97, 768)
    rows: list[Tensor] = []
    words: list[str] = []
    for position, token in enumerate(tokenizer.convert_ids_to_tokens(batch["input_ids"][0])):
        if token.startswith("##"):
            rows[-1] = rows[-1] + layers[:, position]
            words[-1] += token[2:]
        else:
            rows.append(layers[:, position])
            words.append(token)
        if token == "[SEP]":
            break
    table = torch.stack(rows + [torch.zeros_like(rows[0])] * (97 - len(rows)))  # (97, layers, 768)
    return table.mean(0).sum(0), table.sum(1), words


def published(
    vector: Tensor, cells: Tensor, text: tuple[Tensor, Tensor, list[str]], count: int
) -> tuple[float, np.ndarray]:
    """One picture and one prompt, cell by cell and word by word."""
    sentence, rows, words = text
    taken, places = rows[1 : 1 + count], cells.flatten(1)  # (W, 768), (768, 361)
    first = torch.stack([(taken @ places[:, cell]).softmax(0) for cell in range(places.shape[1])], 1)
    second = torch.stack([(4.0 * row).softmax(0) for row in first])
    similar = []
    for row, attention in zip(taken, second, strict=True):
        seen = places @ attention
        similar.append(float(row @ seen / max(float(row.norm() * seen.norm()), 1e-8)))
    local = float(np.log(max(np.exp(5.0 * np.array(similar)))))
    whole = float(sentence @ vector / (sentence.norm() * vector.norm()))
    return (local + whole) / 2, second[: len(words) - 2].mean(0).view(19, 19).numpy()


@pytest.mark.parametrize("rows", ["words", "characters"])
def test_scores_and_maps_equal_the_published_steps(
    rows: Literal["words", "characters"], gloria: Callable[..., Any], bert_folder: Path, pictures: list[Radiograph]
) -> None:
    model = gloria(rows=rows, template=TEMPLATES)
    assert isinstance(model, Grounder)
    prediction = model.predict(pictures[:2], FINDINGS)
    with torch.no_grad():
        vectors, cells = image_side(model.inputs(pictures[:2])[0], weights(bert_folder))
        for column, finding in enumerate(FINDINGS):
            texts = [template.replace("{label}", finding.lower()) for template in TEMPLATES]
            read = [text_side(bert_folder, model.tokenise.inner, text) for text in texts]
            for row in range(2):
                each = [
                    published(vectors[row], cells[row], one, len(text) if rows == "characters" else len(one[2]) - 2)
                    for one, text in zip(read, texts, strict=True)
                ]
                score, saliency = max(each, key=lambda pair: pair[0])
                assert prediction.scores[row, column] == pytest.approx(score, abs=1e-5)
                assert np.abs(prediction.saliency[row, column] - saliency).max() < 1e-5
    assert np.ptp(prediction.scores) > 1e-3


def test_the_two_ways_of_counting_are_two_models(gloria: Callable[..., Any]) -> None:
    assert gloria().fingerprint() != gloria(rows="characters").fingerprint()


def test_a_prompt_of_one_word_is_refused(gloria: Callable[..., Any], pictures: list[Radiograph]) -> None:
    with pytest.raises(ModelError, match="GLoRIA's text cleaning"):
        gloria(template="{label}").predict(pictures[:1], ["Nodule"])
