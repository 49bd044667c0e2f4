"""CLIP on golden cases, in OpenAI's layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from medground.models.checkpoints import load_weights, read_weights
from medground.models.layers.openai_names import clip_source
from medground.models.radiology import clip
from medground.verification.cases import Array, Case, Shapes, count
from medground.verification.shipped import shipped_outputs


def config_of(shapes: Shapes) -> Any:
    """Return the configuration that published shapes imply."""
    width, _, patch, _ = shapes["visual.conv1.weight"]
    side = int(np.sqrt(shapes["visual.positional_embedding"][0] - 1))
    depths = count(shapes, r"visual\.transformer\.resblocks\.(\d+)"), count(shapes, r"^transformer\.resblocks\.(\d+)")
    config = clip.openai_config(patch, side * patch, width, depths[0], shapes["text_projection"][0], depths[1])
    config.text_config.vocab_size = shapes["token_embedding.weight"][0]
    return config


def network(case: Case) -> Any:
    """Return the network with stand-in weights, loaded as a published file is."""
    shapes = case.shapes()
    content = case.golden.state(shapes)
    for name in case.golden.manifest["checkpoint_layout"].get("drop_keys", ()):
        content |= case.golden.state({name: ()})
    model = clip.network_of(config_of(shapes))
    load_weights(model, read_weights(content, clip.LAYOUT), published=clip_source, ignore=clip.LAYOUT.ignore)
    return model.eval()


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    model = case.golden.keep("network", case.key(), lambda: network(case))
    tokens = clip.image_tokens(model, case.tensor("image"))
    texts = clip.text_vectors(model, case.tensor("tokens"))
    said = shipped_outputs("clip", model, case.tensor("image"), case.tensor("tokens"))
    logits = torch.from_numpy(np.array(said["scaled"]))
    return {
        "image_embedding": tokens[:, 0].numpy(),
        "text_embedding": texts.numpy(),
        "cosine": said["scores"],
        "logits_per_image": logits.numpy(),
        "softmax_over_prompts": logits.softmax(-1).numpy(),
        "patch_text_map": said["maps"],
        "patch_rows": tokens[:, 1:][:, case.numbers("patch_rows")].numpy(),
    }
