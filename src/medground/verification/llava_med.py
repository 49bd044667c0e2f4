"""LLaVA-Med on golden cases: a tiny configuration, the authors' names."""

from __future__ import annotations

from typing import Any

import torch
from transformers import CLIPVisionConfig, LlavaConfig, MistralConfig

from medground.models.checkpoints import load_weights, read_weights
from medground.models.radiology import llava_med
from medground.verification.cases import Array, Case


def network(case: Case) -> Any:
    """Return the network with stand-in weights, loaded as a published file is."""
    stated = case.golden.manifest["configuration"]
    config = LlavaConfig(
        text_config=MistralConfig(**stated["text"]),
        vision_config=CLIPVisionConfig(**stated["vision"]),
        vision_feature_layer=stated["vision_feature_layer"],
        image_token_index=0,
    )
    model = llava_med.network_of(config)
    weights = read_weights(case.golden.state(case.shapes()), llava_med.LAYOUT)
    layout = llava_med.layout_of(list(weights.tensors))
    load_weights(model, weights, published=lambda name: llava_med.published(name, layout))
    return model.eval()


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    model = case.golden.keep("network", case.key(), lambda: network(case))
    vision, projected = llava_med.image_features(model, case.tensor("image"))
    prompt, (start,) = llava_med.embed(model, case.tensor("tokens")[0].tolist(), [projected[0]])
    names = sorted(name for name in case.inputs if name.startswith("option_"))
    scored = llava_med.score_options(model, prompt, [case.tensor(name).tolist() for name in names])
    side = round(len(projected[0]) ** 0.5)
    seen = scored.attention[:, start : start + len(projected[0])].reshape(-1, side, side)
    return {
        "vision_features": vision.numpy(),
        "projected_features": projected.numpy(),
        "logits": scored.logits[None].numpy(),
        "next_token_log_probability": torch.log_softmax(scored.logits[-1], -1).numpy(),
        "option_log_likelihood": scored.total.numpy(),
        "option_mean_log_likelihood": scored.mean.numpy(),
        "answer_to_image_attention": seen.mean(0).numpy(),
        "answer_to_image_attention_by_layer": seen.numpy(),
    }
