"""The names of OpenAI's CLIP weights for the parameters of ``transformers``' CLIP towers."""

from __future__ import annotations

import re

from medground.models.checkpoints import Source

_SHARED = {
    "self_attn.out_proj": "attn.out_proj",
    "layer_norm1": "ln_1",
    "layer_norm2": "ln_2",
    "mlp.fc1": "mlp.c_fc",
    "mlp.fc2": "mlp.c_proj",
}
_VISION = {
    "embeddings.class_embedding": "class_embedding",
    "embeddings.patch_embedding.weight": "conv1.weight",
    "embeddings.position_embedding.weight": "positional_embedding",
    "pre_layrnorm.weight": "ln_pre.weight",
    "pre_layrnorm.bias": "ln_pre.bias",
    "post_layernorm.weight": "ln_post.weight",
    "post_layernorm.bias": "ln_post.bias",
}
_TEXT = {
    "embeddings.token_embedding.weight": "token_embedding.weight",
    "embeddings.position_embedding.weight": "positional_embedding",
    "final_layer_norm.weight": "ln_final.weight",
    "final_layer_norm.bias": "ln_final.bias",
}


def clip_source(name: str) -> Source:
    """Return the OpenAI entry for a parameter of ``transformers.CLIPModel``."""
    if name in ("visual_projection.weight", "text_projection.weight"):
        return Source("visual.proj" if name.startswith("visual") else "text_projection", transpose=True)
    tower, _, rest = name.partition(".")
    if tower == "vision_model":
        return vision_source(rest, "visual.")
    return _tower_source(rest, _TEXT, "") if tower == "text_model" else Source(name)


def vision_source(name: str, prefix: str) -> Source:
    """Return the OpenAI entry, below ``prefix``, for a parameter of ``transformers.CLIPVisionModel``."""
    return _tower_source(name, _VISION, prefix)


def _tower_source(name: str, outer: dict[str, str], prefix: str) -> Source:
    if name in outer:
        return Source(prefix + outer[name])
    match = re.fullmatch(r"encoder\.layers\.(\d+)\.(.+)\.(weight|bias)", name)
    if match is None:
        return Source(prefix + name)
    block, inner, leaf = match.groups()
    stem = f"{prefix}transformer.resblocks.{block}"
    if part := re.fullmatch(r"self_attn\.([qkv])_proj", inner):
        return Source(f"{stem}.attn.in_proj_{leaf}", "qkv".index(part[1]), 3)
    return Source(f"{stem}.{_SHARED[inner]}.{leaf}")
