"""MedCLIP on golden cases, both image towers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from medground.models.checkpoints import load_weights, read_weights
from medground.models.common.transformers import blank
from medground.models.radiology import medclip
from medground.verification import published
from medground.verification.biomedclip import bert_config_of
from medground.verification.cases import Array, Case, stats

SHOWN_TOKENS = [0, 6, 24, 48]


def network(case: Case) -> medclip.MedclipNetwork:
    """Return the network with stand-in weights, loaded as a published file is."""
    resnet = case.options.get("variant") == "resnet"
    shapes = dict(case.shapes(case.options.get("state_dict", "state_dict")))
    if not any(name.startswith("text_model.") for name in shapes):
        # A table of the image tower alone: one layer of the text tower completes the file.
        shapes |= case.shapes("state_dict", lambda name: not re.search(r"^vision_model|\.layer\.[1-9]", name))
    config = bert_config_of(shapes, "text_model.model")
    model = blank(lambda: medclip.MedclipNetwork("resnet" if resnet else "swin", config))
    content = case.golden.state(shapes, unused=medclip.LAYOUT.ignore)
    for name, shape in case.golden.manifest["checkpoint_layout"]["integer_buffers_possibly_in_the_file"].items():
        content[name] = torch.zeros(shape, dtype=torch.int64)
    weights = read_weights(content, medclip.LAYOUT)
    load_weights(model, weights, published=medclip.published, ignore=medclip.LAYOUT.ignore)
    return model.eval()


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    if case.has("logit_scale"):
        return {"logits": (torch.eye(2) * medclip.temperature(case.tensor("logit_scale"))).numpy()}
    model = case.golden.keep("network", case.key(), lambda: network(case))
    found: dict[str, Array] = {}
    classes = [str(name) for name in case.options.get("class_order", ())]
    if case.has("tokens"):
        found |= text_outputs(model, case.tensor("tokens"), case.tensor("attention_mask"))
    if case.has("image"):
        found |= image_outputs(case, model)
    if classes:
        found |= class_outputs(case, model, classes)
    return found


def text_outputs(model: Any, ids: Tensor, mask: Tensor) -> dict[str, Array]:
    """Return what cases ask about one padded batch of texts."""
    vectors = model.text_model(ids, mask)
    alone = int(mask[0].sum())
    return {
        "text_embedding": vectors.numpy(),
        "text_embedding_normalised": functional.normalize(vectors, dim=-1).numpy(),
        "first_row_alone": model.text_model(ids[:1, :alone], mask[:1, :alone]).numpy(),
        "text_embedding_masked_mean": model.text_model(ids, mask, mask_padding=True).numpy(),
    }


def image_outputs(case: Case, model: Any) -> dict[str, Array]:
    """Return what cases ask about images, and about texts in them."""
    tower = model.vision_model
    pixels = case.tensor("image").expand(-1, 3, -1, -1)
    cells = tower.cells(pixels)
    pooled = cells.mean(1)
    vectors = tower.project(pooled)
    side = round(cells.shape[1] ** 0.5)
    found = {
        "image_embedding": vectors.numpy(),
        "image_embedding_normalised": functional.normalize(vectors, dim=-1).numpy(),
        "pooled": pooled.numpy(),
        "token_rows": cells[:, case.numbers("token_rows") or SHOWN_TOKENS].numpy(),
        "image_norm": vectors.norm(dim=-1).numpy(),
        "feature_statistics": stats(cells.numpy()),
    }
    if case.wants("stage_statistics"):
        hidden = tower.model(pixel_values=pixels, output_hidden_states=True).hidden_states
        found["stage_statistics"] = np.stack([stats(stage.numpy()) for stage in hidden])
    texts = case.tensor("text") if case.has("text") else None
    if case.has("tokens"):
        texts = model.text_model(case.tensor("tokens"), case.tensor("attention_mask"))
    if texts is not None:
        normed = functional.normalize(texts, dim=-1)
        maps = (tower.project(cells) @ normed.T).transpose(1, 2)
        found |= {
            "map": maps.reshape(len(cells), -1, side, side).numpy(),
            "unnormalised_score": (vectors @ normed.T).numpy(),
            "cosine": (functional.normalize(vectors, dim=-1) @ normed.T).numpy(),
        }
    return found


def class_outputs(case: Case, model: Any, classes: list[str]) -> dict[str, Array]:
    """Return class scores; each class is its own padded batch."""
    tower = model.vision_model
    image = functional.normalize(tower.project(tower.cells(case.tensor("image")).mean(1)), dim=-1)
    found, means, largest = {}, [], []
    for name in classes:
        vectors = model.text_model(case.tensor(f"tokens_{name}"), case.tensor(f"attention_mask_{name}"))
        logits = image @ functional.normalize(vectors, dim=-1).T * model.scale()
        found[f"prompt_logits_{name}"] = logits.numpy()
        means.append(logits.mean(-1))
        largest.append(logits.amax(-1))
    found |= {"score_mean": torch.stack(means, -1).numpy(), "score_max": torch.stack(largest, -1).numpy()}
    return found | (shipped_outputs(case, classes) if published.travels(case) else {})


BERT_TOKENS = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}
"""Of Bio_ClinicalBERT, cased."""


def shipped_outputs(case: Case, classes: list[str]) -> dict[str, Array]:
    """Return what the shipped class says to classes of several prompts, from the authors' file.

    A caption is matched by itself, so a class's prompt logits are compared for its longest prompt,
    which has no padding.
    """
    shapes = dict(case.shapes())
    config = bert_config_of(shapes, "text_model.model")

    def write(folder: Path) -> dict[str, Any]:
        content = case.golden.state(shapes, unused=medclip.LAYOUT.ignore)
        for name, shape in case.golden.manifest["checkpoint_layout"]["integer_buffers_possibly_in_the_file"].items():
            content[name] = torch.zeros(shape, dtype=torch.int64)
        published.save(folder / "pytorch_model.bin", content)
        published.bert_tokenizer(folder / "text", config.vocab_size, BERT_TOKENS)
        published.write_config(folder / "text", config)
        return {"checkpoint": str(folder), "text_model": str(folder / "text")}

    model = published.shipped(case, "medclip", write)
    texts = [
        [published.text_of(row, tuple(BERT_TOKENS)) for row in case.tensor(f"tokens_{name}").tolist()]
        for name in classes
    ]
    images, found = published.prepared(case.tensor("image")), {}
    for rule in ("mean", "max"):
        model.ensemble = rule
        found[f"score_{rule}"] = published.worded(model, texts).predict(images, published.names(len(texts))).scores
    agrees = _maps_agree(model, images, case.tensor("image"), texts)
    for place, name in enumerate(classes):
        longest = int(case.tensor(f"attention_mask_{name}").sum(1).argmax())
        matched = model.match(images, [texts[place]] * len(images))
        expected = case.expected(f"prompt_logits_{name}")[:, longest]
        agrees = agrees and published.close(matched.raw[:, longest] * matched.scale, expected)
    found["score_max"] = published.held(found["score_max"], agrees)
    return {key: value * model.scale() for key, value in found.items()}


def _maps_agree(model: Any, images: Any, pixels: Tensor, texts: list[list[str]]) -> bool:
    """Whether maps are the projected cells on a class's mean prompt vector, over the norm of the image's vector."""
    tower = model.network.vision_model
    cells = tower.project(tower.cells(pixels))
    side = round(cells.shape[1] ** 0.5)
    scaled = cells / cells.mean(1).norm(dim=-1)[:, None, None]
    maps = [scaled @ functional.normalize(model.embed(own), dim=-1).mean(0) for own in texts]
    expected = torch.stack(maps, 1).reshape(len(pixels), len(texts), side, side)
    model.ensemble = "mean"
    return published.close(model.predict(images, published.names(len(texts))).saliency, expected.numpy())
