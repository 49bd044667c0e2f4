"""A training that a signal ended goes on from its checkpoint, and writes the bytes of one that nothing ended."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, signal, sys
from pathlib import Path

import torch

from medground.models.networks.chat import weights
from medground.training import loop
from medground.training.chat.learner import ChatLearner, Recipe
from medground.training.chat.scenes import draw_scenes

folder, when = Path(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)


def killed():
    os.kill(os.getpid(), signal.SIGTERM if when == "asked to end" else signal.SIGKILL)


class Learner(ChatLearner):
    def loss(self, step):
        if step == 3 and when in ("amid a step", "asked to end"):
            killed()
        return super().loss(step)


save = torch.save


def half_saved(state, path):
    save(state, path)
    if state["step"] == 4 and when == "amid a checkpoint":
        os.truncate(path, os.path.getsize(path) // 2)
        killed()


torch.save = half_saved
learner = Learner(draw_scenes(8, 5), Recipe(pictures=8, batch=2))
schedule = loop.Schedule(steps=5, warm_up=2)
network = loop.run(learner, schedule, folder, identity={"recipe": "test"}, every=2)
weights.save(network, {"seen_patients": {}}, folder / "weights.safetensors")
"""


def trained(folder: Path, when: str = "never") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT, str(folder), when]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("whole")
    done = trained(folder)
    assert done.returncode == 0, done.stderr
    return digest(folder)


@pytest.mark.parametrize(
    ("when", "by"),
    [
        ("amid a step", signal.SIGKILL),
        ("amid a checkpoint", signal.SIGKILL),
        ("asked to end", signal.SIGTERM),
    ],
)
def test_a_killed_training_ends_with_the_same_bytes(tmp_path: Path, whole: str, when: str, by: signal.Signals) -> None:
    ended = trained(tmp_path, when)
    assert ended.returncode == -by, ended.stderr
    assert not (tmp_path / "weights.safetensors").exists()
    again = trained(tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[0] == "going on after step 2"
    assert digest(tmp_path) == whole
