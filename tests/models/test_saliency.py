"""Saliency rules against slow, obvious oracles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from medground.models.common.saliency import (
    Tower,
    chefer,
    gradcam,
    hugging_face_clip,
    surgery,
    timm_vit,
    tower_gradcam,
)
from medground.models.layers.vit import VisionTransformer
from medground.models.radiology.clip import image_tokens


@pytest.fixture(scope="module")
def vit() -> VisionTransformer:
    torch.manual_seed(1)
    net = VisionTransformer(24, 4, 3, 8, 24)
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return net.eval().requires_grad_(False)


@pytest.fixture(scope="module")
def tower(vit: VisionTransformer) -> Tower:
    return timm_vit(vit, torch.nn.Identity())


PIXELS = torch.randn(2, 3, 24, 24, generator=torch.Generator().manual_seed(0))
TEXTS = functional.normalize(torch.randn(3, 24, generator=torch.Generator().manual_seed(2)), dim=-1)


def score(image: torch.Tensor) -> torch.Tensor:
    return functional.normalize(image, dim=-1) @ TEXTS.T * 5


def replay(tower: Tower, pixels: torch.Tensor) -> torch.Tensor:
    tokens = tower.embed(pixels)
    for block in tower.blocks:
        tokens = tokens + block.attend(block.heads(block.norm(tokens)))[0]
        tokens = tokens + block.feed(tokens)
    return tower.project(tokens)


def test_towers_taken_apart_are_the_towers(vit: VisionTransformer, tower: Tower, clip_folder: Path) -> None:
    from transformers import CLIPModel

    assert (replay(tower, PIXELS) - vit(PIXELS)).abs().max() < 1e-5
    model: Any = CLIPModel.from_pretrained(clip_folder).eval()
    pixels = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        assert (replay(hugging_face_clip(model), pixels) - image_tokens(model, pixels)).abs().max() < 1e-5


def test_gradcam_of_a_linear_score_is_known_in_closed_form() -> None:
    torch.manual_seed(0)
    features, weight = torch.randn(2, 6, 4), torch.randn(4, 3)
    maps = gradcam(features, lambda cells: cells.mean(1) @ weight)
    expected = functional.relu(torch.einsum("npd,dc->ncp", features, weight) / 6)
    assert maps.shape == (2, 3, 6)
    assert (maps - expected).abs().max() < 1e-6


def test_gradcam_of_a_tower_by_finite_differences(tower: Tower) -> None:
    """The gradient is checked numerically on the input of the last block's attention, patches only."""
    tower64 = tower
    vectors, maps = tower_gradcam(tower64, PIXELS[:1], score)
    assert (vectors - replay(tower, PIXELS[:1])[:, 0]).abs().max() < 1e-5
    tokens = tower.embed(PIXELS[:1])
    for block in tower.blocks[:-1]:
        tokens = tokens + block.attend(block.heads(block.norm(tokens)))[0]
        tokens = tokens + block.feed(tokens)
    last = tower.blocks[-1]
    normed = last.norm(tokens)

    def of(activation: torch.Tensor) -> torch.Tensor:
        mixed = tokens + last.attend(last.heads(activation))[0]
        return score(tower.project(mixed + last.feed(mixed))[:, 0])[0]

    step, gradient = 1e-2, torch.zeros(3, 9, 24)
    for cell in range(9):
        for channel in range(24):
            moved = torch.zeros_like(normed)
            moved[0, 1 + cell, channel] = step
            gradient[:, cell, channel] = (of(normed + moved) - of(normed - moved)) / (2 * step)
    expected = functional.relu(torch.einsum("cd,pd->cp", gradient.mean(1), normed[0, 1:]))
    assert (maps[0] - expected).abs().max() < 2e-2 * expected.abs().max()


def test_chefer_is_the_published_recursion(tower: Tower) -> None:
    vectors, maps = chefer(tower, PIXELS, score)
    assert (vectors - replay(tower, PIXELS)[:, 0]).abs().max() < 1e-5
    for image in range(2):
        for finding in range(3):
            tokens = tower.embed(PIXELS[image : image + 1]).requires_grad_(True)
            attentions = []
            for block in tower.blocks:
                added, weights = block.attend(block.heads(block.norm(tokens)))
                weights.retain_grad()
                attentions.append(weights)
                tokens = tokens + added
                tokens = tokens + block.feed(tokens)
            score(tower.project(tokens)[:, 0])[0, finding].backward()
            relevance = torch.eye(10)
            for weights in attentions:
                assert weights.grad is not None
                step = torch.zeros(10, 10)
                for head in range(3):
                    step += (weights.grad[0, head] * weights[0, head]).clamp(min=0) / 3
                relevance = relevance + step.detach() @ relevance
            assert (maps[image, finding] - relevance[0, 1:]).abs().max() < 1e-5


def test_surgery_takes_away_what_all_findings_share(tower: Tower) -> None:
    vectors, maps = surgery(tower, PIXELS, TEXTS)
    assert (vectors - replay(tower, PIXELS)[:, 0]).abs().max() < 1e-5
    tokens = tower.embed(PIXELS)
    beside = None
    for index, block in enumerate(tower.blocks):
        query, key, value = block.heads(block.norm(tokens))
        if index >= 2:
            beside = (tokens if beside is None else beside) + block.attend((value, value, value))[0]
        tokens = tokens + block.attend((query, key, value))[0]
        tokens = tokens + block.feed(tokens)
    assert beside is not None
    class_token = functional.normalize(tower.project(tokens)[:, 0], dim=-1)
    patches = functional.normalize(tower.project(beside)[:, 1:], dim=-1)
    presence = (class_token @ TEXTS.T * 2).softmax(-1)
    weight = presence / presence.mean(-1, keepdim=True)
    product = patches[:, :, None] * TEXTS * weight[:, None, :, None]
    expected = (product - product.mean(2, keepdim=True)).sum(-1).transpose(1, 2)
    assert (maps - expected).abs().max() < 1e-5
    _, single = surgery(tower, PIXELS, TEXTS[:1])
    assert (single[:, 0] - (patches @ TEXTS[0])).abs().max() < 1e-5
