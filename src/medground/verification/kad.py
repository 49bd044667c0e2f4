"""KAD on golden cases; each group of its file is loaded by itself, as cases need only one or two."""

from __future__ import annotations

from pathlib import Path
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
from medground.verification import published
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
    if case.has("text", "image") and published.travels(case):
        found |= shipped_outputs(case, tokens)
    return found


def shipped_model(case: Case, variant: str, side: int) -> Any:
    """Return the shipped class with the file's three groups, and the text encoder of the folder's tiny case."""
    groups = {"image_encoder": f"image_encoder ({variant} variant)", "model": "model"}
    (groups["text_encoder"],) = (name for name in case.golden.manifest["state_dict"] if name.startswith("text_encoder"))
    (tiny,) = (one for one in case.golden.cases() if "bert_config" in one.options)
    config = BertConfig(**tiny.options["bert_config"])

    def write(folder: Path) -> dict[str, Any]:
        aliases = case.golden.manifest["aliases"]
        content: dict[str, Any] = {
            name: case.golden.state(group_shapes(case, group), aliases=aliases.get(group, {}))
            for name, group in groups.items()
        }
        content["text_encoder"]["bert_model.embeddings.position_ids"] = torch.arange(64)[None]
        published.bert_tokenizer(folder / "text", config.vocab_size, published.BERT_TOKENS)
        published.write_config(folder / "text", config)
        more = {"config": {"image_res": side}, **published.training_entries()}
        file = published.save(folder / "best_valid.pt", {**content, **more})
        return {"checkpoint": str(file), "text_model": str(folder / "text"), "resolution": side}

    return case.golden.keep("kad", variant, lambda: published.shipped(case, "kad", write))


def shipped_outputs(case: Case, tokens: torch.Tensor) -> dict[str, Array]:
    """Return what the shipped class says where golden text vectors take the place of its own."""
    model = shipped_model(case, str(case.options["variant"]), int(case.inputs["image"].shape[-1]))
    texts, images = case.tensor("text"), published.prepared(case.tensor("image"))
    said = published.injected(model, texts).predict(images, published.names(len(texts)))
    matched = published.own_texts(model).match(images, [["w17 w45", "w33"]] * len(images))
    expected = (tokens.mean(1) @ _alone(model).T).numpy() * kad.LOSS_SCALE
    agrees = published.close(matched.raw * matched.scale / expected, np.ones_like(expected))
    return {
        "probability": published.held(said.probabilities, agrees),
        "attention": np.asarray(said.saliency).reshape(*said.scores.shape, -1),
    }


def _alone(model: Any) -> torch.Tensor:
    """Return the vectors of two texts, each encoded by itself."""
    encoder = model.network.text_encoder
    rows = [torch.tensor([ids]) for ids in ([2, 17, 45, 3], [2, 33, 3])]
    return torch.cat([encoder(row, torch.ones_like(row)) for row in rows])


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
    vectors = encoder(case.tensor("input_ids"), case.tensor("attention_mask")).numpy()
    texts = [published.text_of(row, tuple(published.BERT_TOKENS)) for row in case.tensor("input_ids").tolist()]
    model = published.worded(published.own_texts(shipped_model(case, "512", 128)), texts)
    own = model.texts(published.names(len(texts))).numpy()
    return {"embedding": published.held(own, published.close(own, vectors))}


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
