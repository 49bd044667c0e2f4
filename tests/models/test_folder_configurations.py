"""Configuration files of published folders: every key is used or refused, so that none changes results unheard."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medground.errors import ConfigError
from medground.imaging.reading import Radiograph
from medground.models.common.inputs import CLIP_MEAN, CLIP_STD, Preprocess
from medground.models.common.llava_config import read_llava_config
from medground.models.common.open_clip_config import follow_open_clip
from medground.models.radiology.biomedclip import STATED
from medground.models.radiology.clip import Clip, preprocess_of
from medground.models.radiology.llava_med import LlavaMed

# As microsoft/llava-med-v1.5-mistral-7b lists it.
LLAVA_MED: dict[str, Any] = {
    "architectures": ["LlavaMistralForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "freeze_mm_mlp_adapter": False,
    "freeze_mm_vision_resampler": False,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "image_aspect_ratio": "pad",
    "initializer_range": 0.02,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "mm_hidden_size": 1024,
    "mm_projector_lr": None,
    "mm_projector_type": "mlp2x_gelu",
    "mm_resampler_type": None,
    "mm_use_im_patch_token": False,
    "mm_use_im_start_end": False,
    "mm_vision_select_feature": "patch",
    "mm_vision_select_layer": -2,
    "mm_vision_tower": "openai/clip-vit-large-patch14-336",
    "model_type": "llava_mistral",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "tokenizer_model_max_length": 2048,
    "tokenizer_padding_side": "right",
    "torch_dtype": "bfloat16",
    "transformers_version": "4.37.2",
    "tune_mm_mlp_adapter": False,
    "unfreeze_mm_vision_tower": True,
    "use_cache": True,
    "use_mm_proj": True,
    "vocab_size": 32000,
}


def llava_folder_of(folder: Path, **changes: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(LLAVA_MED | changes))
    return folder


def test_every_number_of_a_llava_configuration_reaches_the_network(tmp_path: Path) -> None:
    config, padded = read_llava_config(llava_folder_of(tmp_path))
    text = config.text_config
    assert text.rope_parameters["rope_theta"] == 1e6
    assert (text.rms_norm_eps, text.num_key_value_heads, text.sliding_window) == (1e-5, 8, None)
    assert padded


def test_a_scaled_rotary_base_is_kept(tmp_path: Path) -> None:
    scaled = {"type": "linear", "factor": 2.0}
    config, _ = read_llava_config(llava_folder_of(tmp_path, rope_scaling=scaled))
    assert config.text_config.rope_parameters["factor"] == 2.0
    assert config.text_config.rope_parameters["rope_theta"] == 1e6


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mm_projector_type", "linear"),
        ("mm_vision_tower", "google/siglip-so400m-patch14-384"),
        ("mm_vision_select_feature", "cls_patch"),
        ("mm_use_im_start_end", True),
        ("image_aspect_ratio", "anyres"),
        ("mm_hidden_size", 1152),
        ("model_type", "qwen2"),
        ("quantization_config", {"bits": 4}),
        ("logit_cap", 30),
    ],
)
def test_a_llava_configuration_of_another_network_is_refused(key: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=key):
        read_llava_config(llava_folder_of(tmp_path, **{key: value}))


def test_a_key_twice_in_a_configuration_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"rope_theta": 10000.0, "rope_theta": 1000000.0}')
    with pytest.raises(ConfigError, match="JSON") as raised:
        read_llava_config(tmp_path)
    assert "'rope_theta' stands twice" in str(raised.value)


def preprocessing(folder: Path, **changes: Any) -> Path:
    stated = {
        "do_resize": True,
        "size": {"shortest_edge": 224},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": 224, "width": 224},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(CLIP_MEAN),
        "image_std": list(CLIP_STD),
        "do_convert_rgb": True,
        "image_processor_type": "CLIPImageProcessor",
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(stated | changes))
    return folder


def test_colours_that_a_clip_folder_states_change_scores_and_fingerprint(
    clip_folder: Path, tmp_path: Path, picture: Any
) -> None:
    plain, stated = (shutil.copytree(clip_folder, tmp_path / name) for name in ("plain", "stated"))
    preprocessing(stated, image_mean=[0.5] * 3, image_std=[0.5] * 3)
    models = [Clip(checkpoint=folder, device="cpu") for folder in (plain, stated)]
    image: Radiograph = picture()
    grey = models[1].inputs([image])[0].numpy()
    levels = models[0].inputs([image])[0].numpy()[0, 0] * CLIP_STD[0] + CLIP_MEAN[0]
    assert np.abs(grey[0, 0] - (levels - 0.5) / 0.5).max() < 1e-6
    scores = [model.predict([image], ["Edema", "Effusion"]).scores for model in models]
    assert np.abs(scores[0] - scores[1]).max() > 1e-4
    assert models[0].fingerprint() != models[1].fingerprint()


def test_a_stated_published_preprocessing_is_the_default(clip_folder: Path, tmp_path: Path) -> None:
    assert preprocess_of(preprocessing(tmp_path), 224) == preprocess_of(clip_folder, 224)


def test_newer_folders_keep_it_in_processor_config(tmp_path: Path) -> None:
    inner = json.loads((preprocessing(tmp_path, image_std=[0.25] * 3) / "preprocessor_config.json").read_text())
    (tmp_path / "preprocessor_config.json").unlink()
    (tmp_path / "processor_config.json").write_text(json.dumps({"processor_class": "X", "image_processor": inner}))
    assert preprocess_of(tmp_path, 224).std == (0.25, 0.25, 0.25)


@pytest.mark.parametrize(
    ("key", "value"), [("do_pad", True), ("do_gamma", True), ("crop_size", 336), ("resample", 0), ("image_mean", [0.5])]
)
def test_steps_that_are_not_known_are_refused(key: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not known|another size"):
        preprocess_of(preprocessing(tmp_path, **{key: value}), 224)


def test_a_llava_folder_with_other_colours_is_refused(llava_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(llava_folder, tmp_path / "llava")
    preprocessing(folder, size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56})
    LlavaMed(checkpoint=folder, device="cpu")
    preprocessing(folder, size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56}, image_mean=[0.5] * 3)
    with pytest.raises(ConfigError, match="mean"):
        LlavaMed(checkpoint=folder, device="cpu")


OPEN_CLIP = {
    "model_cfg": {
        "embed_dim": 512,
        "vision_cfg": {
            "timm_model_name": "vit_base_patch16_224",
            "timm_model_pretrained": False,
            "timm_pool": "",
            "timm_proj": "linear",
            "image_size": 224,
        },
        "text_cfg": {
            "hf_model_name": "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract",
            "hf_tokenizer_name": "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract",
            "hf_proj_type": "mlp",
            "hf_pooler_type": "cls_last_hidden_state_pooler",
            "context_length": 256,
        },
    },
    "preprocess_cfg": {"mean": list(CLIP_MEAN), "std": list(CLIP_STD)},
}
PUBLISHED = Preprocess("center_crop", 224, "bicubic", CLIP_MEAN, CLIP_STD)


def open_clip(folder: Path, place: str, value: Any) -> Path:
    stated = json.loads(json.dumps(OPEN_CLIP))
    *way, last = place.split(".")
    node = stated
    for key in way:
        node = node[key]
    node[last] = value
    (folder / "open_clip_config.json").write_text(json.dumps(stated))
    return folder


def test_the_published_open_clip_configuration_is_what_is_built(tmp_path: Path) -> None:
    assert follow_open_clip(tmp_path, STATED, PUBLISHED) == PUBLISHED
    assert follow_open_clip(open_clip(tmp_path, "model_cfg.embed_dim", 512), STATED, PUBLISHED) == PUBLISHED
    other = follow_open_clip(open_clip(tmp_path, "preprocess_cfg.mean", [0.5, 0.5, 0.5]), STATED, PUBLISHED)
    assert other.mean == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("model_cfg.embed_dim", 768),
        ("model_cfg.vision_cfg.timm_model_name", "vit_large_patch14_336"),
        ("model_cfg.text_cfg.context_length", 77),
        ("model_cfg.quick_gelu", True),
        ("preprocess_cfg.interpolation", "bilinear"),
        ("preprocess_cfg.std", [0, 1, 1]),
        ("preprocess_cfg.size", [224, 336]),
        ("preprocess_cfg.gamma", 2),
    ],
)
def test_an_open_clip_configuration_of_another_model_is_refused(place: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=place.rpartition(".")[2]):
        follow_open_clip(open_clip(tmp_path, place, value), STATED, PUBLISHED)
