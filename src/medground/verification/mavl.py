"""MAVL on golden cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from medground.models.checkpoints import load_weights, read_weights
from medground.models.common import book
from medground.models.common.presence import presence
from medground.models.common.transformers import blank
from medground.models.radiology import mavl
from medground.models.radiology.medklip import GRID_STRIDE
from medground.verification import published
from medground.verification.cases import Array, Case, every, moment
from medground.verification.medklip import token_outputs

FULL, RULE, SUBSET = 13, 31, 3


def network(case: Case) -> mavl.MavlNetwork:
    """Return the network with stand-in weights, loaded as a published file is."""
    layout = case.golden.manifest["checkpoint_layout"]
    content = case.golden.state(case.shapes(), unused=mavl.LAYOUT.ignore, prefix=layout["prefix"])
    content[layout["prefix"] + "temp"] = torch.zeros(())
    model = blank(mavl.MavlNetwork)
    weights = read_weights({layout["weights_under"]: content, "epoch": 1}, mavl.LAYOUT)
    load_weights(model, weights, published=mavl.published, ignore=mavl.LAYOUT.ignore)
    return model.eval()


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    layers = sorted(name for name in case.inputs if name.startswith("attention_layer"))
    if layers:
        return reduction_rule(torch.stack([case.tensor(name) for name in layers]).abs())
    model = case.golden.keep("network", case.key(), lambda: network(case))
    features = model.backbone(case.tensor("image"))
    grid = (features.shape[-2], features.shape[-1])
    if not case.has("description"):
        return token_outputs(case, model.tokens(features)) | {"global_vector": model.pool(features)[0].numpy()}
    texts = torch.cat([case.tensor("description")[:, None], case.tensor("aspects")], 1)
    logits, attention = model(features, texts)
    concepts = case.options.get("concepts_for_map", list(mavl.MAP_CONCEPTS))
    average, largest, alone = (mavl.reduced(attention, grid, concepts, rule) for rule in ("avg", "max", "global"))
    full = resized(average, (grid[0] * GRID_STRIDE, grid[1] * GRID_STRIDE))
    found = {
        "logits": logits.numpy(),
        "probability": presence(logits).numpy(),
        "feature_probability": presence(logits).numpy(),
        "attention": attention.numpy(),
        "map_grid": average.numpy(),
        "map_grid_max": largest.numpy(),
        "map_grid_global": alone.numpy(),
        "map_full_subset": every(full, case.stride("map_full_subset", FULL)),
        "map_full_moment": moment(full),
    }
    if case.wants("text_probability") or case.wants("cosine"):
        cosines = model.concept_cosines(features, texts)
        found |= {"cosine": cosines.numpy(), "text_probability": mavl.text_probability(cosines).numpy()}
    return found | (shipped_outputs(case, texts) if published.travels(case) else {})


def shipped_outputs(case: Case, texts: Tensor) -> dict[str, Array]:
    """Return what the shipped class says where golden text vectors take the place of its own, which are checked too."""
    layout = case.golden.manifest["checkpoint_layout"]

    def write(folder: Path) -> dict[str, Any]:
        weights = case.golden.state(case.shapes(), unused=mavl.LAYOUT.ignore, prefix=layout["prefix"])
        weights[layout["prefix"] + "temp"] = torch.zeros(())
        content = {layout["weights_under"]: weights, "config": {"batch_size": 32}, **published.training_entries()}
        published.small_bert_folder(folder / "text")
        file = published.save(folder / "checkpoint_full_40.pth", content)
        observations = published.observations(folder)
        names = json.loads(observations.read_text())
        concepts = folder / "gpt4_mimic.json"
        concepts.write_text(
            json.dumps({name: dict(zip(ASPECTS, _aspects(at), strict=True)) for at, name in enumerate(names)})
        )
        books = {"book": str(observations), "concept_book": str(concepts)}
        return {"checkpoint": str(file), "text_model": str(folder / "text"), **books}

    model = published.shipped(case, "mavl", write)
    images, findings = published.prepared(case.tensor("image")), published.names(len(texts))
    agrees = _asks_its_books(model, case.tensor("image"))
    published.injected(model, (texts, list(range(len(texts)))))
    said = model.predict(images, findings)
    found = {"probability": published.held(said.probabilities, agrees), "map_grid": np.asarray(said.saliency)}
    for rule in ("max", "global"):
        model.reduce = rule
        found[f"map_grid_{rule}"] = np.asarray(model.predict(images, findings).saliency)
    model.reduce, model.mode = "avg", "text"
    if case.wants("text_probability"):
        found["text_probability"] = model.predict(images, findings).probabilities
    model.mode = "feature"
    return found | {"feature_probability": found["probability"]}


ASPECTS = ("texture", "border", "fluid", "location", "opacity", "other", "patterns", "shape")
"""Not in the alphabetical order in which they are asked."""


def _aspects(entry: int) -> list[str]:
    """Return the eight texts of an entry of the concept book, in the order of :data:`ASPECTS`."""
    return [f"w{20 + entry} w{100 + place}" for place in range(len(ASPECTS))]


def _asks_its_books(model: Any, pixels: Tensor) -> bool:
    """Whether the class asks its books as published: nine texts a disease, aspects by the alphabet."""
    said = published.own_texts(model).predict(published.prepared(pixels), ["Pneumothorax", "Nodule"])
    alphabet = sorted(range(len(ASPECTS)), key=lambda place: ASPECTS[place])
    ids = [
        row
        for entry in range(book.ENTRIES)
        for row in ([2, entry + 10, entry + 11, 3], *([2, 20 + entry, 100 + place, 3] for place in alphabet))
    ]
    texts = published.class_states(ids).reshape(book.ENTRIES, mavl.CONCEPTS, -1)
    logits, attention = model.network(model.network.backbone(pixels), texts)
    places = [book.POSITIONS["pneumothorax"], book.POSITIONS["nodule"]]
    side = pixels.shape[-1] // GRID_STRIDE
    maps = mavl.reduced(attention, (side, side), list(mavl.MAP_CONCEPTS), "avg")[:, places]
    return published.close(said.probabilities, presence(logits[:, places]).numpy()) and published.close(
        said.saliency, maps.numpy()
    )


def resized(maps: Tensor, size: tuple[int, int]) -> Array:
    """Return maps ``(N, D, h, w)`` at the input's size (height, width), as the authors resize them."""
    return functional.interpolate(maps, size, mode="bilinear", align_corners=True).numpy()


def reduction_rule(values: Tensor) -> dict[str, Array]:
    """Return the maps of injected attention ``(layers, N, 9 D, cells)``, before its division by the cells."""
    cells = values.shape[-1]
    side = int(np.sqrt(cells))
    attention = values / cells
    average, largest, alone = (
        mavl.reduced(attention, (side, side), mavl.MAP_CONCEPTS, rule) for rule in ("avg", "max", "global")
    )
    full = resized(average, (side * GRID_STRIDE, side * GRID_STRIDE))
    return {
        "map14_avg": average.numpy(),
        "map14_max_subset": every(largest.numpy(), SUBSET),
        "map14_global_subset": every(alone.numpy(), SUBSET),
        "map224_subset": every(full, RULE),
        "map224_moment": moment(full),
    }
