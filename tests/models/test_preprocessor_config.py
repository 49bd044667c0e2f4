"""What a folder says of pictures gives the library's own pixels, to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from medground.errors import ConfigError
from medground.imaging.reading import Radiograph
from medground.models.common.preprocessor_config import read_preprocess


@pytest.mark.parametrize("kind", ["CLIPImageProcessorPil", "SiglipImageProcessorPil", "ViTImageProcessorPil"])
def test_pixels_are_the_librarys(kind: str, tmp_path: Path) -> None:
    import transformers

    processor = getattr(transformers, kind)()
    processor.save_pretrained(tmp_path)
    preprocess = read_preprocess(tmp_path)
    rng = np.random.default_rng(0)
    for width, height in ((300, 301), (517, 333), (225, 1000), (224, 224)):
        levels = rng.integers(0, 256, (height, width)).astype(np.uint8)
        expected = processor(images=Image.fromarray(levels).convert("RGB"), return_tensors="np")["pixel_values"][0]
        own, _ = preprocess(Radiograph((levels / 255).astype(np.float32)))
        assert np.abs(own - expected).max() < 1e-6


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("CLIPImageProcessorPil", {"size": {"shortest_edge": 256}}),
        (
            "EfficientNetImageProcessorPil",
            {"do_center_crop": True, "rescale_factor": 1 / 127.5, "rescale_offset": True, "include_top": False},
        ),
        (
            "EfficientNetImageProcessorPil",
            {"rescale_factor": 1 / 127.5, "rescale_offset": True, "include_top": False, "do_normalize": False},
        ),
    ],
)
def test_crops_and_offsets_are_the_librarys(kind: str, settings: dict[str, Any], tmp_path: Path) -> None:
    import transformers

    processor = getattr(transformers, kind)(**settings)
    processor.save_pretrained(tmp_path)
    preprocess = read_preprocess(tmp_path)
    rng = np.random.default_rng(0)
    for width, height in ((517, 333), (301, 1000), (346, 346)):
        levels = rng.integers(0, 256, (height, width)).astype(np.uint8)
        expected = processor(images=Image.fromarray(levels).convert("RGB"), return_tensors="np")["pixel_values"][0]
        own, geometry = preprocess(Radiograph((levels / 255).astype(np.float32)))
        assert own.shape == expected.shape
        assert geometry.input == own.shape[:0:-1]
        assert np.abs(own - expected).max() < 1e-5


def test_a_second_division_by_the_deviation_is_refused(tmp_path: Path) -> None:
    from transformers import EfficientNetImageProcessor

    EfficientNetImageProcessor(include_top=True).save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="include_top"):
        read_preprocess(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", "[" * 100_000, '{"size": {"height": 1e999, "width": 1e999}}'])
def test_damaged_files_are_errors_of_ours(text: str, tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text(text)
    with pytest.raises(ConfigError, match=r"preprocessor_config\.json"):
        read_preprocess(tmp_path)


@pytest.mark.parametrize("size", ['{"height": [1], "width": 1}', "[224]"])
def test_sizes_of_another_type_are_errors_of_ours(size: str, tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text(f'{{"size": {size}}}')
    with pytest.raises(ConfigError, match="size"):
        read_preprocess(tmp_path)
