"""The benchmark on phantoms: matchers, probabilities of A and B, prose under all policies, failures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from medground.benchmarks.base import Entry, Setting, evaluate
from medground.benchmarks.medical_checklist import MedicalChecklist, instruction, items as item_files, phantom
from medground.benchmarks.medical_checklist.tasks import way_of
from medground.benchmarks.results import Cells, Summary
from medground.errors import ConfigError, ModelError
from medground.models.base import MatchScores, ModelInfo, Reply
from medground.models.radiology.reference import Reference


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return phantom.build(tmp_path_factory.mktemp("made") / "p", phantom.Recipe(pairs=16, size=96, seed=11))


class Prose:
    """Says A, B or neither, by the prompt alone: a picture changes nothing."""

    name = "prose"
    info = ModelInfo(title="prose")

    def reply(self, conversations: Sequence[Any], options: Any = None) -> list[Reply]:
        said = ["Caption A", "I see a chest film.", "caption b.", "Both fit."]
        return [Reply(said[len(c[0].text) % 4]) for c in conversations]


class AlwaysA:
    """Puts 90 % on A."""

    name = "always_a"
    info = ModelInfo(title="always A")

    def choose(self, conversations: Sequence[Any], choices: Sequence[Any]) -> list[np.ndarray]:
        assert all(list(c) == ["Caption A", "Caption B"] for c in choices)
        return [np.log([0.9, 0.1]) for _ in conversations]


class Truncating:
    """A matcher that reads the first word alone: every pair is a tie."""

    name = "truncating"
    info = ModelInfo(title="truncating")
    calls = 0

    def match(self, images: Sequence[Any], captions: Sequence[Sequence[str]]) -> MatchScores:
        assert all(len(set(c)) == len(c) for c in captions)
        return MatchScores(np.array([[len(t.split()[0]) * 0.1 for t in c] for c in captions]), 10.0, "contrastive")


class Limited:
    """Reads twenty characters, says so, and gives what lies beyond a little noise that must not count."""

    name = "limited"
    info = ModelInfo(title="limited")

    def match(self, images: Sequence[Any], captions: Sequence[Sequence[str]]) -> MatchScores:
        read = [[t[:20] for t in own] for own in captions]
        texts = np.array([[own.index(t) for t in own] for own in read])
        noise = np.array([[place * 1e-3 for place, _ in enumerate(own)] for own in captions])
        return MatchScores(noise, 100.0, "contrastive", texts)


def run(folder: Path, cls: type[Any], **more: Any) -> Summary:
    benchmark = MedicalChecklist(build=folder, **more)
    benchmark.bind(Setting(models=[Entry(cls.name, cls.name, cls, {})], batch_size=8))
    rows = {}
    for task in benchmark.tasks():
        measured = evaluate(task, {"model": task.roles["model"].build()})
        rows[task.path] = pl.DataFrame([r for m in measured for r in m.rows], schema=task.schema)
    return benchmark.summarise(rows)


def value(summary: Summary, metric: str, scope: str = "all") -> float | None:
    cell = Cells(summary.cells).one(metric=metric, scope=scope, group="")
    return cell.value if cell else None


def test_prose_is_never_right_by_accident(folder: Path) -> None:
    summary = run(folder, Prose)
    coverage = value(summary, "coverage")
    assert 0 < coverage < 1
    assert value(summary, "accuracy_excluded") * coverage == pytest.approx(value(summary, "accuracy_wrong"))
    assert value(summary, "accuracy_half") == pytest.approx(value(summary, "accuracy_wrong") + (1 - coverage) / 2)
    # In both orders and on mirrored pairs a model that does not look comes to exactly one half.
    assert value(summary, "accuracy") == pytest.approx(0.5)
    assert value(summary, "brier") is None
    (verdict,) = summary.verdicts
    assert verdict.answer in ("no", "cannot be told")
    assert "unparsed" in verdict.notes


def test_a_letter_wins_nothing(folder: Path) -> None:
    summary = run(folder, AlwaysA)
    assert value(summary, "accuracy") == 0.5
    assert value(summary, "flip_rate") == 1
    assert value(summary, "consistent") == 0
    assert value(summary, "position_bias") == pytest.approx(0.5)
    assert value(summary, "brier") == pytest.approx(0.25)
    single = run(folder, AlwaysA, order="single")
    assert value(single, "accuracy") == pytest.approx(0.5, abs=0.01)
    assert value(single, "flip_rate") is None


def test_equal_scores_are_ties(folder: Path) -> None:
    summary = run(folder, Truncating)
    cell = Cells(summary.cells).one(metric="accuracy", scope="all", group="")
    assert cell.value == pytest.approx(0.5)
    assert cell.counts["ties"] == cell.counts["identical"]
    assert cell.counts["ties"] > 20
    assert value(summary, "pair_accuracy", "pairs") == 0


def test_a_term_beyond_the_limit_is_counted_and_scored_half(folder: Path) -> None:
    items = item_files.read(folder / "items.jsonl")
    beyond = sum(i.positive[:20] == i.negative[:20] for i in items)
    cell = Cells(run(folder, Limited).cells).one(metric="accuracy", scope="all", group="")
    assert 0 < beyond < len(items)
    assert cell.counts["beyond_limit"] == cell.counts["identical"] == cell.counts["ties"] == beyond
    # The noise favours the caption that stands second; beyond the limit it has no say.
    assert cell.value * len(items) % 1 == beyond / 2 % 1


def test_the_reference_model_sees(folder: Path) -> None:
    summary = run(folder, Reference, controls=("blank",))
    assert value(summary, "accuracy") > 0.65
    assert value(summary, "accuracy_blank") == pytest.approx(0.5)
    assert value(summary, "blind") == pytest.approx(0.5)
    assert value(summary, "gain_blind") > 0.1
    (verdict,) = summary.verdicts
    assert verdict.answer == "yes"
    assert "needs the image" in summary.notes[0]
    assert set(summary.tables) >= {"accuracy", "published", "audit"}
    assert len(summary.to_json()["cells"]) == len(summary.cells)


def test_a_missing_picture_fails_alone(folder: Path, tmp_path: Path) -> None:
    benchmark = MedicalChecklist(build=folder, images=tmp_path)
    benchmark.bind(Setting(models=[Entry("a", "a", AlwaysA, {})]))
    (task,) = benchmark.tasks()
    item = task.items()[0]
    (row,) = task.measurer().failed(item, "missing").rows
    assert (row["outcome"], row["credit"], row["p"]) == ("unreadable", None, None)
    with pytest.raises(Exception, match="missing"):
        task.open({"model": AlwaysA()}).load(item)


def test_a_model_that_cannot_is_refused(folder: Path) -> None:
    benchmark = MedicalChecklist(build=folder)
    benchmark.bind(Setting(models=[Entry("x", "x", dict, {})]))
    with pytest.raises(ModelError, match="neither"):
        benchmark.tasks()[0].open({"model": object()})
    with pytest.raises(ModelError, match="like that"):
        way_of(AlwaysA(), "reply")
    assert way_of(AlwaysA()) == "choose"
    with pytest.raises(ConfigError, match="prompt"):
        MedicalChecklist(template="literal-9")
    with pytest.raises(ConfigError, match="no build"):
        _ = MedicalChecklist(build=folder / "none").notes()


def test_instruction_conversations(folder: Path, tmp_path: Path) -> None:
    held = item_files.read(folder / "items.jsonl")
    n = instruction.write(tmp_path / "t.json", held, "T047")
    made = list(instruction.conversations(held, "T047"))
    assert n == len(made) == 2 * sum(i.tui == "T047" for i in held)
    assert {c["conversations"][1]["value"] for c in made} == {"Caption A", "Caption B"}
    rest = instruction.held_out(held, "T047")
    assert rest
    assert all(i.tui != "T047" for i in rest)
    assert {i.cluster for i in rest}.isdisjoint(i.cluster for i in held if i.tui == "T047")
    with pytest.raises(ConfigError, match="type"):
        list(instruction.conversations(held, "T999"))
