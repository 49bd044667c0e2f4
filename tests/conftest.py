"""Fixtures that every test may use."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from PIL import Image

# The first call of a kernel compiles it, which no deadline of an example can foresee.
settings.register_profile("medground", deadline=None)
settings.load_profile("medground")

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of expected numbers."""
    return GOLDEN


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real sample data, or a skip that says how to have it."""
    named = os.environ.get("MEDGROUND_TEST_DATA")
    if not named:
        pytest.skip("MEDGROUND_TEST_DATA does not name the folder of sample data")
    root = Path(named)
    if not root.is_dir():
        pytest.skip(f"MEDGROUND_TEST_DATA names {root}, which is not a folder")
    return root


@pytest.fixture(scope="session")
def tiny_manifest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of twelve drawn pictures in the manifest layout: nine patients, two findings, boxes and a mask."""
    root = tmp_path_factory.mktemp("tiny")
    rng = np.random.default_rng(7)
    lines = []
    for i in range(12):
        width, height = (96, 64) if i % 3 else (64, 80)
        pixels = rng.integers(0, 200, size=(height, width), dtype=np.uint8)
        x, y = int(rng.integers(4, width - 30)), int(rng.integers(4, height - 24))
        pixels[y : y + 16, x : x + 20] = 255
        Image.fromarray(pixels).save(root / f"case{i:02d}.png")
        record = {
            "image": f"case{i:02d}.png",
            "case_id": f"case{i:02d}",
            "patient_id": f"p{i % 9}",
            "view": "PA" if i % 2 else "AP",
            "frame": [width, height],
            "labels": {"Mass": i % 4 != 3, "Nodule": i % 4 == 3},
            "boxes": {"Mass" if i % 4 != 3 else "Nodule": [[x, y, x + 20, y + 16]]},
        }
        lines.append(json.dumps(record))
    (root / "manifest.jsonl").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture
def run_file(tiny_manifest: Path, tmp_path: Path) -> Path:
    """A run file over the tiny manifest with two baselines."""
    path = tmp_path / "run.yaml"
    path.write_text(
        "name: tiny\n"
        f"benchmark: {{name: xbench, replicates: 50, datasets: [{{name: manifest, root: {tiny_manifest}}}]}}\n"
        "models: [{name: baseline_centre}, {name: baseline_random}]\n"
        "engine: {chunk: 4, batch_size: 2, workers: 2, torch_threads: 1}\n"
    )
    return path


@pytest.fixture(scope="session")
def small_runs() -> dict[str, dict[str, Any]]:
    """A run file a benchmark, each of a few items and one model that ships."""

    def run(name: str, model: str, **benchmark: Any) -> dict[str, Any]:
        return {"name": name, "benchmark": {"name": name, **benchmark}, "models": [{"name": model}]}

    phantoms = [{"name": "phantom", "cases": 4, "size": 224}]
    return {
        "xbench": run("xbench", "reference", datasets=phantoms),
        "gridvqa_x": run("gridvqa_x", "gridvqa_pure", per_bucket=2, explainers=[{"name": "emap"}]),
        "heal_medvqa": run("heal_medvqa", "small_chat", datasets=phantoms, quartets=4),
        "cxreasondial": run("cxreasondial", "small_chat", phantoms=4),
        "medical_checklist": run("medical_checklist", "reference", pairs=4),
    }


@pytest.fixture(scope="session")
def object_server() -> Iterator[str]:
    """The address of a local server that speaks the protocol of S3."""
    server = pytest.importorskip("moto.server", reason="moto is not installed")
    pytest.importorskip("obstore", reason="obstore is not installed")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    yield "http://{}:{}".format(*running.get_host_and_port())
    running.stop()


@pytest.fixture
def bucket(object_server: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The address of an empty bucket (``s3://...``), with the environment set so that it is reached."""
    name = "b" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:20]
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(key, "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", object_server)
    urllib.request.urlopen(urllib.request.Request(f"{object_server}/{name}", method="PUT")).close()
    return f"s3://{name}"
