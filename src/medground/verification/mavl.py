"""MAVL on golden cases."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from medground.models.checkpoints import load_weights, read_weights
from medground.models.common.presence import presence
from medground.models.common.transformers import blank
from medground.models.radiology import mavl
from medground.models.radiology.medklip import GRID_STRIDE
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
    return found


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
