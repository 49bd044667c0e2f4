"""Holds an ``open_clip_config.json`` against what an adapter builds, and reads its colours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from medground.errors import ConfigError
from medground.models.common.inputs import CLIP_MEAN, CLIP_STD, Preprocess, Resample, Rule
from medground.tables.documents import read_json

FILE = "open_clip_config.json"
# Where the parts came from: weights and tokenizer are read from files here.
_WITHOUT_EFFECT = {
    *("text_cfg.hf_model_name", "text_cfg.hf_tokenizer_name", "text_cfg.hf_model_pretrained"),
    "vision_cfg.timm_model_pretrained",
}
_SHAPES: Mapping[str, Rule] = {"shortest": "center_crop", "squash": "squash"}


def follow_open_clip(folder: Path, built: Mapping[str, Any], preprocess: Preprocess) -> Preprocess:
    """Return the preprocessing that a folder states, the adapter's own where it says nothing.

    Args:
        folder: of the checkpoint.
        built: dotted key below ``model_cfg`` -> the only value that the adapter's network has.
        preprocess: of the published pipeline.

    Raises:
        ConfigError: the file asks for another network, or for a step that is not known here.
    """
    path = folder / FILE
    if not path.is_file():
        return preprocess
    stated = read_json(path, largest=1 << 20, error=ConfigError)
    model, pictures = (
        stated.get(key, {}) if isinstance(stated, dict) else None for key in ("model_cfg", "preprocess_cfg")
    )
    if not isinstance(model, dict) or not isinstance(pictures, dict):
        raise ConfigError("this is no configuration of open_clip", where=path, expected="model_cfg, preprocess_cfg")
    for key, value in _leaves(model).items():
        if key not in _WITHOUT_EFFECT and (key not in built or value != built[key]):
            raise _refused(path, f"model_cfg.{key}", value, built.get(key, "a key that is known here"))
    return stated_preprocess(pictures, preprocess, path)


def preprocess_of(stated: Mapping[str, Any], size: int, path: Path) -> Preprocess:
    """Return the preprocessing of ``preprocess_cfg``; what it leaves open is as open_clip has it.

    Args:
        stated: the content of ``preprocess_cfg``.
        size: side of the network's input, in pixels.
        path: of the file, for messages.

    Raises:
        ConfigError: see :func:`stated_preprocess`.
    """
    rule = _SHAPES.get(stated.get("resize_mode", "shortest"), "center_crop")
    resample: Resample = "bilinear" if stated.get("interpolation") == "bilinear" else "bicubic"
    return stated_preprocess(stated, Preprocess(rule, size, resample, CLIP_MEAN, CLIP_STD), path)


def stated_preprocess(stated: Mapping[str, Any], preprocess: Preprocess, path: Path) -> Preprocess:
    """Return a preprocessing with the colours and the shape that ``preprocess_cfg`` states.

    Args:
        stated: the content of ``preprocess_cfg``.
        preprocess: what holds where nothing is stated.
        path: of the file, for messages.

    Raises:
        ConfigError: another size, another filter, or a key that is not known here.
    """
    colours: dict[str, Any] = {}
    for key, value in stated.items():
        where = f"preprocess_cfg.{key}"
        if key in ("mean", "std"):
            if not _three_numbers(value) or (key == "std" and min(value) <= 0):
                raise _refused(path, where, value, "three numbers")
            colours[key] = tuple(map(float, value))
        elif key == "size" and value not in (preprocess.size, [preprocess.size] * 2):
            raise _refused(path, where, value, preprocess.size)
        elif key == "interpolation" and value != preprocess.resample:
            raise _refused(path, where, value, preprocess.resample)
        elif key == "resize_mode" and _SHAPES.get(value) != preprocess.rule:
            raise _refused(path, where, value, " or ".join(_SHAPES))
        elif key not in ("size", "interpolation", "resize_mode", "mode", "fill_color"):
            raise _refused(path, where, value, "a key that is known here")
    return replace(preprocess, **colours)


def _leaves(tree: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        leaves |= _leaves(value, f"{place}{key}.") if isinstance(value, dict) else {place + key: value}
    return leaves


def _three_numbers(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(type(x) in (int, float) and abs(x) < 1e6 for x in value)


def _refused(path: Path, key: str, got: Any, expected: Any) -> ConfigError:
    return ConfigError(
        f"a configuration asks for something else than this adapter does: {key}",
        where=path,
        expected=expected,
        got=str(got)[:80],
    )
