"""LLaVA-Med on golden cases: a tiny configuration, the authors' names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import CLIPVisionConfig, LlavaConfig, MistralConfig

from medground.models.checkpoints import load_weights, read_weights
from medground.models.common import llava_config
from medground.models.messages import Message
from medground.models.radiology import llava_med
from medground.verification import published
from medground.verification.cases import Array, Case


def network(case: Case) -> Any:
    """Return the network with stand-in weights, loaded as a published file is."""
    stated = case.golden.manifest["configuration"]
    config = LlavaConfig(
        text_config=MistralConfig(**stated["text"]),
        vision_config=CLIPVisionConfig(**stated["vision"]),
        vision_feature_layer=stated["vision_feature_layer"],
        image_token_index=0,
    )
    model = llava_med.network_of(config)
    weights = read_weights(case.golden.state(case.shapes()), llava_med.LAYOUT)
    layout = llava_med.layout_of(list(weights.tensors))
    load_weights(model, weights, published=lambda name: llava_med.published(name, layout))
    return model.eval()


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    model = case.golden.keep("network", case.key(), lambda: network(case))
    vision, projected = llava_med.image_features(model, case.tensor("image"))
    prompt, (start,) = llava_med.embed(model, case.tensor("tokens")[0].tolist(), [projected[0]])
    names = sorted(name for name in case.inputs if name.startswith("option_"))
    scored = llava_med.score_options(model, prompt, [case.tensor(name).tolist() for name in names])
    side = round(len(projected[0]) ** 0.5)
    seen = scored.attention[:, start : start + len(projected[0])].reshape(-1, side, side)
    computed = {
        "vision_features": vision.numpy(),
        "projected_features": projected.numpy(),
        "logits": scored.logits[None].numpy(),
        "next_token_log_probability": torch.log_softmax(scored.logits[-1], -1).numpy(),
        "option_log_likelihood": scored.total.numpy(),
        "option_mean_log_likelihood": scored.mean.numpy(),
        "answer_to_image_attention": seen.mean(0).numpy(),
        "answer_to_image_attention_by_layer": seen.numpy(),
    }
    return computed | (shipped_outputs(case, model, projected) if published.travels(case) else {})


def shipped_outputs(case: Case, network: Any, projected: torch.Tensor) -> dict[str, Array]:
    """Return what the shipped class says, from a folder with the authors' configuration, shards and names.

    The ids of the case are no prompt of the class's making, so they take the place of a question's; what the class
    makes of a conversation of its own is compared with its ids put together here.
    """
    stated = case.golden.manifest["configuration"]

    def write(folder: Path) -> dict[str, Any]:
        tower = {"mm_vision_tower": "openai/clip-vit-large-patch14-336", "mm_projector_type": "mlp2x_gelu"}
        further = {"mm_vision_select_layer": stated["vision_feature_layer"], "mm_vision_select_feature": "patch"}
        config = {"model_type": "llava_mistral", "image_aspect_ratio": "pad", **stated["text"], **tower, **further}
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        words = dict(enumerate(llava_med.ANSWERS, 50))
        published.word_tokenizer(folder, stated["text"]["vocab_size"], 1, 2, 0, words)
        state = case.golden.state(case.shapes())
        names = sorted(state)
        shards = {f"pytorch_model-0000{n + 1}-of-00002.bin": names[n::2] for n in range(2)}
        for file, own in shards.items():
            published.save(folder / file, {name: state[name] for name in own})
        index = {"metadata": {}, "weight_map": {name: file for file, own in shards.items() for name in own}}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index), encoding="utf-8")
        return {"checkpoint": str(folder)}

    sizes = {**llava_config.VISION, **stated["vision"]}
    model = published.shipped(case, "llava_med", write, [(llava_config, "VISION", sizes)])
    images, (ids,) = published.prepared(case.tensor("image")), case.tensor("tokens").tolist()
    options = [case.tensor(name).tolist() for name in sorted(case.inputs) if name.startswith("option_")]
    agrees = _asks_as_published(model, network, images, projected)
    plain = dict(zip(llava_med.ANSWERS, options, strict=True))
    model._plain_ids = plain.__getitem__
    said = published.injected(model, [ids]).predict(images, ["Mass"])
    del model._plain_ids
    expected = case.expected("option_log_likelihood")
    agrees = agrees and published.close(said.scores.ravel(), [expected[0] - expected[1]])
    return {"answer_to_image_attention": published.held(np.asarray(said.saliency)[0, 0], agrees)}


def _asks_as_published(model: Any, network: Any, images: list[Any], projected: torch.Tensor) -> bool:
    """Whether the class's own question and choices are scored as the parts of the network, put together, score them."""
    model = published.worded(published.own_texts(model), ["w20 w21"])
    said = model.predict(images, published.names(1))
    chosen = model.choose([[Message("user", "w20 w21", tuple(images))]], [["w7", "w8 w9"]])[0]
    text = model.tokenise.inner
    ids = [1, *text("[INST] ", add_special_tokens=False)["input_ids"], llava_med.IMAGE]
    ids += text("\nw20 w21 [/INST]", add_special_tokens=False)["input_ids"]
    prompt, (start,) = llava_med.embed(network, ids, [projected[0]])
    scored = llava_med.score_options(network, prompt, [[7], [8, 9]])
    answers = [text(answer, add_special_tokens=False)["input_ids"] for answer in llava_med.ANSWERS]
    margin = llava_med.score_options(network, prompt, answers)
    seen = margin.attention.mean(0)[start : start + len(projected[0])]
    return (
        published.close(chosen, scored.total)
        and published.close(said.scores.ravel(), (margin.total[0] - margin.total[1])[None])
        and published.close(np.asarray(said.saliency).ravel(), seen)
    )
