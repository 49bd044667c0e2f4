"""The examples of ``docs/models.md`` run, and its table names every model."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from medground import registry
from medground.errors import CheckpointError, ModelError
from medground.imaging.geometry import resample_map
from medground.imaging.reading import Radiograph
from medground.models.base import Grounder

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def example(name: str) -> str:
    match = re.search(rf"<!-- example: {name} -->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert match
    return match[1]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("my_model", "my_classifier"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_pytorch_example(here: Path, pictures: list[Radiograph]) -> None:
    (here / "my_model.py").write_text(example("pytorch"))
    cls: Any = registry.load("model", "my_model:MyModel")
    network = sys.modules["my_model"].Network()  # type: ignore[attr-defined]
    torch.save(network.state_dict(), here / "mine.pt")
    model = registry.create("model", "my_model:MyModel", {"checkpoint": here / "mine.pt"})
    assert isinstance(model, Grounder)
    prediction = model.predict(pictures, ["Nodule", "Effusion"])
    assert prediction.saliency.shape == (3, 2, 8, 8)
    assert prediction.scores.shape == prediction.probabilities.shape == (3, 2)
    on_picture = resample_map(prediction.saliency[0, 0], prediction.geometry[0])
    assert on_picture.shape == pictures[0].pixels.shape
    assert np.isfinite(on_picture).all()
    assert len(model.fingerprint()) == 16
    with pytest.raises(ModelError, match="unknown findings"):
        model.predict(pictures, ["Hernia"])
    torch.save({"features.0.weight": torch.zeros(1)}, here / "wrong.pt")
    with pytest.raises(CheckpointError, match="missing"):
        cls(checkpoint=here / "wrong.pt")


def test_hugging_face_example(here: Path, pictures: list[Radiograph]) -> None:
    from transformers import ViTConfig, ViTForImageClassification

    labels = {"Cardiomegaly": 0, "Effusion": 1, "Nodule": 2}
    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=32,
        patch_size=8,
        label2id=labels,
        id2label={index: name for name, index in labels.items()},
    )
    ViTForImageClassification(config).save_pretrained(here / "folder")
    (here / "my_classifier.py").write_text(example("hugging face"))
    model = registry.create("model", "my_classifier:MyClassifier", {"folder": here / "folder"})
    assert isinstance(model, Grounder)
    prediction = model.predict(pictures, ["Nodule", "Effusion"])
    assert prediction.saliency.shape == (3, 2, 4, 4)
    assert (prediction.saliency.sum((-1, -2)) <= 1 + 1e-6).all()


def test_the_page_names_every_model_and_every_saliency_rule() -> None:
    page = PAGE.read_text(encoding="utf-8")
    published = [name for name in registry.names("model") if not name.startswith(("baseline_", "gridvqa", "reference"))]
    for name in published:
        if name != "precomputed":
            assert f"### {name}" in page, name
            assert f"| `{name}` |" in page, name
    for rule in ("similarity", "surgery", "gradcam", "chefer", "attention"):
        assert f"| `{rule}`" in page
