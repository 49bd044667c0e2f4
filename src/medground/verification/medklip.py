"""MedKLIP on golden cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from medground.models.checkpoints import load_weights, read_weights
from medground.models.common import book
from medground.models.common.inputs import IMAGENET_MEAN, IMAGENET_STD, Preprocess, equalise_histogram
from medground.models.common.presence import presence
from medground.models.common.transformers import blank
from medground.models.radiology import medklip
from medground.verification import published
from medground.verification.cases import Array, Case, enlarged, every, moment, stats

SUBSET, PIXELS, ROWS = 37, 9, 25


def network(case: Case) -> medklip.MedklipNetwork:
    """Return the network with stand-in weights, loaded as a published file is."""
    layout = case.golden.manifest["checkpoint_layout"]
    content = {
        layout["weights_under"]: case.golden.state(case.shapes(), unused=medklip.LAYOUT.ignore, prefix=layout["prefix"])
    }
    model = blank(medklip.MedklipNetwork)
    weights = read_weights({**content, "epoch": 1}, medklip.LAYOUT)
    load_weights(model, weights, published=medklip.published, ignore=medklip.LAYOUT.ignore)
    return model.eval()


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    if not case.has("text") and not case.has("memory"):
        pixels = case.inputs["image"]
        if pixels.ndim == 2:
            return preprocessed(case, "equalise" in case.name or case.wants("equalised_rows"))
    model = case.golden.keep("network", case.key(), lambda: network(case))
    if case.has("memory"):
        answers, attention = model.decoder(case.tensor("queries"), case.tensor("memory"))
        return {"decoder_output": answers.numpy(), "attention": attention.numpy()}
    image = case.tensor("image")
    found = token_outputs(case, model.tokens(image))
    if case.has("text"):
        answers, logits, attention = model(image, case.tensor("text"))
        grid = tuple(case.options.get("grid") or (side // medklip.GRID_STRIDE for side in image.shape[-2:]))
        flat = attention.mean(0).numpy()
        maps = flat.reshape(*flat.shape[:2], *grid)
        large = enlarged(maps, medklip.GRID_STRIDE)
        found |= {
            "decoder_output": answers.numpy(),
            "logits": logits.numpy(),
            "probability": presence(logits).numpy(),
            "attention": attention.numpy(),
            "mean_attention": flat,
            "map14": maps,
            "map224_subset": every(large, case.stride("map224_subset", SUBSET)),
            "map224_moment": moment(large),
        }
        if published.travels(case):
            found |= shipped_outputs(case)
    return found


def shipped_outputs(case: Case) -> dict[str, Array]:
    """Return what the shipped class says where golden text vectors take the place of its own, which are checked too."""
    layout, texts = case.golden.manifest["checkpoint_layout"], case.tensor("text")

    def write(folder: Path) -> dict[str, Any]:
        weights = case.golden.state(case.shapes(), unused=medklip.LAYOUT.ignore, prefix=layout["prefix"])
        content = {layout["weights_under"]: weights, "config": {"batch_size": 32}, **published.training_entries()}
        published.small_bert_folder(folder / "text")
        file = published.save(folder / "checkpoint_final.pth", content)
        observations = published.observations(folder)
        return {"checkpoint": str(file), "text_model": str(folder / "text"), "book": str(observations)}

    model = published.shipped(case, "medklip", write)
    images = published.prepared(case.tensor("image"))
    agrees = _asks_its_book(model, case.tensor("image"))
    said = published.injected(model, (texts, list(range(len(texts))))).predict(images, published.names(len(texts)))
    maps = np.asarray(said.saliency)
    return {
        "probability": published.held(said.probabilities, agrees),
        "map14": maps,
        "mean_attention": maps.reshape(*maps.shape[:2], -1),
    }


def _asks_its_book(model: Any, pixels: Tensor) -> bool:
    """Whether the class asks its book as published: every entry's class token, and each answer in its place."""
    said = published.own_texts(model).predict(published.prepared(pixels), ["Pneumothorax", "Nodule"])
    vectors = published.class_states([[2, place + 10, place + 11, 3] for place in range(book.ENTRIES)])
    _, logits, attention = model.network(pixels, vectors)
    places = [book.POSITIONS["pneumothorax"], book.POSITIONS["nodule"]]
    maps = attention.mean(0)[:, places].numpy()
    probabilities = presence(logits[:, places]).numpy()
    return published.close(said.probabilities, probabilities) and published.close(
        np.asarray(said.saliency).reshape(maps.shape), maps
    )


def token_outputs(case: Case, tokens: Tensor) -> dict[str, Array]:
    """Return what cases ask about image tokens ``(N, T, D)``."""
    values = tokens.numpy()
    return {
        "tokens": values,
        "pooled": values.mean(1),
        "tokens_subset": values[:, case.numbers("tokens_subset")],
        "token_mean": values.mean(1),
        "channel_mean": values.mean(2),
        "stats": stats(values),
    }


def preprocessed(case: Case, equalise: bool) -> dict[str, Array]:
    """Return what cases ask about the network's input."""
    size = int(case.options.get("size", 224))
    rule = Preprocess("squash", size, "bilinear", IMAGENET_MEAN, IMAGENET_STD, equalise=equalise)
    return {
        **input_outputs(case, rule, PIXELS),
        "equalised_rows": equalise_histogram(case.inputs["image"])[:: case.stride("equalised_rows", ROWS)],
    }


def input_outputs(case: Case, rule: Preprocess, step: int) -> dict[str, Array]:
    """Return what cases ask about a preprocessed picture."""
    pixels = rule.normalise(case.inputs["image"] / np.float32(255))
    return {
        "tensor_subset": every(pixels, case.stride("tensor_subset", step)),
        "stats": stats(pixels, (1, 2)),
        "corner": np.stack([pixels[:, 0, 0], pixels[:, 0, -1], pixels[:, -1, 0], pixels[:, -1, -1]], -1),
    }
