"""What a map costs beside the plain forward pass: each rule against the network alone, alternating, on a ViT-B/16.

``make bench`` prints for every rule the median ratio and its spread: processor time for maps of fourteen findings, by
that for the image vectors alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional

from medground.models.common.saliency import chefer, surgery, timm_vit, tower_gradcam
from medground.models.layers.vit import VisionTransformer

FINDINGS, BATCH, ROUNDS = 14, 2, 3


def spent(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.parametrize("rule", ["surgery", "gradcam", "chefer"])
def test_maps_against_the_plain_forward_pass(rule, benchmark):
    torch.manual_seed(0)
    trunk = VisionTransformer(depth=12).eval().requires_grad_(False)
    head = torch.nn.Linear(768, 512, bias=False).requires_grad_(False)
    tower, texts = timm_vit(trunk, head), functional.normalize(torch.randn(FINDINGS, 512), dim=-1)
    pixels = torch.randn(BATCH, 3, 224, 224)

    def score(image):
        return functional.normalize(image, dim=-1) @ texts.T

    def plain():
        with torch.no_grad():
            return score(head(trunk(pixels)[:, 0]))

    def mapped():
        with torch.no_grad():
            if rule == "surgery":
                return surgery(tower, pixels, texts)
            return (chefer if rule == "chefer" else tower_gradcam)(tower, pixels, score)

    plain(), mapped()
    ratios = [spent(mapped) / spent(plain) for _ in range(ROUNDS)]
    benchmark.extra_info["ratio"] = float(np.median(ratios))
    print(f"\n{rule}: {np.median(ratios):.2f} times the plain pass ({min(ratios):.2f} to {max(ratios):.2f})")
    benchmark.pedantic(mapped, rounds=1)
