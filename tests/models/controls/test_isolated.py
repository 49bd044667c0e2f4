"""A model in a process of its own: the same answers, and crashes and hangs that cost one call each."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from medground.cli import app
from medground.errors import ConfigError, ModelError
from medground.imaging.reading import Radiograph
from medground.models.base import Grounder
from medground.models.baselines.baseline_random import UniformRandom
from medground.models.capabilities import capabilities_of
from medground.models.controls.isolated import isolated

MODULE = '''
import os, signal, time
from medground.models.baselines.baseline_centre import CentrePrior
from medground.errors import ConfigError


class Fragile(CentrePrior):
    """Crashes, hangs or raises on the cases that it is told."""

    name = "fragile"

    def __init__(self, crash: str = "", hang: str = "", bad: str = "", refuse: bool = False) -> None:
        super().__init__()
        if refuse:
            raise ConfigError("the weights are wrong")
        self.crash, self.hang, self.bad = crash, hang, bad

    def predict(self, images, findings):
        print("a model may print what it likes")
        for image in images:
            if image.case_id == self.crash:
                os.kill(os.getpid(), signal.SIGSEGV)
            if image.case_id == self.hang:
                time.sleep(3600)
            if image.case_id == self.bad:
                raise ZeroDivisionError("by nothing")
        return super().predict(images, findings)

    def process(self):
        return os.getpid()
'''


@pytest.fixture
def fragile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class, in a module of the working directory."""
    (tmp_path / "fragile_lab.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("fragile_lab", None)
    import fragile_lab  # type: ignore[import-not-found]  # written above

    yield fragile_lab.Fragile
    sys.modules.pop("fragile_lab", None)


def picture(name: str) -> Radiograph:
    levels = np.random.default_rng(len(name)).random((20, 30)).astype(np.float32)
    return Radiograph(levels, name)


def test_answers_are_those_of_the_model_itself() -> None:
    here, apart = UniformRandom(seed=3), isolated(UniformRandom, {"seed": 3})
    images = [picture("a"), picture("bb")]
    one, other = here.predict(images, ["Mass", "Nodule"]), apart.predict(images, ["Mass", "Nodule"])
    np.testing.assert_array_equal(one.scores, other.scores)
    np.testing.assert_array_equal(np.asarray(one.saliency), np.asarray(other.saliency))
    assert one.geometry == other.geometry
    assert apart.fingerprint() == here.fingerprint()
    assert apart.info == here.info
    assert isinstance(apart, Grounder)
    assert capabilities_of(apart) == capabilities_of(here)
    assert not hasattr(apart, "match")


def test_a_crash_costs_one_call(fragile: Any) -> None:
    model = isolated(fragile, {"crash": "bad"})
    before = model.process()
    assert before != os.getpid()
    with pytest.raises(ModelError, match="ended while it was asked") as caught:
        model.predict([picture("bad")], ["Mass"])
    assert f"signal {signal.SIGSEGV}" in str(caught.value)
    assert model.predict([picture("good")], ["Mass"]).scores.shape == (1, 1)
    assert model.process() != before


def test_a_hang_is_ended_at_its_deadline(fragile: Any) -> None:
    model = isolated(fragile, {"hang": "slow"}, deadline=2.0)
    before = model.process()
    with pytest.raises(ModelError, match="did not answer in time"):
        model.predict([picture("slow")], ["Mass"])
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert model.predict([picture("good")], ["Mass"]).scores.shape == (1, 1)


def test_errors_come_across(fragile: Any) -> None:
    model = isolated(fragile, {"bad": "zero"})
    with pytest.raises(ModelError) as caught:
        model.predict([picture("zero")], ["Mass"])
    assert "ZeroDivisionError: by nothing" in str(caught.value)
    with pytest.raises(ConfigError, match="the weights are wrong"):
        isolated(fragile, {"refuse": True})


def test_the_process_ends_with_its_model(fragile: Any) -> None:
    model = isolated(fragile, {})
    process = model.process()
    del model
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_a_run_goes_on_after_crashes_and_hangs(fragile: Any, run_file: Path) -> None:
    del fragile
    text = run_file.read_text()
    text = text.replace(
        "{name: baseline_random}",
        '{name: "fragile_lab:Fragile", label: crashing, crash: case03, isolate: true}, '
        '{name: "fragile_lab:Fragile", label: hanging, hang: case05, isolate: 5}',
    )
    run_file.write_text(
        text.replace("workers: 2", "workers: 2, on_error: skip").replace("batch_size: 2", "batch_size: 1")
    )
    done = CliRunner().invoke(app, ["run", str(run_file), "--json"])
    assert done.exit_code == 3, done.output
    failures = [json.loads(line) for line in Path("runs/tiny/failures.jsonl").read_text().splitlines()]
    assert sorted((f["task"][0] if isinstance(f.get("task"), list) else f["model"], f["item"]) for f in failures) == [
        ("crashing", "case03"),
        ("hanging", "case05"),
    ]
