"""KAD on golden cases; each group of its file is loaded by itself, as cases need only one or two."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from transformers import BertConfig

from medground.models.checkpoints import Layout, load_weights, read_weights
from medground.models.common.inputs import IMAGENET_MEAN, IMAGENET_STD, Preprocess
from medground.models.common.presence import presence
from medground.models.common.transformers import blank
from medground.models.radiology import kad
from medground.verification.cases import Array, Case, Shapes
from medground.verification.medklip import input_outputs, token_outputs

PIXELS = 5


class _Group(nn.Module):
    """One group of the file under its own name."""

    def __init__(self, name: str, part: nn.Module) -> None:
        super().__init__()
        self.add_module(name, part)


def load_group(case: Case, group: str, name: str, part: nn.Module) -> Any:
    """Return a group's network with stand-in weights, loaded as that group of a published file is."""
    shapes = group_shapes(case, group)
    own_names = "own name" in str(case.options.get("fill", ""))
    aliases: dict[str, str] = {} if own_names else case.golden.manifest["aliases"].get(group, {})
    unused = () if own_names else tuple(pattern.partition(".")[2] for pattern in kad.LAYOUT.ignore)
    content = {name: case.golden.state(shapes, aliases=aliases, unused=unused)}
    layout = Layout(groups=(name,), rename=kad.LAYOUT.rename)
    load_weights(_Group(name, part), read_weights(content, layout), published=kad.published, ignore=kad.LAYOUT.ignore)
    return part.eval()


def group_shapes(case: Case, group: str) -> Shapes:
    """Return the shapes of one group of the manifest."""
    return {name: tuple(shape) for name, shape in case.golden.manifest["state_dict"][group].items()}


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    if case.has("input_ids"):
        return text_outputs(case)
    if not case.inputs:
        return resized(case)
    if case.has("image") and case.inputs["image"].ndim == 2:
        size = int(case.options.get("size", 128))
        return input_outputs(case, Preprocess("squash", size, "bicubic", IMAGENET_MEAN, IMAGENET_STD), PIXELS)
    found: dict[str, Array] = {}
    if case.has("image"):
        group = f"image_encoder ({case.options['variant']} variant)"
        encoder = case.golden.keep("image", case.key(), lambda: _image_encoder(case, group))
        tokens = encoder(case.tensor("image"))
        found |= token_outputs(case, tokens)
        if case.wants("entry_count"):
            found["entry_count"] = entry_count(case, group)
    else:
        tokens = case.tensor("image_tokens")
    if case.has("text"):
        found |= decoded(case, tokens)
    return found


def _image_encoder(case: Case, group: str) -> Any:
    stages = 3 if case.options["variant"] == "224" else 4
    return load_group(case, group, "image_encoder", blank(lambda: kad.ImageEncoder(stages)))


def decoded(case: Case, tokens: torch.Tensor) -> dict[str, Array]:
    """Return what the query decoder answers."""
    decoder = case.golden.keep(
        "decoder", "", lambda: load_group(case, "model", "model", blank(lambda: kad.Decoder("last")))
    )
    answers, logits, attention = decoder(tokens, case.tensor("text"))
    return {
        "decoder_output": answers.numpy(),
        "logits": logits.numpy(),
        "probability": presence(logits).numpy(),
        "attention": attention[-1].numpy(),
    }


def text_outputs(case: Case) -> dict[str, Array]:
    """Return the text encoder's vectors."""
    (group,) = (name for name in case.golden.manifest["state_dict"] if name.startswith("text_encoder"))
    config = BertConfig(**case.options["bert_config"])
    encoder = load_group(case, group, "text_encoder", blank(lambda: kad.TextEncoder(config)))
    return {"embedding": encoder(case.tensor("input_ids"), case.tensor("attention_mask")).numpy()}


def entry_count(case: Case, group: str) -> Array:
    """Return how many entries the file has, how many are copies, are left, and are copies that disagree."""
    shapes, copies = group_shapes(case, group), case.golden.manifest["aliases"].get(group, {})
    values = case.golden.state({name: shapes[name] for pair in copies.items() for name in pair})
    disagree = sum(not torch.equal(values[copy], values[original]) for copy, original in copies.items())
    return np.array([len(shapes), len(copies), len(shapes) - len(copies), disagree])


def resized(case: Case) -> dict[str, Array]:
    """Return a stored attention as the authors' viewer shows it: divided by its maximum, resized bilinearly."""
    stored = case.golden.arrays[str(case.options["from"])]
    height, width = case.options["grid"]
    maps = torch.from_numpy(np.array(stored))[0].reshape(1, -1, height, width)
    maps = maps / maps.amax((-2, -1), keepdim=True)
    size = tuple(case.options["size_width_height"][::-1])
    return {"resized": functional.interpolate(maps, size, mode="bilinear", align_corners=False)[0].numpy()}
