"""CLIP: head order, maps, options, layouts, and what the shell of all dual encoders promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from medground.errors import CheckpointError, ConfigError, ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import CaptionMatcher, Grounder
from medground.models.checkpoints import read_weights
from medground.models.layers.openai_names import clip_source
from medground.models.radiology.clip import Clip, image_tokens, load_network, network_of, openai_config

FINDINGS = ["Cardiomegaly", "Effusion", "Nodule", "Pneumonia"]


@pytest.fixture(scope="module")
def clip(clip_folder: Path) -> Clip:
    return Clip(checkpoint=clip_folder, device="cpu")


def test_is_a_grounder_and_a_caption_matcher(clip: Clip) -> None:
    assert isinstance(clip, Grounder)
    assert isinstance(clip, CaptionMatcher)


def test_scores_are_the_cosines_of_the_library(clip: Clip, pictures: list[Radiograph]) -> None:
    prediction = clip.predict(pictures, FINDINGS)
    assert prediction.scores.shape == (3, 4)
    assert prediction.saliency is not None
    assert prediction.saliency.shape == (3, 4, 7, 7)
    assert prediction.saliency.dtype == np.float32
    model: Any = clip.network
    ids, _ = clip.tokenise([f"a photo of a {finding.lower()}" for finding in FINDINGS])
    with torch.no_grad():
        expected = model(input_ids=ids, pixel_values=clip.inputs(pictures)[0]).logits_per_image
    expected = (expected / model.logit_scale.exp()).numpy()
    assert np.abs(prediction.scores - expected).max() < 1e-6
    assert np.allclose(prediction.probabilities, 1 / (1 + np.exp(-prediction.scores)), atol=1e-7)


def test_the_head_on_token_0_gives_the_librarys_image_embedding(clip: Clip, pictures: list[Radiograph]) -> None:
    model: Any = clip.network
    pixels, _ = clip.inputs(pictures)
    with torch.no_grad():
        own = image_tokens(model, pixels)
        theirs = model.get_image_features(pixel_values=pixels).pooler_output
    assert own.shape == (3, 50, 16)
    assert (own[:, 0] - theirs).abs().max() < 1e-6


def test_findings_and_images_are_independent_of_their_company(clip: Clip, pictures: list[Radiograph]) -> None:
    whole = clip.predict(pictures, FINDINGS)
    assert whole.saliency is not None
    order = [2, 0]
    for index, image in enumerate(pictures):
        part = clip.predict([image], [FINDINGS[i] for i in order])
        assert part.saliency is not None
        assert np.abs(part.scores[0] - whole.scores[index, order]).max() < 1e-6
        assert np.abs(part.saliency[0] - whole.saliency[index, order]).max() < 1e-6
        assert part.geometry[0] == whole.geometry[index]
    assert not clip.info.query_dependent


def test_texts_are_encoded_once_a_run_and_images_once_a_call(clip_folder: Path, pictures: list[Radiograph]) -> None:
    clip = Clip(checkpoint=clip_folder, device="cpu")
    calls = {"image": 0, "text": 0}
    network: Any = clip.network

    def counted(what: str) -> Callable[..., None]:
        def hook(_module: object, _args: object, kwargs: dict[str, Any], _result: object) -> None:
            calls[what] += len(kwargs["pixel_values" if what == "image" else "input_ids"])

        return hook

    network.vision_model.register_forward_hook(counted("image"), with_kwargs=True)
    network.text_model.register_forward_hook(counted("text"), with_kwargs=True)
    for _ in range(3):
        clip.predict(pictures, FINDINGS)
    assert calls == {"image": 9, "text": 4}
    assert (clip.encoded_images, clip.encoded_texts) == (9, 4)


def test_softmax_is_over_the_findings_of_the_call_and_says_so(clip_folder: Path, pictures: list[Radiograph]) -> None:
    clip = Clip(checkpoint=clip_folder, device="cpu", link="softmax", logit_scale=True)
    prediction = clip.predict(pictures, FINDINGS)
    logits = prediction.scores * clip.scale()
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert np.allclose(prediction.probabilities, expected, atol=1e-6)
    assert clip.info.query_dependent
    assert not Clip.info.query_dependent


def test_several_prompts_are_normed_averaged_and_normed_again(clip_folder: Path, clip: Clip) -> None:
    texts = ["a photo of a nodule", "there is a nodule in the lung"]
    several = Clip(checkpoint=clip_folder, device="cpu", prompts={"nodule": texts})
    vectors = [clip.caption_vectors([text])[0] for text in texts]
    mean = (vectors[0] + vectors[1]) / 2
    assert torch.allclose(several.texts(["Nodule"])[0], mean / mean.norm(), atol=1e-6)
    assert several.fingerprint() != clip.fingerprint()


def test_match_gives_cosines_and_the_stored_scale(clip: Clip, pictures: list[Radiograph]) -> None:
    captions = [["effusion in the left lung", "nodule"], ["edema", "no edema"], ["a", "opacity"]]
    scores = clip.match(pictures, captions)
    assert scores.kind == "contrastive"
    assert scores.scale == pytest.approx(math.exp(float(clip.network.logit_scale)))
    for image, own, row in zip(pictures, captions, scores.raw, strict=True):
        alone = clip.match([image], [own])
        assert np.abs(alone.raw[0] - row).max() < 1e-6
    with pytest.raises(ModelError, match="captions do not fit"):
        clip.match(pictures, [["one"], ["one", "two"], ["one"]])


@pytest.mark.parametrize("saliency", ["surgery", "gradcam", "chefer"])
def test_other_saliency_rules_keep_scores_and_depend_on_the_finding(
    saliency: Any, clip_folder: Path, clip: Clip, pictures: list[Radiograph]
) -> None:
    other = Clip(checkpoint=clip_folder, device="cpu", saliency=saliency, crop=True)
    plain, prediction = clip.predict(pictures, FINDINGS), other.predict(pictures, FINDINGS)
    assert prediction.saliency is not None
    assert plain.saliency is not None
    assert np.abs(prediction.scores - plain.scores).max() < 1e-6
    assert prediction.saliency.shape == plain.saliency.shape
    assert np.isfinite(prediction.saliency).all()
    assert np.ptp(prediction.saliency, axis=1).max() > 0
    if saliency in ("gradcam", "chefer"):
        assert (prediction.saliency >= 0).all()
        part = other.predict(pictures[1:2], FINDINGS[1:3])
        assert part.saliency is not None
        assert np.abs(part.saliency[0] - prediction.saliency[1, 1:3]).max() < 1e-6
    assert other.info.query_dependent == (saliency == "surgery")


def test_surgery_sees_the_whole_picture_by_default(clip_folder: Path, picture: Callable[..., Radiograph]) -> None:
    wide = picture(90, 30)
    assert Clip(checkpoint=clip_folder, device="cpu", saliency="surgery").inputs([wide])[1][0].is_squash
    assert not Clip(checkpoint=clip_folder, device="cpu").inputs([wide])[1][0].is_squash


def test_mistakes_in_options_are_named(clip_folder: Path, tmp_path: Path, pictures: list[Radiograph]) -> None:
    with pytest.raises(ConfigError, match="no saliency rule 'surgry'") as caught:
        Clip(checkpoint=clip_folder, device="cpu", saliency="surgry")  # type: ignore[arg-type]
    assert "surgery" in str(caught.value)
    with pytest.raises(ConfigError, match="float32"):
        Clip(checkpoint=clip_folder, device="cpu", dtype="bfloat16")
    with pytest.raises(ConfigError, match="no such device"):
        Clip(checkpoint=clip_folder, device="cuda:99")
    with pytest.raises(ConfigError, match="label"):
        Clip(checkpoint=clip_folder, device="cpu", template="a photo")
    (tmp_path / "ViT-B-16.pt").write_bytes(b"PK")
    with pytest.raises(ConfigError, match="tokenizer"):
        Clip(checkpoint=tmp_path / "ViT-B-16.pt", device="cpu")
    with pytest.raises(ModelError, match="needs images and findings"):
        Clip(checkpoint=clip_folder, device="cpu").predict(pictures, [])


def test_folder_without_tokenizer_or_with_a_renamed_key_is_refused(clip_folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    state = load_file(clip_folder / "model.safetensors")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((clip_folder / name).read_bytes())
    state["visual_projection.kernel"] = state.pop("visual_projection.weight")
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"missing visual_projection\.weight .*visual_projection\.kernel"):
        Clip(checkpoint=tmp_path, device="cpu")
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(ModelError, match="no tokenizer"):
        Clip(checkpoint=tmp_path, device="cpu")


def test_openai_names_fill_the_network_and_a_wrong_shape_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from medground.models.radiology import clip as module

    small = {"tiny": (32, 64, 64, 2, 64), "other": (16, 64, 64, 2, 64)}
    monkeypatch.setattr(module, "VARIANTS", small)
    torch.manual_seed(0)
    source = network_of(openai_config(*small["tiny"]))
    state: dict[str, torch.Tensor] = {}
    for name, blank in source.state_dict().items():
        value = torch.randn_like(blank)
        entry = clip_source(name)
        piece = value.t() if entry.transpose else value
        if entry.parts > 1:
            stacked = state.setdefault(entry.name, torch.zeros(entry.published_shape(tuple(value.shape))))
            stacked.chunk(3)[entry.part].copy_(piece)
        else:
            state[entry.name] = piece
    extra = {"input_resolution": torch.tensor(64), "context_length": torch.tensor(77), "vocab_size": torch.tensor(9)}
    network, weights = load_network(state | extra)
    assert network.config.vision_config.patch_size == 32
    assert torch.equal(network.visual_projection.weight, state["visual.proj"].t())
    query = network.vision_model.encoder.layers[1].self_attn.q_proj.weight
    assert torch.equal(query, state["visual.transformer.resblocks.1.attn.in_proj_weight"][:64])
    assert weights.sha256 == read_weights(state | extra).sha256
    for name, value in (("positional_embedding", torch.zeros(78, 64)), ("visual.proj", torch.zeros(64, 65))):
        with pytest.raises(CheckpointError, match=f"wrong shape {name}"):
            load_network(state | {name: value})
