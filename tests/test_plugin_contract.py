"""What one's own model may do wrong (identity, working directory), and folders that another version wrote."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medground.errors import ConfigError, RunError
from medground.identity import component_identity
from medground.session import run_file

MODEL = """
import os
import numpy as np
from medground.imaging.geometry import Geometry
from medground.models.base import ModelInfo, Prediction

class Own:
    name = "own"
    info = ModelInfo("Own")
    value = {value}

    def __init__(self, away: str = ""):
        self.away = away

    def predict(self, images, findings):
        if self.away:
            os.chdir(self.away)
        shape = (len(images), len(findings))
        maps = np.full((*shape, 2, 2), self.value, np.float32)
        return Prediction(np.zeros(shape), np.full(shape, 0.5), maps, [Geometry.identity(x.size) for x in images])

    def fingerprint(self):
        return None
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a module with a model of one's own, and import it."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(value: float) -> type[Any]:
        (tmp_path / "own_plugin.py").write_text(MODEL.replace("{value}", str(value)))
        sys.modules.pop("own_plugin", None)
        importlib.invalidate_caches()
        return importlib.import_module("own_plugin").Own

    yield write
    sys.modules.pop("own_plugin", None)


def test_a_fingerprint_of_nothing_does_not_hide_a_change(own: Any) -> None:
    before = component_identity(own(1.0), {})
    assert component_identity(own(1.0), {}) == before
    assert component_identity(own(22.0), {}) != before


@pytest.mark.parametrize("value", [np.random.default_rng(0), object(), lambda: 1, iter([1])], ids=range(4))
def test_a_parameter_without_a_stable_form_is_refused_and_never_known_by_its_address(own: Any, value: Any) -> None:
    with pytest.raises(ConfigError, match="identity") as caught:
        component_identity(own(1.0), {"away": value})
    assert "0x" not in str(caught.value)


@pytest.fixture
def run_yaml(tiny_manifest: Path, tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(
        "name: own\n"
        f"benchmark: {{name: xbench, replicates: 0, datasets: [{{name: manifest, root: {tiny_manifest}}}]}}\n"
        f"models: [{{name: 'own_plugin:Own', away: {tmp_path / 'elsewhere'}}}]\nengine: {{workers: 0, chunk: 4}}\n"
    )
    (tmp_path / "elsewhere").mkdir()
    return path


def test_a_model_that_changes_the_working_directory_does_not_split_a_run(
    own: Any, run_yaml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(1.0)
    monkeypatch.chdir(tmp_path)
    run_file(run_yaml, out=Path("runs"))
    assert not list((tmp_path / "elsewhere").iterdir())
    assert list((tmp_path / "runs/own/readings").rglob("summary.json"))
    assert Path.cwd() in (tmp_path, tmp_path / "elsewhere")


def test_a_run_of_another_format_is_refused_and_left_as_it_is(
    own: Any, run_yaml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own(1.0)
    monkeypatch.chdir(tmp_path)
    run_file(run_yaml, out=tmp_path / "runs")
    manifest = tmp_path / "runs/own/manifest.json"
    changed = json.dumps(json.loads(manifest.read_text()) | {"format": 99})
    manifest.write_text(changed)
    with pytest.raises(RunError):
        run_file(run_yaml, out=tmp_path / "runs")
    assert manifest.read_text() == changed
