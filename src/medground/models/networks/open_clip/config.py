"""What an open_clip configuration may say: every key is used, known to change nothing here, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from medground.errors import ConfigError
from medground.tables.documents import read_json

Whole = Annotated[int, Field(ge=1, le=1 << 20)]
Unset = Literal[False] | None
"""An architectural switch that is off in every network built here."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class Norm(_Strict):
    """Options of layer norms."""

    eps: Annotated[float, Field(gt=0, lt=1)] = 1e-5


class _Block(_Strict):
    """What towers of open_clip's own transformer share."""

    width: Whole
    mlp_ratio: Annotated[float, Field(gt=0, le=64)] = 4.0
    norm_kwargs: Norm | None = None
    act_kwargs: None = None
    ls_init_value: None = None
    output_tokens: bool = False
    block_type: Literal["default"] | None = None
    qk_norm: Unset = None
    scaled_cosine_attn: Unset = None
    scale_heads: Unset = None
    scale_attn_inner: Unset = None
    scale_attn: Unset = None
    scale_fc: Unset = None


class Vision(_Block):
    """The image tower: a transformer (``layers`` a number), a modified ResNet (four numbers), or one of timm's."""

    width: Whole = 768
    layers: Whole | tuple[Whole, Whole, Whole, Whole] = 12
    head_width: Whole = 64
    patch_size: Whole = 16
    image_size: Whole = 224
    timm_model_name: str | None = None
    timm_pool: Literal["", "token", "avg"] = "avg"
    timm_proj: Literal["linear", "mlp"] = "linear"
    timm_proj_bias: bool = False
    # Of training alone, or where parts came from.
    patch_dropout: float = 0.0
    timm_model_pretrained: bool = False
    timm_drop: float = 0.0
    timm_drop_path: float | None = None
    # Other ways to pool and to place, which no network here has.
    attentional_pool: Unset = None
    attn_pooler_queries: int = 256
    attn_pooler_heads: int = 8
    no_ln_pre: Unset = None
    pos_embed_type: Literal["learnable"] = "learnable"
    final_ln_after_pool: Unset = None
    pool_type: Literal["tok"] = "tok"


class Text(_Block):
    """The text tower: open_clip's own causal transformer, or one of transformers (``hf_model_name``)."""

    width: Whole = 512
    context_length: Whole = 77
    vocab_size: Whole = 49408
    heads: Whole = 8
    layers: Whole = 12
    hf_model_name: str | None = None
    hf_proj_type: Literal["linear", "mlp"] = "mlp"
    hf_pooler_type: Literal["mean_pooler", "cls_pooler", "cls_last_hidden_state_pooler"] = "mean_pooler"
    # Where parts came from: weights and tokenizer are read from files here.
    hf_model_pretrained: bool = True
    hf_tokenizer_name: str | None = None
    tokenizer_mode: None = None
    tokenizer_kwargs: None = None
    pad_id: int = 0
    eos_id: int = 2
    embed_cls: Unset = None
    no_causal_mask: Unset = None
    final_ln_after_pool: Unset = None
    pool_type: Literal["argmax"] = "argmax"
    proj_bias: Unset = None
    proj_type: Literal["linear"] = "linear"


class OpenClipConfig(_Strict):
    """A configuration, below ``model_cfg``."""

    embed_dim: Whole
    vision_cfg: Vision
    text_cfg: Text
    quick_gelu: bool = False
    custom_text: bool = False
    init_logit_scale: float | None = None
    init_logit_bias: float | None = None
    nonscalar_logit_scale: bool = False
    output_dict: bool = False

    @property
    def activation(self) -> str:
        """The activation of open_clip's own transformers, as transformers names it."""
        return "quick_gelu" if self.quick_gelu else "gelu"


def read_open_clip(path: Path) -> tuple[OpenClipConfig, dict[str, Any]]:
    """Return the model's configuration and what the file says of pictures.

    Args:
        path: ``open_clip_config.json`` (``model_cfg`` and ``preprocess_cfg``), or a bare model configuration.

    Raises:
        ConfigError: the file is none, or asks for what is not built here; the first such key is named.
    """
    stated = read_json(path, largest=1 << 20, error=ConfigError)
    if not isinstance(stated, dict):
        raise ConfigError("this is no configuration of open_clip", where=path, expected="a JSON object")
    model, pictures = stated.get("model_cfg", stated), stated.get("preprocess_cfg", {})
    if not isinstance(pictures, dict):
        raise ConfigError("this is no configuration of open_clip", where=f"{path}: preprocess_cfg", got=pictures)
    try:
        return OpenClipConfig.model_validate(model), pictures
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise ConfigError(
            "a configuration asks for something that is not built here"
            if first["type"] != "missing"
            else "a configuration lacks a key",
            where=f"{path}: {key}",
            expected="a key that is known here" if first["type"] == "extra_forbidden" else first["msg"],
            got=None if first["type"] == "missing" else repr(first["input"])[:80],
        ) from error
