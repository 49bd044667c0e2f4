"""CARZero on golden cases; the three parts of its file are loaded by themselves, as cases need only one or two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertTokenizer

from medground.models.checkpoints import load_weights, read_weights
from medground.models.common.text import Tokenizer
from medground.models.common.transformers import bert, blank
from medground.models.layers.vit import VisionTransformer
from medground.models.radiology import carzero
from medground.verification import published
from medground.verification.cases import Array, Case, Shapes, enlarged, every, moment, stats
from medground.verification.medklip import token_outputs

SUBSET, PIXELS, SHOWN_ROWS = 37, 7, 24


def load_part(case: Case, group: str, name: str, part: nn.Module) -> Any:
    """Return one part with stand-in weights, loaded as that part of a published file is."""
    manifest, layout = case.golden.manifest, case.golden.manifest["checkpoint_layout"]
    shapes: Shapes = {entry: tuple(shape) for entry, shape in manifest["state_dict"][group].items()}
    weights = case.golden.state(
        shapes, aliases=manifest["aliases"], unused=carzero.LAYOUT.ignore, prefix=layout["prefix"]
    )
    holder = nn.Module()
    holder.add_module(name, part)
    content = {layout["weights_under"]: weights, "epoch": 1}
    load_weights(holder, read_weights(content, carzero.LAYOUT), ignore=carzero.LAYOUT.ignore)
    return part.eval()


def fusion_of(case: Case) -> Any:
    """Return the fusion module."""
    make = carzero.FusionModule
    return case.golden.keep("fusion", "", lambda: load_part(case, "fusion_module", "fusion_module", blank(make)))


def image_tower(case: Case) -> Any:
    """Return the image encoder."""
    tower = blank(lambda: carzero.Tower(VisionTransformer()))
    return case.golden.keep("image", "", lambda: load_part(case, "img_encoder", "img_encoder", tower))


def outputs(case: Case) -> dict[str, Array]:
    """Return everything that a case may ask for."""
    for given, run in (("texts", cleaned), ("hidden", aggregated), ("input_ids", encoded), ("memory", asked)):
        if case.has(given):
            return run(case)
    if not case.has("image"):
        return fused(case, torch.cat([case.tensor("image_global")[:, None], case.tensor("image_local")], 1))
    return preprocessed(case) if case.inputs["image"].ndim == 2 else seen(case)


def seen(case: Case) -> dict[str, Array]:
    """Return the image tower's tokens, and what texts find in them if there are any."""
    tokens = image_tower(case).model(case.tensor("image"))
    found = token_outputs(case, tokens[:, 1:]) | {"global_vector": tokens[:, 0].numpy()}
    if case.has("text_global", "text_words"):
        found |= fused(case, tokens)
        found |= shipped_outputs(case) if published.travels(case) else {}
    return found


def shipped_model(case: Case) -> Any:
    """Return the shipped class with the authors' Lightning checkpoint, and the text encoder of the tiny case."""
    (tiny,) = (one for one in case.golden.cases() if "bert_config" in one.options)
    config, manifest = BertConfig(**tiny.options["bert_config"]), case.golden.manifest

    def write(folder: Path) -> dict[str, Any]:
        weights: dict[str, Any] = {}
        for entries in manifest["state_dict"].values():
            shapes = {entry: tuple(shape) for entry, shape in entries.items()}
            prefix = manifest["checkpoint_layout"]["prefix"]
            weights |= case.golden.state(shapes, aliases=manifest["aliases"], prefix=prefix)
        vocabulary = dict(enumerate(tiny.options["vocabulary"]))
        published.bert_tokenizer(folder / "text", len(vocabulary), vocabulary)
        published.write_config(folder / "text", config)
        with published.foreign("omegaconf.dictconfig", "DictConfig") as parameters:
            content = {"state_dict": weights, "hyper_parameters": parameters, "callbacks": {}, "epoch": 1}
            file = published.save(folder / "CARZero_best_model.ckpt", content)
        return {"checkpoint": str(file), "text_model": str(folder / "text")}

    return case.golden.keep("carzero", "", lambda: published.shipped(case, "carzero", write))


def shipped_outputs(case: Case) -> dict[str, Array]:
    """Return what the shipped class says where golden text features take the place of its own."""
    model, texts = shipped_model(case), (case.tensor("text_global"), case.tensor("text_words"))
    images, findings = published.prepared(case.tensor("image")), published.names(len(texts[0]))
    said = published.injected(model, texts).predict(images, findings)
    likely = published.close(said.probabilities, 1 / (1 + np.exp(-said.scores)))
    return {"score": published.held(said.scores, likely), "map14": np.asarray(said.saliency)}


def shipped_texts_agree(case: Case, sentence: Tensor, rows: Tensor) -> bool:
    """Whether the shipped class encodes the texts, whose ids a case holds, to the vectors that were computed here."""
    (source,) = (one for one in case.golden.cases() if one.has("texts"))
    model, texts = shipped_model(case), source.inputs["texts"]
    # A text of which the cleaning leaves nothing is refused by the class, and empty ids to the encoder.
    usable = [place for place, text in enumerate(texts) if carzero.clean(text)]
    published.worded(published.own_texts(model), [texts[place] for place in usable])
    own = model.texts(published.names(len(usable)))
    return published.close(own[0], sentence[usable]) and published.close(own[1], rows[usable])


def asked(case: Case) -> dict[str, Array]:
    """Return one call of the fusion module."""
    score, attention = fusion_of(case)(case.tensor("queries"), case.tensor("memory"))
    return {"score": score.numpy(), "attention": attention.numpy()}


def fused(case: Case, tokens: Tensor) -> dict[str, Array]:
    """Return what the fusion module says about images and injected texts."""
    by_text, by_image, image_attention, text_attention = carzero.fuse(
        fusion_of(case), tokens, case.tensor("text_global"), case.tensor("text_words")
    )
    maps = carzero.saliency(image_attention).numpy()
    large = enlarged(maps, 16)
    return {
        "image_to_text_score": by_text.numpy(),
        "text_to_image_score": by_image.numpy(),
        "score": ((by_text + by_image) / 2).numpy(),
        "image_attention": image_attention[:, 0].numpy(),
        "text_attention": text_attention[:, :, 0].transpose(0, 1).numpy(),
        "map14": maps,
        "map224_subset": every(large, case.stride("map224_subset", SUBSET)),
        "map224_moment": moment(large),
    }


def tokenizer_of(case: Case, length: int) -> Tokenizer:
    """Return a tokenizer with the vocabulary that the case writes out."""
    with TemporaryDirectory() as name:
        path = Path(name) / "vocab.txt"
        path.write_text("\n".join(case.options["vocabulary"]), encoding="utf-8")
        BertTokenizer(vocab=str(path), do_lower_case=case.options.get("lower_case", True)).save_pretrained(name)
        return Tokenizer(Path(name), length, pad_to_length=True)


def cleaned(case: Case) -> dict[str, Array]:
    """Return token ids of cleaned texts."""
    tokenizer = tokenizer_of(case, int(case.options.get("length", carzero.TEXT_ROWS)))
    ids, mask = tokenizer([carzero.clean(text) for text in case.inputs["texts"]])
    return {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}


def words_of(case: Case) -> Tensor:
    """Return which pieces make which word."""
    ids = case.tensor("input_ids")
    return carzero.word_weights(tokenizer_of(case, ids.shape[1]).inner, ids)


def aggregated(case: Case) -> dict[str, Array]:
    """Return word rows and sentence vectors of hidden states."""
    sentence, rows = carzero.aggregate(case.tensor("hidden"), words_of(case))
    return {"word_rows": rows.numpy(), "sentence": sentence.numpy()}


def encoded(case: Case) -> dict[str, Array]:
    """Return what the text encoder gives."""
    (group,) = (name for name in case.golden.manifest["state_dict"] if name.startswith("text_encoder"))
    config = BertConfig(**case.options["bert_config"])
    tower = load_part(case, group, "text_encoder", blank(lambda: carzero.Tower(bert(config))))
    states = tower.model(
        input_ids=case.tensor("input_ids"), attention_mask=case.tensor("attention_mask"), output_hidden_states=True
    ).hidden_states
    words = words_of(case)
    sentence, rows = carzero.aggregate(torch.stack(states[-carzero.TEXT_LAYERS :], 1), words)
    agrees = shipped_texts_agree(case, sentence, rows)
    shown = case.expected("word_rows").shape[1] if case.wants("word_rows") else SHOWN_ROWS
    return {
        "word_rows": rows[:, :shown].numpy(),
        "sentence": published.held(sentence.numpy(), agrees),
        "rows_used": words.any(-1).sum(-1).numpy(),
        "row_abs_sum": rows.abs().sum(-1).numpy(),
    }


def preprocessed(case: Case) -> dict[str, Array]:
    """Return what cases ask about the network's input, and about the frame before its crop."""
    rule, levels = carzero.PREPROCESS, case.inputs["image"]
    grey = levels / np.float32(255)
    pixels, middle = rule.normalise(grey), rule.size // 2
    frame = replace(rule, size=rule.resize_to, mean=(0.0,) * 3, std=(1.0,) * 3).normalise(grey)[0]
    rows, columns = np.nonzero(frame)
    return {
        "tensor_subset": every(pixels, case.stride("tensor_subset", PIXELS)),
        "centre_row": pixels[0, middle],
        "centre_column": pixels[0, :, middle],
        "stats": stats(pixels),
        "resized_height_width": np.array([max(1, n * rule.resize_to // max(levels.shape)) for n in levels.shape]),
        "nonzero_box": np.array([rows.min(), rows.max(), columns.min(), columns.max()]),
    }
