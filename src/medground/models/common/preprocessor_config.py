"""Reads the preprocessing that a Hugging Face folder names: ``preprocessor_config.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medground.errors import ConfigError
from medground.models.common.inputs import Preprocess, Resample, Rule
from medground.tables.documents import read_json

FILE = "preprocessor_config.json"
TOGETHER = "processor_config.json"
"""Where newer versions of the library keep it, beside the tokenizer's part."""
_READ = frozenset(
    [
        "do_resize",
        "size",
        "do_center_crop",
        "crop_size",
        "do_rescale",
        "rescale_factor",
        "do_normalize",
        "image_mean",
        "image_std",
        "resample",
        "do_pad",
        "do_thumbnail",
        "do_reduce_labels",
        "rescale_offset",
    ]
)
# Names of the classes that wrote the file, and steps that grey pictures or square ones make idle.
_WITHOUT_EFFECT = frozenset(
    [
        "image_processor_type",
        "feature_extractor_type",
        "processor_class",
        "do_convert_rgb",
        "do_convert_grayscale",
        "data_format",
        "input_data_format",
        "return_tensors",
        "device",
        "disable_grouping",
        "_valid_processor_keys",
        "default_to_square",
        "auto_map",
        "image_seq_length",
    ]
)
MOST_PIXELS = 4096
_FILTERS: dict[int, Resample] = {2: "bilinear", 3: "bicubic"}  # Pillow's numbers


def read_preprocess(folder: Path, tower: int | None = None) -> Preprocess:
    """Return the preprocessing of a folder.

    Either the shortest side is resized and the centre cut out (CLIP), or the whole picture is squashed to a square
    (SigLIP, ViT), of which the centre may be cut out (EfficientNet). Whatever else the file asks for
    is refused rather than left out.

    Args:
        folder: with ``preprocessor_config.json``.
        tower: side in pixels that the image tower takes, where it is known.

    Raises:
        ConfigError: the file is missing or damaged, or asks for a step that is not known here or for another size.
    """
    settings, path = _settings(folder)
    rule, size, resize_to = _frame(settings, path)
    if tower not in (None, size):
        raise ConfigError(
            "pictures are prepared at another size than the image tower takes", where=path, expected=tower, got=size
        )
    if strange := [key for key, value in settings.items() if key not in _READ | _WITHOUT_EFFECT and value]:
        raise _refused(strange[0], settings[strange[0]], "a step of CLIP, SigLIP or ViT", path)
    for key in ("do_pad", "do_thumbnail", "do_reduce_labels"):
        if settings.get(key):
            raise _refused(key, settings[key], "false", path)
    centred = settings.get("rescale_offset") is True  # EfficientNet's: pixels in [-1, 1], which is a mean and std of .5
    factor, known = settings.get("rescale_factor", 1 / 255), 1 / 127.5 if centred else 1 / 255
    if settings.get("do_rescale", True) is not True or not _number(factor) or abs(factor / known - 1) > 1e-6:
        raise _refused("rescale_factor", factor, f"do_rescale: true and {known:.6f}", path)
    resample = settings.get("resample")
    if isinstance(resample, bool) or not isinstance(resample, int) or resample not in _FILTERS:
        raise _refused("resample", resample, "2 (bilinear) or 3 (bicubic)", path)
    normal = settings.get("do_normalize", True)
    mean = _triple(settings, "image_mean", path) if normal else (0.0, 0.0, 0.0)
    std = _triple(settings, "image_std", path) if normal else (1.0, 1.0, 1.0)
    if min(std) <= 0:
        raise _refused("image_std", std, "positive numbers", path)
    if centred:
        mean = (0.5 + mean[0] / 2, 0.5 + mean[1] / 2, 0.5 + mean[2] / 2)
        std = (std[0] / 2, std[1] / 2, std[2] / 2)
    return Preprocess(rule, size, _FILTERS[resample], mean, std, resize_to, rounding="floor")


def states_preprocess(folder: Path) -> bool:
    """Return whether a folder says how its pictures are prepared."""
    return (folder / FILE).is_file() or (folder / TOGETHER).is_file()


def hold_preprocess(folder: Path, used: Preprocess) -> None:
    """Raise ConfigError where a folder states other colours or another size than an adapter uses.

    Args:
        folder: of the checkpoint; nothing is held where it states no preprocessing.
        used: by the adapter, whose authors' framing (padding to a square, say) such a file cannot express.
    """
    if not states_preprocess(folder):
        return
    stated = read_preprocess(folder)
    for key in ("size", "resample", "mean", "std"):
        if getattr(stated, key) != getattr(used, key):
            raise ConfigError(
                f"this folder prepares pictures otherwise than its authors did: {key}",
                where=folder / FILE,
                expected=getattr(used, key),
                got=getattr(stated, key),
                fix="correct or remove the file; hf_dual follows whatever such a file says",
            )


def _settings(folder: Path) -> tuple[dict[str, Any], Path]:
    """Return what a folder says of its pictures, and the file that says it."""
    if not states_preprocess(folder):
        raise ConfigError("no preprocessing can be read from this folder", where=folder, expected=FILE)
    path = folder / (FILE if (folder / FILE).is_file() else TOGETHER)
    settings = read_json(path, largest=1 << 20, error=ConfigError)
    if path.name == TOGETHER and isinstance(settings, dict):
        settings = settings.get("image_processor")
    if not isinstance(settings, dict):
        raise _refused("the file", settings, "a JSON object", path)
    return settings, path


def _frame(settings: Mapping[str, Any], path: Path) -> tuple[Rule, int, int]:
    """Return how a picture becomes a square, its side, and the side before a crop that takes something away."""
    if settings.get("do_resize", True) is not True:
        raise _refused("do_resize", settings["do_resize"], "true", path)
    crops, size = settings.get("do_center_crop") is True, settings.get("size")
    edge = size.get("shortest_edge") if isinstance(size, dict) else size
    if not crops:
        return "squash", _square(size, "size", path), 0
    crop = _square(settings.get("crop_size"), "crop_size", path)
    rule: Rule = "squash_then_crop" if edge is None and isinstance(size, dict) else "center_crop"
    side = _square(size if rule == "squash_then_crop" else edge, "size", path)
    if side < crop:
        raise _refused("size", size, f"at least the size of the crop, {crop}", path)
    if side == crop:  # the crop takes nothing away
        return ("squash" if rule == "squash_then_crop" else rule), crop, 0
    return rule, crop, side


def _square(value: Any, key: str, path: Path) -> int:
    """Return the side of a square given as a number, or as height and width."""
    height, width = (value.get("height"), value.get("width")) if isinstance(value, dict) else (value, value)
    side = height if height == width else None
    if isinstance(side, bool) or not isinstance(side, int) or not 1 <= side <= MOST_PIXELS:
        raise _refused(key, value, f"a square of at most {MOST_PIXELS} pixels", path)
    return side


def _triple(settings: Mapping[str, Any], key: str, path: Path) -> tuple[float, float, float]:
    """Return one number a channel."""
    values = settings.get(key)
    if not isinstance(values, list) or len(values) != 3 or not all(_number(value) for value in values):
        raise _refused(key, values, "three numbers", path)
    return float(values[0]), float(values[1]), float(values[2])


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _refused(key: str, got: Any, expected: str, path: Path) -> ConfigError:
    return ConfigError(f"this preprocessing is not known: {key}", where=path, expected=expected, got=got)
