"""Signals and deadlines as a shell sees them: exit codes, safe chunks named, the same command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

MODELS = """
import os, time
from pathlib import Path
from medground import Geometry, Prediction
from medground.models.answerers.gridvqa_counter import WordCounter
from medground.models.base import ModelInfo, Reply
import numpy as np


def slow():
    Path(os.environ["READY"]).touch()
    time.sleep(float(os.environ.get("SECONDS", "0")))


class Points:
    name, info = "points", ModelInfo("Points")

    def predict(self, images, findings):
        slow()
        shape = (len(images), len(findings))
        geometry = [Geometry.identity(x.size) for x in images]
        return Prediction(np.zeros(shape), np.full(shape, 0.5), np.ones((*shape, 2, 2), np.float32), geometry)

    def fingerprint(self):
        return "points"


class Counts(WordCounter):
    name, info = "counts", ModelInfo("Counts")

    def pair_logits(self, *given):
        slow()
        return super().pair_logits(*given)


class Talks:
    name, info = "talks", ModelInfo("Talks")

    def reply(self, conversations, options=None):
        slow()
        return [Reply("yes") for _ in conversations]

    def fingerprint(self):
        return "talks"
"""
SUBJECTS = {"xbench": "Points", "gridvqa_x": "Counts", "cxreasondial": "Talks"}


@pytest.fixture
def command(tmp_path: Path, small_runs: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "slow_models.py").write_text(MODELS)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    for name, value in {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "READY": str(tmp_path / "ready")}.items():
        monkeypatch.setenv(name, value)

    def write(subject: str, **engine: Any) -> list[str]:
        run = small_runs[subject] | {"models": [{"name": f"slow_models:{SUBJECTS[subject]}"}]}
        run["engine"] = {"chunk": 2, "workers": 2, "torch_threads": 1, **engine}
        (tmp_path / "run.yaml").write_text(yaml.safe_dump(run))
        return [sys.executable, "-m", "medground", "run", str(tmp_path / "run.yaml"), "--out", str(tmp_path / "runs")]

    return write


@pytest.mark.parametrize("subject", list(SUBJECTS))
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_with_its_own_code_and_the_same_command_goes_on(
    subject: str, sent: signal.Signals, code: int, command: Any, tmp_path: Path
) -> None:
    line = command(subject)
    with subprocess.Popen(
        line, env=os.environ | {"SECONDS": "0.2"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until = time.monotonic() + 120
        while not (tmp_path / "ready").exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        process.send_signal(sent)
        _, said = process.communicate(timeout=120)
    assert process.returncode == code, said
    assert "chunks are safe" in said
    assert "Traceback" not in said
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    assert list((tmp_path / "runs").rglob("summary.json"))


@pytest.mark.parametrize("subject", ["xbench", "gridvqa_x"])
def test_a_model_that_hangs_ends_with_the_deadline_and_exit_code_4(subject: str, command: Any, tmp_path: Path) -> None:
    line = command(subject, deadline=2)
    done = subprocess.run(
        line, env=os.environ | {"SECONDS": "3600"}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 4, done.stderr
    assert "the run's deadline has passed" in done.stderr
    assert "Traceback" not in done.stderr
    done = subprocess.run(command(subject), capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
