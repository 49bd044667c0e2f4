"""Another reading of kept attributions: figures against slow oracles, and a run that is scored again without models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.gridvqa_x import GridVQAX
from medground.benchmarks.gridvqa_x.protocol import CAUSES, NAMED, Protocol, resolve_protocol
from medground.benchmarks.gridvqa_x.rows import local_row
from medground.commands.compare import compare_runs
from medground.commands.score import score_run
from medground.config import parse_run_file
from medground.errors import ConfigError
from medground.explainers.base import Attribution
from medground.explainers.dime import Dime
from medground.explainers.occlusion import Occlusion
from medground.models.answerers.gridvqa_rule import RuleExecutor
from medground.running.reading import read_rows
from medground.session import assemble, run_session
from medground.worlds.gridvqa.checker import check
from medground.worlds.gridvqa.masks import text_mask
from medground.worlds.gridvqa.sources import Drawn
from medground.worlds.gridvqa.world import Scene

EXPLAINERS = [{"name": "occlusion"}, {"name": "dime", "perturbations": 64}]
HEARD = {"said": "1", "right": True, "target": "1"}


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    source = Drawn("pure", (0.7,), 3, 5, "strict", 0)
    drawn = [scene for bucket in source.buckets for scene in source.scenes(bucket)]
    return [s for s in drawn if check(s.things, s.question, s.grid).causal and s.bucket.depth > 1]


def signed(scene: Scene, seed: int) -> Attribution:
    rng = np.random.default_rng(seed)
    return Attribution(rng.normal(size=(5, 5)), rng.normal(size=len(scene.question.text.split())), 0)


def test_the_positive_reading_counts_what_speaks_for_the_answer_alone(scenes: list[Scene]) -> None:
    for seed, scene in enumerate(scenes[:20]):
        maps = signed(scene, seed)
        row = local_row(scene, "m", maps, HEARD, NAMED["positive"])
        causal = check(scene.things, scene.question, scene.grid).causal
        inside = [max(maps.image[y, x], 0) for x, y in causal]
        everywhere = [max(value, 0) for value in maps.image.ravel()]
        assert row["image_mass"] == pytest.approx(sum(inside) / sum(everywhere))
        assert row["image_map"] == pytest.approx(maps.image.ravel().tolist())
        assert row["image_mass"] != pytest.approx(local_row(scene, "m", maps, HEARD)["image_mass"])


def test_the_released_reading_leaves_out_the_words_that_the_released_masks_leave_out(scenes: list[Scene]) -> None:
    scene = next(s for s in scenes if "left of" in s.question.text)
    maps = signed(scene, 1)
    size = np.abs(maps.text)
    plain, released = (local_row(scene, "m", maps, HEARD, NAMED[name]) for name in ("causes", "released"))
    words = scene.question.text.split()
    marked = sum(s for s, inside in zip(size, text_mask(scene.question.text, "released"), strict=True) if inside)
    assert released["text_mass"] == pytest.approx(marked / size.sum()) == plain["text_mass_released"]
    lost = sum(s for s, word in zip(size, words, strict=True) if word in {"left", "right", "of"})
    assert plain["text_mass"] - released["text_mass"] == pytest.approx(lost / size.sum())
    assert released["image_mass"] == plain["image_mass"]


def test_a_map_that_speaks_only_against_the_answer_is_flat_under_the_positive_reading(scenes: list[Scene]) -> None:
    against = Attribution(-np.ones((5, 5)) - np.eye(5), None, 0)
    plain, positive = (local_row(scenes[0], "m", against, HEARD, NAMED[name]) for name in ("causes", "positive"))
    assert not plain["image_flat"]
    assert positive["image_flat"]
    assert positive["image_mass"] == 0.0


def test_how_a_map_is_binarised_is_a_choice(scenes: list[Scene]) -> None:
    scene, top = scenes[3], resolve_protocol({"binarise": "top_k"})
    maps = signed(scene, 3)
    mask = np.zeros((5, 5), bool)
    for x, y in check(scene.things, scene.question, scene.grid).causal:
        mask[y, x] = True
    largest = np.zeros(25, bool)
    largest[np.argsort(-np.abs(maps.image).ravel())[: mask.sum()]] = True
    largest = largest.reshape(5, 5)
    expected = (largest & mask).sum() / (largest | mask).sum()
    assert local_row(scene, "m", maps, HEARD, top)["image_iou"] == pytest.approx(expected)


def test_protocols_are_named_or_made_and_keep_no_borrowed_name() -> None:
    assert resolve_protocol("causes") is CAUSES
    assert resolve_protocol({}) == CAUSES
    changed = resolve_protocol({"base": "released", "sign": "positive"})
    assert (changed.name, changed.words, changed.sign) == ("released (changed)", "released", "positive")
    with pytest.raises(ConfigError, match="no protocol named 'cause'"):
        resolve_protocol("cause")
    with pytest.raises(ConfigError, match="needs a name of its own"):
        resolve_protocol({"name": "causes", "sign": "positive"})
    with pytest.raises(ConfigError, match="protocol is not right") as caught:
        resolve_protocol({"sgn": "positive"})
    assert "sgn" in str(caught.value.where)
    assert all(isinstance(p, Protocol) and p.name == name for name, p in NAMED.items())


def _session(**parameters: Any) -> Any:
    bench = {"name": "gridvqa_x", "per_bucket": 2, "replicates": 0, "explainers": EXPLAINERS} | parameters
    models = [{"name": "gridvqa_rule"}]
    return assemble(parse_run_file({"name": "grid", "benchmark": bench, "models": models, "engine": {"workers": 0}}))


def test_a_run_is_scored_again_without_model_and_explainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = GridVQAX.tasks
    monkeypatch.setattr(GridVQAX, "tasks", lambda self: every(self)[4:7])
    folder = tmp_path / "grid"
    first = run_session(_session(), folder)
    before = (first.reading / "summary.json").read_bytes()
    with monkeypatch.context() as nobody:
        nobody.setattr(RuleExecutor, "logits", _refuse)
        nobody.setattr(RuleExecutor, "pair_logits", _refuse, raising=False)
        for cls in (Occlusion, Dime):
            nobody.setattr(cls, "explain", _refuse)
        other = score_run(folder, "protocol", "positive")
    assert other.reading == "positive"
    assert other.folder != first.reading
    assert (first.reading / "summary.json").read_bytes() == before
    masses = [
        pl.concat([read_rows(folder, path, reading.name) for path in _paths()])
        .filter(pl.col("method") == "dime")["image_mass"]
        .mean()
        for reading in (first.reading, other.folder)
    ]
    cell = next(c for c in other.summary.cells if (c.metric, c.scope, c.method) == ("image_mass", "all", "dime"))
    assert cell.value == pytest.approx(masses[1])
    assert masses[0] != masses[1]
    assert "positive" in json.loads((other.folder / "summary.json").read_text())["data"]["protocol"]
    fresh = run_session(_session(protocol="positive"), tmp_path / "fresh")
    assert fresh.summary.to_json()["cells"] == other.summary.to_json()["cells"]
    compared = compare_runs(folder, choice=("protocol", "positive"))
    assert "positive" in str(compared.data["settings"]["protocol"])
    assert {record["metric"] for record in compared.data["records"]} >= {"image_mass", "text_mass"}


def _paths() -> list[tuple[str, ...]]:
    return [task.path for task in _session().benchmark.tasks()]


def _refuse(*_: object, **__: object) -> None:
    raise AssertionError("nobody may be asked")
