"""M3AE on golden cases."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import RobertaConfig

from medground.models.checkpoints import load_weights, read_weights
from medground.models.common.presence import presence
from medground.models.common.transformers import blank
from medground.models.radiology import m3ae
from medground.verification import published
from medground.verification.cases import Array, Case, Shapes, count, stats

CHANNELS = 96


def config_of(shapes: Shapes) -> RobertaConfig:
    """Return the configuration of RoBERTa that published shapes imply."""
    stem = "language_encoder.embeddings"
    vocabulary, width = shapes[f"{stem}.word_embeddings.weight"]
    return RobertaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=count(shapes, r"^language_encoder\.encoder\.layer\.(\d+)"),
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        max_position_embeddings=shapes[f"{stem}.position_embeddings.weight"][0],
        type_vocab_size=shapes[f"{stem}.token_type_embeddings.weight"][0],
        layer_norm_eps=1e-5,
    )


def network(case: Case) -> m3ae.M3aeNetwork:
    """Return the network with stand-in weights, loaded as a published file is."""
    shapes = case.shapes()
    config, (size, blocks, layers) = config_of(shapes), depths_of(shapes)
    model = blank(lambda: m3ae.M3aeNetwork(config, size, blocks, layers))
    content = {"state_dict": case.golden.state(shapes, unused=m3ae.LAYOUT.ignore), "epoch": 1}
    weights = m3ae.at_resolution(read_weights(content, m3ae.LAYOUT), size)
    load_weights(model, weights, published=m3ae.published, ignore=m3ae.LAYOUT.ignore)
    return model.eval()


def depths_of(shapes: Shapes) -> tuple[int, int, int]:
    """Return side of the input, blocks of the image tower and co-attention layers that published shapes imply."""
    size = round((shapes[m3ae.POSITIONS][0] - 1) ** 0.5) * m3ae.PATCH
    blocks = count(shapes, r"^vision_encoder\.visual\.transformer\.resblocks\.(\d+)")
    layers = count(shapes, r"^multi_modal_language_layers\.(\d+)")
    return size, blocks, layers


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    if case.has("position_embedding"):
        stored = case.tensor("position_embedding")
        sizes = [int(name.removeprefix("to_")) for name in case.spec["outputs"]]
        return {
            f"to_{size}": m3ae.resize_positions(stored, (size // m3ae.PATCH) ** 2)[:, ::CHANNELS].numpy()
            for size in sizes
        }
    model = case.golden.keep("network", case.key(), lambda: network(case))
    ids, mask, pixels = case.tensor("tokens"), case.tensor("attention_mask"), case.tensor("image")
    states, seen = model.encode(ids, mask), model.vision_encoder(pixels)
    text, image, over_image, over_text = model.join(
        model.text_stream(ids, mask), mask, model.image_stream(pixels).expand(len(ids), -1, -1)
    )
    fused = model.fused(text, image)
    logits = model.itm_head.fc(fused)
    last = mask.sum(-1) - 1
    computed = {
        "itm_logits": logits.numpy(),
        "itm_probability": presence(logits).numpy(),
        "fused_cls": fused.numpy(),
        "text_encoder_token0": states[:, 0].numpy(),
        "text_encoder_last_real_token": states[torch.arange(len(ids)), last].numpy(),
        "vision_rows": seen[:, case.numbers("vision_rows")].numpy(),
        "vision_statistics": stats(seen.numpy()),
        "text_stream_token0": text[:, 0].numpy(),
        "image_stream_token0": image[:, 0].numpy(),
        "text_to_image_attention": np.stack([layer.mean(1).numpy() for layer in over_image]),
        "image_to_text_attention_token0": np.stack([layer.mean(1)[:, 0].numpy() for layer in over_text]),
        "map": m3ae.caption_map(over_image, mask).numpy(),
        "text_to_image_attention_heads": over_image[-1][:, :, 1].numpy(),
    }
    return computed | (shipped_outputs(case) if published.travels(case) else {})


START, PAD, END = 0, 1, 2
"""Special tokens of RoBERTa."""


def shipped_outputs(case: Case) -> dict[str, Array]:
    """Return what the shipped class says to captions, from the authors' Lightning checkpoint."""
    shapes = case.shapes()
    config, (size, blocks, layers) = config_of(shapes), depths_of(shapes)

    def write(folder: Path) -> dict[str, Any]:
        weights = case.golden.state(shapes, unused=m3ae.LAYOUT.ignore)
        further = {"hyper_parameters": {"max_text_len": 64}, "callbacks": {}, "loops": {}, "lr_schedulers": []}
        published.word_tokenizer(folder / "text", config.vocab_size, START, END, PAD)
        published.write_config(folder / "text", config)
        file = published.save(folder / "m3ae.ckpt", {"state_dict": weights, "epoch": 1, "global_step": 2, **further})
        return {"checkpoint": str(file), "text_model": str(folder / "text"), "resolution": size, "template": "{label}"}

    shallow = partial(m3ae.M3aeNetwork, vision_depth=blocks, depth=layers)
    model = published.shipped(case, "m3ae", write, [(m3ae, "M3aeNetwork", shallow)])
    texts = [published.text_of(row, (START, PAD, END)) for row in case.tensor("tokens").tolist()]
    images = published.prepared(case.tensor("image"))
    said = published.worded(model, texts).predict(images, published.names(len(texts)))
    matched = model.match(images, [texts] * len(images))
    agrees = published.close(1 / (1 + np.exp(-matched.raw * matched.scale)), said.probabilities)
    return {"itm_probability": published.held(said.probabilities, agrees), "map": np.asarray(said.saliency)}
