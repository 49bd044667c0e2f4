"""The vision transformer that CARZero and BiomedCLIP share, on golden cases."""

from __future__ import annotations

import numpy as np

from medground.models.checkpoints import load_weights, read_weights
from medground.models.common.transformers import blank
from medground.models.layers.vit import VisionTransformer
from medground.verification.cases import Array, Case, count, stats


def network(case: Case) -> VisionTransformer:
    """Return the network with stand-in weights."""
    shapes = case.shapes()
    width, _, patch, _ = shapes["patch_embed.proj.weight"]
    side = int(np.sqrt(shapes["pos_embed"][1] - 1))
    depth = count(shapes, r"^blocks\.(\d+)")
    model = blank(lambda: VisionTransformer(width, depth, width // 64, patch, side * patch))
    load_weights(model, read_weights(case.golden.state(shapes)))
    return model.eval()


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    model = case.golden.keep("network", case.key(), lambda: network(case))
    stream = [model.embed(case.tensor("image"))]
    for block in model.blocks:
        stream.append(block(stream[-1]))
    tokens = model.norm(stream[-1])
    found = {
        "cls": tokens[:, 0].numpy(),
        "patch_rows": tokens[:, case.numbers("patch_rows")].numpy(),
        "token_norms": tokens.norm(dim=-1).numpy(),
        "token_means": tokens.mean(-1).numpy(),
        "statistics": stats(tokens.numpy()),
        "embedded_rows": stream[0][:, case.numbers("embedded_rows")].numpy(),
    }
    return found | {f"block{i}_cls": after[:, 0].numpy() for i, after in enumerate(stream[1:])}
