"""Reads the ``config.json`` of LLaVA folders: every key is used, known to change nothing here, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medground.errors import ConfigError, ModelError
from medground.models.common.transformers import read_config
from medground.tables.documents import read_json

# openai/clip-vit-large-patch14-336, which the authors' configuration names without its sizes.
VISION_TOWER = "clip-vit-large-patch14-336"
VISION = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}
# What the network here does; a folder that states otherwise asks for another network.
_BUILT: Mapping[str, tuple[Any, ...]] = {
    "model_type": ("llava_mistral", "llava", "mistral"),
    "mm_projector_type": ("mlp2x_gelu",),
    "mm_vision_select_feature": ("patch",),
    "mm_hidden_size": (VISION["hidden_size"],),
    "mm_use_im_start_end": (False,),
    "mm_use_im_patch_token": (False,),
    "mm_patch_merge_type": (None, "flat"),
    "mm_resampler_type": (None,),
    "image_aspect_ratio": (None, "square", "pad"),
    "use_mm_proj": (True,),
    "tokenizer_padding_side": ("right", "left"),  # prompts are never padded here
}
# How the authors trained, and what the library notes: none of it reaches a prediction.
_WITHOUT_EFFECT = frozenset(
    [
        "architectures",
        "transformers_version",
        "_name_or_path",
        "torch_dtype",
        "dtype",
        "use_cache",
        "freeze_mm_mlp_adapter",
        "freeze_mm_vision_resampler",
        "tune_mm_mlp_adapter",
        "tune_mm_vision_resampler",
        "unfreeze_mm_vision_tower",
        "mm_projector_lr",
        "mm_vision_tower_lr",
        "tokenizer_model_max_length",
        "image_grid_pinpoints",
        "image_crop_resolution",
        "image_split_resolution",
        "pretraining_tp",
    ]
)
_ROTARY = ("rope_theta", "rope_scaling")  # the library keeps them under another name
_PLACED = ("mm_vision_tower", "mm_vision_select_layer")


def read_llava_config(folder: Path) -> tuple[Any, bool]:
    """Return the configuration of a folder, the authors' or a conversion's, and whether pictures are padded.

    Raises:
        ModelError: there is no ``config.json``.
        ConfigError: it asks for what this network does not do.
    """
    from transformers import CLIPVisionConfig, LlavaConfig, MistralConfig

    path = folder / "config.json"
    if not path.is_file():
        raise ModelError("the folder holds no configuration", where=folder, expected="config.json")
    stated = read_json(path, largest=1 << 24, error=ConfigError)
    if not isinstance(stated, dict):
        raise ConfigError("a configuration is a JSON object", where=path, got=type(stated).__name__)
    if "text_config" in stated:
        return read_config(folder, "LlavaConfig"), True
    used = {*MistralConfig().to_dict(), *_ROTARY} - set(_BUILT) - _WITHOUT_EFFECT
    _refuse_unknown(stated, {*used, *_BUILT, *_WITHOUT_EFFECT, *_PLACED}, path)
    text = MistralConfig(**{key: value for key, value in stated.items() if key in used})
    config = LlavaConfig(
        text_config=text,
        vision_config=CLIPVisionConfig(**VISION),
        vision_feature_layer=stated.get("mm_vision_select_layer", -2),
        # The image never stands in the ids that the network sees: its features are put in their place.
        image_token_index=0,
    )
    return config, stated.get("image_aspect_ratio") == "pad"


def _refuse_unknown(stated: Mapping[str, Any], known: set[str], path: Path) -> None:
    """Raise ConfigError for a key that nothing reads, and for a value that the network here is not built for."""
    if unknown := sorted(key for key in stated if key not in known):
        raise ConfigError(
            f"a configuration asks for something that is not known here: {unknown[0]}",
            where=path,
            got="; ".join(f"{key}: {stated[key]}"[:80] for key in unknown[:5]),
            fix="hf_chat runs Hugging Face conversions with the library's own code",
        )
    for key, allowed in _BUILT.items():
        if key in stated and stated[key] not in allowed:
            raise ConfigError(
                f"a configuration asks for another network: {key}",
                where=path,
                expected=" or ".join("null" if value is None else str(value) for value in allowed),
                got=str(stated[key])[:80],
            )
    tower = str(stated.get("mm_vision_tower") or VISION_TOWER)
    if VISION_TOWER not in tower:
        raise ConfigError(
            "a configuration names another image tower",
            where=f"{path}: mm_vision_tower",
            expected=VISION_TOWER,
            got=tower,
        )
