"""BiomedCLIP on golden cases."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from transformers import BertConfig

from medground.models.checkpoints import load_weights, read_weights
from medground.models.common.transformers import blank
from medground.models.radiology import biomedclip
from medground.verification import published
from medground.verification.cases import Array, Case, Shapes, count


def bert_config_of(shapes: Shapes, stem: str) -> BertConfig:
    """Return the configuration that the shapes of a BERT below ``stem`` imply."""
    vocabulary, width = shapes[f"{stem}.embeddings.word_embeddings.weight"]
    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=count(shapes, rf"^{re.escape(stem)}\.encoder\.layer\.(\d+)"),
        num_attention_heads=max(1, width // 64),
        intermediate_size=shapes[f"{stem}.encoder.layer.0.intermediate.dense.weight"][0],
        max_position_embeddings=shapes[f"{stem}.embeddings.position_embeddings.weight"][0],
        type_vocab_size=shapes[f"{stem}.embeddings.token_type_embeddings.weight"][0],
    )


def network(case: Case) -> biomedclip.BiomedclipNetwork:
    """Return the network with stand-in weights, loaded as a published file is."""
    shapes = case.shapes()
    config, depth = bert_config_of(shapes, "text.transformer"), count(shapes, r"visual\.trunk\.blocks\.(\d+)")
    model = blank(lambda: biomedclip.BiomedclipNetwork(config, depth))
    content = case.golden.state(shapes)
    for extra in case.golden.manifest["checkpoint_layout"].get("may_also_hold", ()):
        content[extra] = torch.zeros(1)
    load_weights(model, read_weights(content, biomedclip.LAYOUT), ignore=biomedclip.LAYOUT.ignore)
    return model.eval()


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    model = case.golden.keep("network", case.key(), lambda: network(case))
    tokens, ids = model.visual(case.tensor("image")), case.tensor("tokens")
    mask = (ids != case.golden.manifest["constants"].get("pad_token", 0)).long()
    state_of_text = model.text.class_state(ids, mask)
    texts = model.text.proj(state_of_text)
    normed = functional.normalize(texts, dim=-1)
    cosine = functional.normalize(tokens[:, 0], dim=-1) @ normed.T
    logits = cosine * model.logit_scale.exp()
    side = round((tokens.shape[1] - 1) ** 0.5)
    maps = (functional.normalize(tokens[:, 1:], dim=-1) @ normed.T).transpose(1, 2)
    computed = {
        "image_embedding": tokens[:, 0].numpy(),
        "text_cls_state": state_of_text.numpy(),
        "text_embedding": texts.numpy(),
        "cosine": cosine.numpy(),
        "logits_per_image": logits.numpy(),
        "softmax_over_prompts": logits.softmax(-1).numpy(),
        "patch_text_map": maps.reshape(*cosine.shape, side, side).numpy(),
        "patch_rows": tokens[:, 1:][:, case.numbers("patch_rows")].numpy(),
        "wrong_text_embedding_without_mask": texts.numpy(),
    }
    return computed | (shipped_outputs(case) if published.travels(case) else {})


def shipped_outputs(case: Case) -> dict[str, Array]:
    """Return what the shipped class says, from the folder that its publisher has on Hugging Face."""
    shapes = case.shapes()
    config, depth = bert_config_of(shapes, "text.transformer"), count(shapes, r"visual\.trunk\.blocks\.(\d+)")

    def write(folder: Path) -> dict[str, Any]:
        content = case.golden.state(shapes)
        for extra in case.golden.manifest["checkpoint_layout"].get("may_also_hold", ()):
            content[extra] = torch.zeros(1)
        published.save(folder / "open_clip_pytorch_model.bin", content)
        published.bert_tokenizer(folder, config.vocab_size, published.BERT_TOKENS)
        published.write_config(folder, config)
        return {"checkpoint": str(folder), "template": "{label}"}

    shallow = partial(biomedclip.BiomedclipNetwork, depth=depth)
    model = published.shipped(case, "biomedclip", write, [(biomedclip, "BiomedclipNetwork", shallow)])
    texts = [published.text_of(row, tuple(published.BERT_TOKENS)) for row in case.tensor("tokens").tolist()]
    return published.dual_outputs(model, case.tensor("image"), texts, ("cosine", "patch_text_map", "logits_per_image"))
