"""Dual encoders by their folder equal the library's own forward; what a folder says of pictures counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from medground.errors import CheckpointError, ConfigError
from medground.imaging.reading import Radiograph
from medground.models.base import CaptionMatcher, Grounder, Preparing
from medground.models.radiology.hf_dual import HfDual

FINDINGS = ["Effusion", "Nodule", "Pneumonia"]
KINDS = ["clip", "siglip", "vit_bert", "clip_bert", "align", "blip"]
SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
PICTURE = {"patch_size": 8, "image_size": 32}
SQUASH = {
    "do_resize": True,
    "size": {"height": 32, "width": 32},
    "resample": 3,
    "do_rescale": True,
    "rescale_factor": 0.00392156862745098,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.5, 0.4, 0.6],
}
CROP = SQUASH | {
    "size": {"shortest_edge": 32},
    "do_center_crop": True,
    "crop_size": {"height": 32, "width": 32},
    "resample": 2,
}


def network(kind: str, words: int) -> Any:
    """A network with random weights, none of them at a value that hides a mistake."""
    import transformers as t

    text = SMALL | {"vocab_size": words, "max_position_embeddings": 24}
    torch.manual_seed(1)
    if kind == "clip":
        own = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
        model: Any = t.CLIPModel(t.CLIPConfig(text_config=text | own, vision_config=SMALL | PICTURE, projection_dim=16))
    elif kind == "align":
        cnn = {"width_coefficient": 0.1, "depth_coefficient": 0.1, "strides": [1, 1, 1, 2, 1, 2, 1]}
        model = t.AlignModel(t.AlignConfig(text_config=text, vision_config=cnn | {"hidden_dim": 8}, projection_dim=32))
    elif kind == "blip":
        both = {"text_config": text | {"encoder_hidden_size": 32}, "vision_config": SMALL | PICTURE}
        model = t.BlipForImageTextRetrieval(t.BlipConfig(**both, image_text_hidden_size=16))
    elif kind == "siglip":
        model = t.SiglipModel(t.SiglipConfig(text_config=text, vision_config=SMALL | PICTURE))
    else:
        vision = (
            t.ViTModel(t.ViTConfig(**SMALL, **PICTURE))
            if kind == "vit_bert"
            else t.CLIPVisionModel(t.CLIPVisionConfig(**SMALL, **PICTURE))
        )
        model = t.VisionTextDualEncoderModel(vision_model=vision, text_model=t.BertModel(t.BertConfig(**text)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():  # a norm that divides by 1 would let nothing through 20 layers
            if name.endswith("running_var"):
                buffer.fill_(0.01)
    return model.eval()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, bert_folder: Path) -> dict[str, Path]:
    """One folder a kind: weights, tokenizer and preprocessing."""
    made = {}
    for kind in KINDS:
        folder = tmp_path_factory.mktemp(kind)
        network(kind, len((bert_folder / "vocab.txt").read_text().splitlines())).save_pretrained(folder)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(bert_folder / name, folder)
        (folder / "preprocessor_config.json").write_text(json.dumps(CROP if "clip" in kind else SQUASH))
        made[kind] = folder
    return made


def prepared(picture: Radiograph, crops: bool) -> torch.Tensor:
    """The network's input by Pillow and the settings above, step by step."""
    levels = Image.fromarray(np.rint(picture.pixels * 255).astype(np.uint8))
    if crops:
        scale = 32 / min(levels.size)
        width, height = (int(side * scale) for side in levels.size)
        levels = levels.resize((width, height), Image.Resampling.BILINEAR)
        left, top = (width - 32) // 2, (height - 32) // 2
        levels = levels.crop((left, top, left + 32, top + 32))
    else:
        levels = levels.resize((32, 32), Image.Resampling.BICUBIC)
    grey = torch.from_numpy(np.asarray(levels, dtype=np.float32) / 255)
    std = torch.tensor([0.5, 0.4, 0.6])[:, None, None]
    return (grey.expand(3, 32, 32) - 0.5) / std


@pytest.mark.parametrize("kind", KINDS)
def test_scores_and_captions_equal_the_librarys_forward(
    kind: str, folders: dict[str, Path], pictures: list[Radiograph]
) -> None:
    import transformers

    model = HfDual(checkpoint=folders[kind], device="cpu", logit_scale=True)
    assert isinstance(model, Grounder)
    assert isinstance(model, CaptionMatcher)
    assert isinstance(model, Preparing)
    library: Any = getattr(transformers, type(model.network).__name__).from_pretrained(folders[kind]).eval()
    texts = [f"a photo of a {finding.lower()}" for finding in FINDINGS]
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folders[kind])
    padding: Any = {"padding": "max_length", "max_length": 24} if kind == "siglip" else {"padding": True}
    batch = tokenizer(texts, return_tensors="pt", **padding)
    options = {} if kind == "siglip" else {"attention_mask": batch["attention_mask"]}
    if kind == "blip":
        options["use_itm_head"] = False
    pixels = torch.stack([prepared(picture, "clip" in kind) for picture in pictures])
    with torch.no_grad():
        output = library(input_ids=batch["input_ids"], pixel_values=pixels, **options)
    expected = output.itm_score if kind == "blip" else output.logits_per_image
    prediction = model.predict([model.prepare(picture) for picture in pictures], FINDINGS)
    assert np.abs(prediction.probabilities - expected.sigmoid().numpy()).max() < 1e-5
    assert np.abs(prediction.scores * model.scale() + model.bias() - expected.numpy()).max() < 1e-5
    assert prediction.saliency is not None
    assert prediction.saliency.shape == (3, 3, 4, 4)
    assert np.ptp(prediction.saliency, axis=(-2, -1)).min() > 0
    matched = model.match(pictures, [texts] * 3)
    assert np.abs(matched.raw * matched.scale + model.bias() - expected.numpy()).max() < 1e-5


@pytest.mark.parametrize("kind", ["clip", "siglip", "align", "blip"])
def test_another_size_is_the_librarys_own_interpolation(
    kind: str, folders: dict[str, Path], pictures: list[Radiograph]
) -> None:
    model = HfDual(checkpoint=folders[kind], device="cpu", size=48, crop=False)
    pixels, geometry = model.inputs(pictures)
    assert pixels.shape[-2:] == (48, 48)
    assert geometry[0].input == (48, 48)
    network: Any = model.network
    options = {} if kind == "align" else {"interpolate_pos_encoding": True}
    with torch.no_grad():
        states = network.vision_model(pixel_values=pixels, **options)
        if kind == "blip":
            expected = network.vision_proj(states.last_hidden_state)[:, 0]
        elif kind == "clip":
            expected = network.visual_projection(states.pooler_output)
        else:
            expected = states.pooler_output
        vectors, cells = model.image_features(pixels)
    assert (vectors - expected).abs().max() < 1e-5
    assert cells.shape[1:3] == (6, 6)
    maps = model.predict(pictures, FINDINGS).saliency
    assert np.asarray(maps).shape == (len(pictures), 3, 6, 6)


def test_a_size_that_a_tower_does_not_take_is_refused(folders: dict[str, Path]) -> None:
    for kind, size in (("clip", 45), ("vit_bert", 48)):
        with pytest.raises(ConfigError, match="one size"):
            HfDual(checkpoint=folders[kind], device="cpu", size=size)


@pytest.mark.parametrize(
    "option", [{"mean": 0.4}, {"std": [0.5, 0.5, 0.5]}, {"equalise": True}, {"frame": "pad_square"}, {"size": 48}]
)
def test_an_option_of_pictures_is_another_model(
    option: dict[str, Any], folders: dict[str, Path], pictures: list[Radiograph]
) -> None:
    plain, other = (HfDual(checkpoint=folders["clip"], device="cpu", **given) for given in ({}, option))
    assert plain.fingerprint() != other.fingerprint()
    assert plain.preparation() != other.preparation()
    assert not np.array_equal(plain.predict(pictures, FINDINGS).scores, other.predict(pictures, FINDINGS).scores)


@pytest.mark.parametrize("saliency", ["surgery", "gradcam", "chefer"])
def test_rules_of_clip_work_at_another_size(
    saliency: str, folders: dict[str, Path], pictures: list[Radiograph]
) -> None:
    model = HfDual(checkpoint=folders["clip"], device="cpu", saliency=saliency, size=48)
    maps = np.asarray(model.predict(pictures, FINDINGS).saliency)
    assert maps.shape == (len(pictures), 3, 6, 6)
    assert np.isfinite(maps).all()


def test_siglip_brings_its_bias_and_its_sigmoid(folders: dict[str, Path], pictures: list[Radiograph]) -> None:
    model = HfDual(checkpoint=folders["siglip"], device="cpu")
    assert model.logit_scale
    assert model.bias() != 0
    prediction = model.predict(pictures, FINDINGS)
    logits = prediction.scores * model.scale() + model.bias()
    assert np.abs(prediction.probabilities - 1 / (1 + np.exp(-logits))).max() < 1e-6


def test_the_map_of_a_picture_of_one_patch_everywhere_is_the_score(folders: dict[str, Path]) -> None:
    """Attention over equal values gives the value: SigLIP's pool on one patch is its pool on equal patches."""
    from medground.models.networks.hugging_face import pooled_cells

    model = HfDual(checkpoint=folders["siglip"], device="cpu")
    network: Any = model.network
    states = torch.randn(1, 1, 32).expand(1, 16, 32)
    with torch.no_grad():
        cells, whole = pooled_cells(network, states, torch.zeros(1, 3, 32, 32)), network.vision_model.head(states)
    assert (cells - whole[:, None, None]).abs().max() < 1e-5


def changed(folder: Path, to: Path, **settings: Any) -> Path:
    shutil.copytree(folder, to)
    path = to / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return to


@pytest.mark.parametrize("kind", KINDS)
def test_another_preprocessing_number_is_another_model(
    kind: str, folders: dict[str, Path], tmp_path: Path, pictures: list[Radiograph]
) -> None:
    one = HfDual(checkpoint=folders[kind], device="cpu")
    other = HfDual(checkpoint=changed(folders[kind], tmp_path / "x", image_mean=[0.5, 0.5, 0.45]), device="cpu")
    assert one.fingerprint() != other.fingerprint()
    maps = [model.predict(pictures, FINDINGS).saliency for model in (one, other)]
    assert np.abs(np.asarray(maps[0]) - np.asarray(maps[1])).max() > 1e-5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resample": 1}, "resample"),
        ({"rescale_factor": 1 / 127.5}, "rescale_factor"),
        ({"image_std": [1, 0, 1]}, "image_std"),
        ({"image_mean": [0.5]}, "image_mean"),
        ({"size": {"height": 32, "width": 16}}, "size"),
        ({"size": {"height": 64, "width": 64}}, "another size"),
        ({"do_pad": True}, "do_pad"),
        ({"do_center_crop": True, "crop_size": 32, "size": {"shortest_edge": 20}}, "size"),
    ],
)
def test_steps_that_are_not_known_are_refused(
    settings: dict[str, Any], message: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        HfDual(checkpoint=changed(folders["siglip"], tmp_path / "x", **settings), device="cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_weights_load_completely_or_not_at_all(kind: str, folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders[kind], tmp_path / "x"))
    tensors = load_file(folder / "model.safetensors")
    lost = {"align": "temperature", "blip": "itm_head.bias"}.get(kind, "logit_scale")
    save_file({n: v for n, v in tensors.items() if n != lost}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=f"missing {lost}"):
        HfDual(checkpoint=folder, device="cpu")
    save_file(tensors | {"stray.weight": torch.zeros(2)}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match=r"unexpected stray\.weight"):
        HfDual(checkpoint=folder, device="cpu")
    HfDual(checkpoint=folder, device="cpu", ignore=["stray.*"])
    wide = next(name for name, value in tensors.items() if "text" in name and value.ndim == 2)
    save_file(tensors | {wide: torch.zeros(3, 3)}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(CheckpointError, match="wrong shape"):
        HfDual(checkpoint=folder, device="cpu")


def test_other_models_and_rules_are_refused_by_name(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = changed(folders["siglip"], tmp_path / "x")
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(ConfigError, match="bert"):
        HfDual(checkpoint=folder, device="cpu")
    with pytest.raises(ConfigError, match="similarity"):
        HfDual(checkpoint=folders["siglip"], device="cpu", saliency="chefer")
    with pytest.raises(ConfigError, match="pair"):
        HfDual(checkpoint=folders["clip"], device="cpu", against="no {label}", link="softmax")


@pytest.mark.parametrize("scaled", [False, True])
def test_pairs_and_ensembles_of_prompts_follow_their_definition(
    scaled: bool, folders: dict[str, Path], pictures: list[Radiograph]
) -> None:
    templates, contrary = ["a photo of {label}", "there is {label} in the lung"], "no {label}"
    model = HfDual(checkpoint=folders["clip"], device="cpu", template=templates, against=contrary, logit_scale=scaled)
    prediction = model.predict(pictures, FINDINGS)
    network: Any = model.network
    pixels, _ = model.inputs(pictures)
    with torch.no_grad():
        image = network.get_image_features(pixel_values=pixels).pooler_output
        image = image / image.norm(dim=-1, keepdim=True)
        for index, finding in enumerate(FINDINGS):
            several = torch.cat([model.embed([t.replace("{label}", finding.lower())]) for t in templates])
            several = several / several.norm(dim=-1, keepdim=True)
            with_it = several.mean(0) / several.mean(0).norm()
            without = model.embed([f"no {finding.lower()}"])[0]
            without = without / without.norm()
            pair = torch.stack([image @ with_it, image @ without], -1) * (model.scale() if scaled else 1.0)
            expected = pair.softmax(-1)[:, 0].numpy()
            assert np.abs(prediction.probabilities[:, index] - expected).max() < 1e-5
    alone = HfDual(checkpoint=folders["clip"], device="cpu", template=templates, logit_scale=scaled)
    assert alone.fingerprint() != model.fingerprint()
    one = model.predict(pictures, FINDINGS[:1])
    assert np.abs(one.probabilities[:, 0] - prediction.probabilities[:, 0]).max() < 1e-6


@pytest.mark.parametrize(("key", "value"), [("patch_size", 0), ("hidden_size", "x"), ("image_size", [32, 32])])
def test_a_configuration_that_makes_no_network_is_an_error_of_ours(
    key: str, value: Any, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = changed(folders["vit_bert"], tmp_path / "x")
    config = json.loads((folder / "config.json").read_text())
    config["vision_config"][key] = value
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"config\.json"):
        HfDual(checkpoint=folder, device="cpu")


def test_former_names_of_a_clip_tower_load(folders: dict[str, Path], tmp_path: Path) -> None:
    """Files from before transformers 5 hold the tower one level deeper."""
    folder = changed(folders["clip_bert"], tmp_path / "x")
    old = {
        (f"vision_model.{name}" if name.startswith("vision_model.") else name): value
        for name, value in load_file(folder / "model.safetensors").items()
    }
    save_file(old, folder / "model.safetensors", {"format": "pt"})
    one, other = (HfDual(checkpoint=f, device="cpu").network.state_dict() for f in (folder, folders["clip_bert"]))
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_a_folder_without_preprocessing_is_refused(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = changed(folders["clip"], tmp_path / "x")
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(ConfigError, match="preprocessing"):
        HfDual(checkpoint=folder, device="cpu")
