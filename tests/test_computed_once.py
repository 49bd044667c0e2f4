"""Models that count: built once a run, asked once about every item, and anew about what a change touches."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from medground.commands.score import score_run
from medground.config import parse_run_file
from medground.running.plan import make_plan
from medground.running.run import RunReport
from medground.session import assemble, run_session

MODELS = """
import json, os
import numpy as np
from pathlib import Path
from medground import Geometry, Prediction
from medground.models.answerers.gridvqa_counter import WordCounter
from medground.models.base import ModelInfo


def note(what):
    with open(os.environ["COUNTING_LOG"], "a") as log:
        log.write(json.dumps(what) + "\\n")


class Points:
    name, info = "points", ModelInfo("Points")

    def __init__(self, checkpoint: Path, scale: float = 1.0) -> None:
        note(["built", checkpoint.name])
        self.checkpoint, self.offset = checkpoint, float(checkpoint.read_text()) * scale

    def predict(self, images, findings):
        for image in images:
            note(["asked", self.checkpoint.name, image.case_id])
        scores = np.array([[x.pixels.mean() + self.offset] * len(findings) for x in images])
        maps = np.stack([np.stack([x.pixels[:8, :8]] * len(findings)) for x in images])
        return Prediction(scores, 1 / (1 + np.exp(-scores)), maps, [Geometry.identity(x.size) for x in images])

    def fingerprint(self):
        return "points"


class Counts(WordCounter):
    name, info = "counts", ModelInfo("Counts")

    def __init__(self, checkpoint: Path, scale: float = 1.0) -> None:
        note(["built", checkpoint.name])
        super().__init__()
"""


class Counted:
    """What was built and asked since it was last looked at."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def __call__(self) -> Counter[tuple[str, ...]]:
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return Counter(tuple(json.loads(line)) for line in lines)

    def built(self) -> dict[str, int]:
        """Checkpoint -> how often a model was built from it."""
        return {key[1]: times for key, times in self().items() if key[0] == "built"}


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/counting_models.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.setenv("COUNTING_LOG", str(tmp_path / "log"))
    (tmp_path / "one").write_text("0.5")
    (tmp_path / "two").write_text("0.7")
    return Counted(tmp_path / "log")


Run = Callable[..., RunReport]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(spec: dict[str, Any], **changes: Any) -> RunReport:
        return run_session(assemble(parse_run_file(spec | changes)), tmp_path / "run")

    return run


@pytest.fixture
def xbench(tiny_manifest: Path, tmp_path: Path) -> dict[str, Any]:
    data = [
        {"name": "manifest", "label": label, "root": str(shutil.copytree(tiny_manifest, tmp_path / label))}
        for label in ("left", "right")
    ]
    models = [{"name": "counting_models:Points", "label": n, "checkpoint": str(tmp_path / n)} for n in ("one", "two")]
    return {
        "name": "counted",
        "benchmark": {"name": "xbench", "replicates": 0, "datasets": data},
        "models": models,
        "engine": {"chunk": 4, "workers": 2, "torch_threads": 1},
    }


@pytest.fixture
def gridvqa(tmp_path: Path) -> dict[str, Any]:
    models = [{"name": "counting_models:Counts", "label": "one", "checkpoint": str(tmp_path / "one")}]
    explainers = [{"name": "emap"}]
    return {
        "name": "counted",
        "benchmark": {"name": "gridvqa_x", "per_bucket": 2, "replicates": 0, "explainers": explainers},
        "models": models,
        "engine": {"workers": 1, "torch_threads": 1},
    }


CASES = [f"case{i:02d}" for i in range(12)]


@pytest.mark.parametrize("spec", ["xbench", "gridvqa"])
def test_planning_builds_nothing(spec: str, counted: Counted, request: pytest.FixtureRequest) -> None:
    plan = make_plan(assemble(parse_run_file(request.getfixturevalue(spec))).benchmark.tasks(), chunk_size=4)
    assert plan.n_items > 0
    assert not counted()


def test_xbench_builds_a_model_once_a_run_and_none_for_a_finished_one(
    counted: Counted, run: Run, xbench: dict[str, Any]
) -> None:
    run(xbench)
    expected = {("built", n): 1 for n in ("one", "two")} | {("asked", n, c): 2 for n in ("one", "two") for c in CASES}
    assert counted() == expected
    report = run(xbench)
    assert report.reused == report.chunks == 12
    assert not counted()


def test_another_protocol_asks_nobody(counted: Counted, run: Run, xbench: dict[str, Any], tmp_path: Path) -> None:
    first = run(xbench)
    counted()
    score_run(tmp_path / "run", "protocol", "medklip")
    assert not counted()
    other = run(xbench, benchmark=xbench["benchmark"] | {"protocol": "chexlocalize"})
    assert not counted()
    assert other.reading != first.reading
    assert (first.reading / "summary.json").exists()


@pytest.mark.parametrize("how", ["a picture", "the time of a picture", "a table"])
def test_a_changed_dataset_costs_what_depends_on_it(
    counted: Counted, run: Run, xbench: dict[str, Any], tmp_path: Path, how: str
) -> None:
    run(xbench)
    counted()
    picture, table = tmp_path / "left/case05.png", tmp_path / "left/manifest.jsonl"
    if how == "a picture":
        Image.fromarray(255 - np.asarray(Image.open(picture))).save(picture)
    elif how == "the time of a picture":
        picture.write_bytes(picture.read_bytes())
    else:
        lines = table.read_text().splitlines()
        table.write_text("\n".join([json.dumps(json.loads(lines[0]) | {"view": "LATERAL"}), *lines[1:]]) + "\n")
    report = run(xbench)
    chunk = {"a picture": CASES[4:8], "the time of a picture": [], "a table": CASES}[how]
    asked = Counter({("asked", n, c): 1 for n in ("one", "two") for c in chunk})
    assert counted() == asked + Counter({("built", n): 1 for n in ("one", "two") if chunk})
    assert report.reused == 12 - 2 * len(chunk) // 4


@pytest.mark.parametrize("how", ["checkpoint", "parameter", "place"])
def test_a_changed_model_costs_its_own_answers(
    counted: Counted, run: Run, xbench: dict[str, Any], tmp_path: Path, how: str
) -> None:
    run(xbench)
    counted()
    models = xbench["models"]
    if how == "checkpoint":
        (tmp_path / "two").write_text("0.25")
    elif how == "parameter":
        models = [models[0], models[1] | {"scale": 0.5}]
    else:  # the same file elsewhere is the same model
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "two").rename(tmp_path / "elsewhere/two")
        models = [models[0], models[1] | {"checkpoint": str(tmp_path / "elsewhere/two")}]
    report = run(xbench, models=models)
    anew = {} if how == "place" else {("built", "two"): 1} | {("asked", "two", c): 2 for c in CASES}
    assert counted() == anew
    assert report.reused == (6 if anew else 12)


def test_gridvqa_x_builds_a_model_once_a_run_and_none_for_a_finished_one(
    counted: Counted, run: Run, gridvqa: dict[str, Any]
) -> None:
    report = run(gridvqa)
    assert report.chunks == 19
    assert counted.built() == {"one": 1}
    report = run(gridvqa)
    assert report.reused == report.chunks
    assert not counted()


def test_every_process_builds_the_model_once(counted: Counted, run: Run, gridvqa: dict[str, Any]) -> None:
    run(gridvqa, engine=gridvqa["engine"] | {"workers": 2})
    assert 1 <= counted.built()["one"] <= 2


def test_another_reading_of_gridvqa_x_asks_nobody(counted: Counted, run: Run, gridvqa: dict[str, Any]) -> None:
    first = run(gridvqa)
    counted()
    other = run(gridvqa, benchmark=gridvqa["benchmark"] | {"pictures": 1})
    assert other.reading != first.reading
    assert not counted()


@pytest.mark.parametrize(
    ("how", "reused"), [("checkpoint", 0), ("parameter", 0), ("explainer", 0), ("seed", 0), ("density", 19)]
)
def test_a_change_of_gridvqa_x_costs_what_depends_on_it(
    counted: Counted, run: Run, gridvqa: dict[str, Any], tmp_path: Path, how: str, reused: int
) -> None:
    run(gridvqa)
    counted()
    benchmark, models = gridvqa["benchmark"], gridvqa["models"]
    changes: dict[str, Any] = {
        "checkpoint": {},
        "parameter": {"models": [models[0] | {"scale": 2.0}]},
        "explainer": {"benchmark": benchmark | {"explainers": [{"name": "intershap"}]}},
        "seed": {"seed": 1},
        "density": {"benchmark": benchmark | {"densities": [0.7, 0.5]}},
    }
    if how == "checkpoint":
        (tmp_path / "one").write_text("0.75")
    report = run(gridvqa, **changes[how])
    assert report.reused == reused
    assert counted.built() == {"one": 1}
