"""A run with a decode cache gives the bytes of one without, and decodes each picture once for all its models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

from medground.config import parse_run_file
from medground.errors import ConfigError
from medground.imaging import cache, reading
from medground.session import assemble, run_file

MODELS = [{"name": "tests_cache_model:Brightness"}, {"name": "baseline_centre"}]
MODEL = '''
import numpy as np
from medground import Geometry, Prediction
from medground.models.base import ModelInfo


class Brightness:
    """Depends on every pixel and on all that a picture carries."""

    name = "brightness"
    info = ModelInfo("Brightness")

    def predict(self, images, findings):
        maps = [np.stack([x.pixels[::3, ::3] * (k + 1) for k in range(len(findings))]) for x in images]
        scores = np.array([[x.pixels.sum() + len(x.steps) + x.value_range[1]] * len(findings) for x in images])
        return Prediction(scores, 1 / (1 + np.exp(-scores / 1e6)), maps, [Geometry.identity(x.size) for x in images])

    def fingerprint(self):
        return "brightness"
'''


def write_dicom(path: Path, pixels: np.ndarray) -> None:
    header = Dataset()
    header.file_meta = FileMetaDataset()
    header.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    header.SOPClassUID, header.SOPInstanceUID = SecondaryCaptureImageStorage, generate_uid()
    header.Rows, header.Columns = pixels.shape
    header.SamplesPerPixel, header.PhotometricInterpretation = 1, "MONOCHROME1"
    header.BitsAllocated, header.BitsStored, header.HighBit, header.PixelRepresentation = 16, 12, 11, 0
    header.WindowCenter, header.WindowWidth = "1800", "2111"
    header.PixelData = pixels.astype("<u2").tobytes()
    header.save_as(path, enforce_file_format=True)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    root, rng, lines = tmp_path / "data", np.random.default_rng(2), []
    root.mkdir()
    for i in range(10):
        name = f"{i}.{'dcm' if i % 2 else 'png'}"
        if i % 2:
            write_dicom(root / name, rng.integers(0, 4096, (40, 30)))
        else:
            Image.fromarray(rng.integers(0, 256, (40, 30), dtype=np.uint8)).save(root / name)
        boxes = {"Mass": [[i, i, i + 9, i + 12]], "Nodule": [[2, 20, 12, 35]]}
        lines.append(json.dumps({"image": name, "frame": [30, 40], "boxes": boxes}))
    (root / "broken.png").write_bytes((root / "0.png").read_bytes()[:-30])
    lines.append(json.dumps({"image": "broken.png", "frame": [30, 40], "boxes": {"Mass": [[0, 0, 9, 9]]}}))
    (root / "manifest.jsonl").write_text("\n".join(lines))
    return root


def run(tmp_path: Path, manifest: Path, name: str, **parameters: Any) -> dict[str, bytes]:
    """Run and return the files that hold results."""
    datasets = [{"name": "manifest", "root": str(manifest)}]
    benchmark = {"name": "xbench", "replicates": 10, "datasets": datasets} | parameters
    engine = {"batch_size": 3, "chunk": 4, "workers": 3, "on_error": "skip"}
    file = tmp_path / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"name": name, "benchmark": benchmark, "models": MODELS, "engine": engine}))
    folder = run_file(file, out=tmp_path / "runs").folder
    # What a summary was made of covers the run file, and the cache that it names.
    others = {"run.yaml", "manifest.json", "profile.json", "made_of"}
    wanted = [p for p in folder.rglob("*") if p.is_file() and p.name not in others]
    return {str(p.relative_to(folder)): p.read_bytes() for p in wanted}


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A list that grows by one whenever a file is decoded."""
    (tmp_path / "tests_cache_model.py").write_text(MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    times: list[str] = []

    def counted(data: bytes, *args: Any, decode: Any = reading.decode) -> Any:
        times.append("decoded")
        return decode(data, *args)

    for module in (reading, cache):
        monkeypatch.setattr(module, "decode", counted)
    return times


def test_a_cache_changes_no_byte_of_a_run(tmp_path: Path, manifest: Path, decoded: list[str]) -> None:
    plain = run(tmp_path, manifest, "plain")
    # Before a run three pictures of a dataset are looked at, once: the last of them is the broken one.
    assert len(decoded) == 2 * 11 + 3
    decoded.clear()
    assert run(tmp_path, manifest, "plain") == plain
    assert not decoded, "a finished run opens no picture"
    assert {name.split("/")[0] for name in plain} >= {"predictions", "readings", "failures.jsonl"}
    for name, parameters, times in (
        ("first", {}, 10 + 1 + 2),  # a file that cannot be decoded is tried again by the look and by each model
        ("second", {}, 1 + 2),
        ("tight", {"cache": str(tmp_path / "tight"), "cache_gb": 4e-6}, None),
    ):
        decoded.clear()
        assert run(tmp_path, manifest, name, **({"cache": str(tmp_path / "cache")} | parameters)) == plain
        assert times is None or len(decoded) == times
    assert 0 < sum(p.stat().st_size for p in (tmp_path / "tight").glob("*.radiograph")) <= 4000


def test_a_cache_is_named_in_the_run_file_beside_which_it_lies(tmp_path: Path, manifest: Path) -> None:
    datasets = [{"name": "manifest", "root": str(manifest)}]
    spec = {"name": "xbench", "datasets": datasets, "cache": "decoded", "cache_gb": 3}
    made = {"name": "x", "benchmark": spec, "models": [{"name": "baseline_centre"}]}
    session = assemble(parse_run_file(made), tmp_path)
    assert session.run.benchmark.parameters["cache"] == str(tmp_path / "decoded")
    assert not (tmp_path / "decoded").exists(), "naming a cache makes none"
    without = assemble(parse_run_file(made | {"benchmark": {"name": "xbench", "datasets": datasets}}), tmp_path)
    assert [t.fingerprint() for t in session.benchmark.tasks()] == [t.fingerprint() for t in without.benchmark.tasks()]


@pytest.mark.parametrize("size", [0, -1, float("nan"), float("inf")])
def test_a_cache_without_a_size_is_refused(size: float) -> None:
    from medground.benchmarks.xbench import XBench

    with pytest.raises(ConfigError, match="cache"):
        XBench(cache_gb=size)
