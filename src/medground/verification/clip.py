"""CLIP on golden cases, in OpenAI's layout."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch.nn import functional

from medground.models.checkpoints import load_weights, read_weights
from medground.models.layers.openai_names import clip_source
from medground.models.radiology import clip
from medground.verification import published
from medground.verification.cases import Array, Case, Shapes, count


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
    image, ids = case.tensor("image"), case.tensor("tokens")
    vectors, texts = clip.image_tokens(model, image), clip.text_vectors(model, ids)
    normed = functional.normalize(texts, dim=-1)
    cosine = functional.normalize(vectors[:, 0], dim=-1) @ normed.T
    side = round((vectors.shape[1] - 1) ** 0.5)
    maps = (functional.normalize(vectors[:, 1:], dim=-1) @ normed.T).transpose(1, 2)
    logits = cosine * model.logit_scale.exp()
    computed = {
        "image_embedding": vectors[:, 0].numpy(),
        "text_embedding": texts.numpy(),
        "cosine": cosine.numpy(),
        "logits_per_image": logits.numpy(),
        "softmax_over_prompts": logits.softmax(-1).numpy(),
        "patch_text_map": maps.reshape(*cosine.shape, side, side).numpy(),
        "patch_rows": vectors[:, 1:][:, case.numbers("patch_rows")].numpy(),
    }
    return computed | (shipped_outputs(case) if published.travels(case) else {})


def shipped_outputs(case: Case) -> dict[str, Array]:
    """Return what the shipped class says, from OpenAI's file and a folder of the tokenizer."""
    shapes = case.shapes()

    def write(folder: Path) -> dict[str, Any]:
        content = case.golden.state(shapes)
        for name in case.golden.manifest["checkpoint_layout"].get("drop_keys", ()):
            content |= case.golden.state({name: ()})
        vocabulary = shapes["token_embedding.weight"][0]
        published.word_tokenizer(folder / "tokenizer", vocabulary, vocabulary - 2, vocabulary - 1, 0)
        file = published.save(folder / "ViT-B-16.pt", content)
        return {"checkpoint": str(file), "tokenizer": str(folder / "tokenizer"), "template": "{label}"}

    vocabulary = shapes["token_embedding.weight"][0]
    variant = config_of(shapes)
    size, vision = variant.vision_config.image_size, variant.vision_config
    known = {
        **clip.VARIANTS,
        "golden": (vision.patch_size, size, vision.hidden_size, vision.num_hidden_layers, variant.projection_dim),
    }
    shallow = partial(clip.openai_config, text_depth=variant.text_config.num_hidden_layers)
    model = published.shipped(case, "clip", write, [(clip, "VARIANTS", known), (clip, "openai_config", shallow)])
    texts = [published.text_of(row, (0, vocabulary - 2, vocabulary - 1)) for row in case.tensor("tokens").tolist()]
    return published.dual_outputs(model, case.tensor("image"), texts, ("cosine", "patch_text_map", "logits_per_image"))
