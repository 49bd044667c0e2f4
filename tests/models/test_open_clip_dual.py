"""Towers of open_clip's configurations equal open_clip's own; every key of a configuration counts or is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional

from medground import registry
from medground.errors import CheckpointError, ConfigError
from medground.models.base import CaptionMatcher, Grounder, Preparing
from medground.models.checkpoints import load_weights, read_weights
from medground.models.networks.open_clip.config import OpenClipConfig, read_open_clip
from medground.models.radiology.open_clip_dual import LAYOUT, OpenClipDual, OpenClipNetwork
from medground.models.standin import parameter, tensor

from .conftest import clip_tokenizer

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/models/open_clip.json").read_text())
CASES = GOLDEN["cases"]
VISION = {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8}
FINDINGS = ["Effusion", "Nodule"]


def state(entries: dict[str, list[int]]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.asarray(parameter(name, tuple(shape)))) for name, shape in entries.items()}


def entries_of(network: OpenClipNetwork, prefix: str) -> dict[str, list[int]]:
    """The entries that open_clip's file would hold for a network of ours."""
    entries = {}
    for name, value in network.state_dict().items():
        source = network.published(name, prefix)
        entries[source.name] = list(source.published_shape(tuple(value.shape)))
    return entries


@pytest.mark.parametrize("name", CASES)
def test_the_towers_equal_those_of_open_clip(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    (tmp_path / "config.json").write_text(json.dumps(GOLDEN["bert"]))
    config = OpenClipConfig.model_validate(case["config"])
    network = OpenClipNetwork(config, tmp_path).eval()
    weights = read_weights(state(case["entries"]), LAYOUT)
    prefix = "text." if any(key.startswith("text.") for key in case["entries"]) else ""
    load_weights(network, weights, published=lambda own: network.published(own, prefix), ignore=LAYOUT.ignore)
    size = config.vision_cfg.image_size
    ids = torch.tensor(GOLDEN["ids"])
    with torch.no_grad():
        vectors, _ = network.visual(torch.from_numpy(tensor(f"open_clip.{size}", (2, 3, size, size))))
        texts = network.text(ids, (ids != 0).long())
    np.testing.assert_allclose(vectors.numpy(), case["image"], atol=1e-5)
    np.testing.assert_allclose(texts.numpy(), case["text"], atol=1e-5)


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder as open_clip saves it: ``folder(vision, text, pictures, **model)``."""

    def make(
        vision: dict[str, Any] | None = None,
        text: dict[str, Any] | None = None,
        pictures: dict[str, Any] | None = None,
        **model: Any,
    ) -> Path:
        where = tmp_path / f"pair{len(list(tmp_path.iterdir()))}"
        where.mkdir()
        words = len(clip_tokenizer(where))
        own = {"context_length": 24, "vocab_size": words, "width": 16, "heads": 2, "layers": 2}
        cfg = {"embed_dim": 8, "vision_cfg": VISION | (vision or {}), "text_cfg": own | (text or {})} | model
        whole = {"model_cfg": cfg, "preprocess_cfg": pictures or {}}
        (where / "open_clip_config.json").write_text(json.dumps(whole))
        try:
            config = read_open_clip(where / "open_clip_config.json")[0]
            entries = entries_of(OpenClipNetwork(config, where), "")
        except ConfigError:
            return where
        save_file(state(entries), where / "open_clip_model.safetensors")
        return where

    return make


def test_scores_maps_and_matches_follow_the_definition(folder: Callable[..., Path], pictures: Any) -> None:
    model = registry.create("model", "open_clip_dual", {"checkpoint": str(folder()), "device": "cpu"})
    assert isinstance(model, (Grounder, CaptionMatcher, Preparing))
    prediction = model.predict(pictures, FINDINGS)
    pixels = torch.stack([torch.from_numpy(model.prepare(p).content) for p in pictures])
    with torch.no_grad():
        vectors, cells = model.network.visual(pixels)
        texts = model.embed(["a photo of a effusion", "a photo of a nodule"])
    cosine = functional.cosine_similarity(vectors[:, None], texts[None], dim=-1).numpy()
    np.testing.assert_allclose(prediction.scores, cosine, atol=1e-6)
    np.testing.assert_allclose(prediction.probabilities, 1 / (1 + np.exp(-cosine)), atol=1e-6)
    by_cell = functional.cosine_similarity(cells[:, None], texts[None, :, None, None], dim=-1).numpy()
    np.testing.assert_allclose(prediction.saliency, by_cell, atol=1e-6)
    assert np.shape(prediction.saliency) == (3, 2, 4, 4)
    matched = model.match(pictures, [["a photo of a effusion", "a photo of a nodule"]] * 3)
    np.testing.assert_allclose(matched.raw, cosine, atol=1e-6)


@pytest.mark.parametrize("saliency", ["surgery", "gradcam", "chefer"])
def test_a_transformer_comes_apart_for_saliency_rules(
    folder: Callable[..., Path], pictures: Any, saliency: str
) -> None:
    maps = OpenClipDual(checkpoint=folder(), saliency=saliency, device="cpu").predict(pictures, FINDINGS).saliency
    assert np.shape(maps) == (3, 2, 4, 4)
    assert np.isfinite(maps).all()
    assert np.std(maps) > 0


def test_a_resnet_gives_similarity_maps_alone(folder: Callable[..., Path], pictures: Any) -> None:
    where = folder({"layers": [1, 1, 1, 1], "width": 8, "head_width": 16, "image_size": 64})
    maps = OpenClipDual(checkpoint=where, device="cpu").predict(pictures, FINDINGS).saliency
    assert np.shape(maps) == (3, 2, 2, 2)
    with pytest.raises(ConfigError, match="class token"):
        OpenClipDual(checkpoint=where, saliency="gradcam", device="cpu")


def test_what_the_folder_says_of_pictures_counts(folder: Callable[..., Path], pictures: Any) -> None:
    plain = OpenClipDual(checkpoint=folder(), device="cpu")
    other = OpenClipDual(checkpoint=folder(pictures={"mean": [0.5, 0.5, 0.4]}), device="cpu")
    assert plain.fingerprint() != other.fingerprint()
    assert not np.allclose(plain.predict(pictures, FINDINGS).scores, other.predict(pictures, FINDINGS).scores)
    squashed = OpenClipDual(checkpoint=folder(pictures={"resize_mode": "squash"}), device="cpu")
    assert (plain.preprocess.rule, squashed.preprocess.rule) == ("center_crop", "squash")


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"vision": {"patch_dropuot": 0.1}}, "vision_cfg.patch_dropuot"),
        ({"vision": {"no_ln_pre": True}}, "vision_cfg.no_ln_pre"),
        ({"vision": {"timm_model_name": "convnext_base"}}, "timm_model_name"),
        ({"text": {"pool_type": "last"}}, "text_cfg.pool_type"),
        ({"text": {"embed_cls": True}}, "text_cfg.embed_cls"),
        ({"multimodal_cfg": {}}, "multimodal_cfg"),
        ({"pictures": {"interpolation": "lanczos"}}, "interpolation"),
        ({"pictures": {"size": [48, 48]}}, "size"),
    ],
)
def test_a_key_that_is_not_followed_is_refused(folder: Callable[..., Path], change: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenClipDual(checkpoint=folder(**change), device="cpu")
    assert key in str(caught.value)


def test_a_training_checkpoint_beside_its_configuration_loads(
    folder: Callable[..., Path], tmp_path: Path, pictures: Any
) -> None:
    where = folder()
    plain = OpenClipDual(checkpoint=where, device="cpu")
    tensors = read_weights(where, LAYOUT).tensors
    path = tmp_path / "epoch_3.pt"
    torch.save({"epoch": 3, "state_dict": {f"module.{name}": value for name, value in tensors.items()}}, path)
    trained = OpenClipDual(checkpoint=path, config=where / "open_clip_config.json", text_model=where, device="cpu")
    assert np.array_equal(plain.predict(pictures, FINDINGS).scores, trained.predict(pictures, FINDINGS).scores)


def test_missing_weights_are_named(folder: Callable[..., Path]) -> None:
    where = folder()
    tensors = dict(read_weights(where, LAYOUT).tensors)
    del tensors["visual.ln_post.weight"]
    save_file(tensors, where / "open_clip_model.safetensors")
    with pytest.raises(CheckpointError, match=r"visual\.ln_post\.weight"):
        OpenClipDual(checkpoint=where, device="cpu")
