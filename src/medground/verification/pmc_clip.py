"""PMC-CLIP on golden cases."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch.nn import functional

from medground.models.checkpoints import load_weights, read_weights
from medground.models.common.transformers import blank
from medground.models.radiology import pmc_clip
from medground.verification import published
from medground.verification.biomedclip import bert_config_of
from medground.verification.cases import Array, Case, stats

CHANNELS = 128


def network(case: Case) -> pmc_clip.PmcClipNetwork:
    """Return the network with stand-in weights, loaded as a published file is."""
    shapes = case.shapes()
    positions = shapes["visual.attnpool.positional_embedding"][0]
    size = round((positions - 1) ** 0.5) * pmc_clip.STRIDE
    config = bert_config_of(shapes, "text_encoder")
    model = blank(lambda: pmc_clip.PmcClipNetwork(config, size))
    content = {"state_dict": case.golden.state(shapes, unused=pmc_clip.LAYOUT.ignore, prefix="module."), "epoch": 1}
    load_weights(model, read_weights(content, pmc_clip.LAYOUT), ignore=pmc_clip.LAYOUT.ignore)
    return model.eval()


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    model = case.golden.keep("network", case.key(), lambda: network(case))
    stages = model.visual.stages(case.tensor("image"))
    pooled, attention = model.visual.attnpool(stages[-1])
    ids = case.tensor("tokens")
    texts = model.text(ids, case.golden.manifest["constants"].get("cls_token", 2))
    image, text = functional.normalize(pooled, dim=-1), functional.normalize(texts, dim=-1)
    cosine = image @ text.T
    dense = functional.normalize(model.visual.attnpool.dense(stages[-1]), dim=-1) @ text.T
    computed = {
        "image_features_raw": pooled.numpy(),
        "image_features": image.numpy(),
        "text_features_raw": texts.numpy(),
        "text_features": text.numpy(),
        "cosine": cosine.numpy(),
        "logits": (cosine * model.logit_scale.exp()).numpy(),
        "stage_statistics": np.stack([stats(stage.numpy()) for stage in stages]),
        "layer4_rows": stages[-1][:, ::CHANNELS].numpy(),
        "pool_attention": attention.numpy(),
        "dense_map": dense.transpose(1, 2).reshape(*cosine.shape, *stages[-1].shape[-2:]).numpy(),
        "wrong_text_with_mask": texts.numpy(),
    }
    return computed | (shipped_outputs(case) if published.travels(case) else {})


def shipped_outputs(case: Case) -> dict[str, Array]:
    """Return what the shipped class says, from the authors' training checkpoint and a folder of the text model."""
    shapes = case.shapes()
    config = bert_config_of(shapes, "text_encoder")
    size = round((shapes["visual.attnpool.positional_embedding"][0] - 1) ** 0.5) * pmc_clip.STRIDE

    def write(folder: Path) -> dict[str, Any]:
        weights = case.golden.state(shapes, unused=pmc_clip.LAYOUT.ignore, prefix="module.")
        content = {"state_dict": weights, "name": "RN50_fusion4", **published.training_entries()}
        content.pop("lr_scheduler")
        published.bert_tokenizer(folder / "text", config.vocab_size, published.BERT_TOKENS)
        published.write_config(folder / "text", config)
        file = published.save(folder / "checkpoint.pt", content)
        return {"checkpoint": str(file), "text_model": str(folder / "text"), "template": "{label}"}

    sized = partial(pmc_clip.PmcClipNetwork, image_size=size)
    model = published.shipped(case, "pmc_clip", write, [(pmc_clip, "PmcClipNetwork", sized)])
    texts = [published.text_of(row, tuple(published.BERT_TOKENS)) for row in case.tensor("tokens").tolist()]
    return published.dual_outputs(model, case.tensor("image"), texts, ("cosine", "dense_map", "logits"))
