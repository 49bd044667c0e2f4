"""Commands made from functions: options, words, datasets and benchmarks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from typer.testing import CliRunner

from medground.cli import app
from medground.commands.offers import command_of
from medground.datasets.base import Dataset
from medground.datasets.phantom import Phantom
from medground.errors import ConfigError


def draw(
    out: Path, *, colour: Literal["red", "blue"] = "red", count: int = 2, seed: int = 0, loud: bool = False
) -> str:
    """Draw something.

    More is told here.

    Args:
        out: where.
        colour: of the thing.
        count: how many.
        seed: of chance.
        loud: whether to shout.
    """
    return f"{out.name} {colour} {count} {seed} {loud}"


def show(*, dataset: Dataset, far: Path | None = None) -> str:
    """Show a dataset."""
    assert isinstance(dataset, Phantom)
    return f"{dataset.name} {dataset.count} {far}"


def called(function: Callable[..., object], *words: str) -> None:
    command_of("it", function).main(list(words), standalone_mode=False)


def test_keywords_become_options_with_their_words(capsys: pytest.CaptureFixture[str]) -> None:
    called(draw, "folder", "--colour", "blue", "--count", "3", "--loud")
    assert capsys.readouterr().out == "folder blue 3 0 True\n"
    called(draw, "--help")
    told = " ".join(capsys.readouterr().out.split())
    for words in ("Draw something.", "FOLDER", "of the thing. [default: red]", "red|blue", "x>=1", "x>=0"):
        assert words in told
    assert "More is told" not in told


def test_a_dataset_is_built_from_its_name_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    called(show, "--option", "cases=3", "--option", "size=64")
    assert capsys.readouterr().out == "phantom 3 None\n"
    with pytest.raises(ConfigError, match="has no parameter 'nonsense'"):
        called(show, "--option", "nonsense=1")


def test_every_benchmark_builds_through_its_door(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["build", "--help"]).output
    for name in ("phantom", "cxreasondial", "gridvqa_x", "heal_medvqa", "medical_checklist"):
        assert name in told
    out = tmp_path / "h"
    changes = ["--option", "cases=4", "--option", "size=64", "--set", "quartets=0"]
    result = CliRunner().invoke(app, ["build", "heal_medvqa", str(out), *changes])
    assert result.exit_code == 0, result.output
    assert json.loads((out / "build.json").read_text())
    assert CliRunner().invoke(app, ["build", "xbench", str(out)]).exit_code != 0


def test_an_option_of_several_values_is_given_several_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--per-bucket", "1", "--depths", "1", "--depths", "2", "--types", "A", "--forms", "count"]
    done = CliRunner().invoke(app, ["build", "gridvqa_x", "scenes", *options])
    assert done.exit_code == 0, done.output
    plan = json.loads((tmp_path / "scenes/plan.json").read_text())
    assert plan["only"]["depths"] == [1, 2]
    assert plan["only"]["types"] == ["A"]
    everything = CliRunner().invoke(app, ["build", "gridvqa_x", "whole", "--per-bucket", "1"])
    assert everything.exit_code == 0, everything.output
    assert len((tmp_path / "whole/scenes.jsonl").read_text().splitlines()) > 10


def test_a_benchmark_offers_its_recipe_by_a_door(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from medground.training import gridvqa, gridvqa_second

    trained: list[tuple[object, ...]] = []
    for module in (gridvqa, gridvqa_second):
        monkeypatch.setattr(module, "train", lambda *given, module=module: trained.append((module, *given)))
    names = CliRunner().invoke(app, ["train", "--help"]).stdout
    for name in ("reference", "chat", "loba", "instruct", "gridvqa_x"):
        assert name in names
    out = tmp_path / "spurious.safetensors"
    result = CliRunner().invoke(app, ["train", "gridvqa_x", "--out", str(out), "--variant", "spurious"])
    assert (result.exit_code, result.stdout.strip()) == (0, str(out))
    assert trained == [(gridvqa_second, "spurious", out)]
    told = " ".join(CliRunner().invoke(app, ["train", "gridvqa_x", "--help"]).stdout.split())
    assert "which of the pair" in told
    # A benchmark without such a door has no such command.
    assert CliRunner().invoke(app, ["train", "xbench", "--out", str(out)]).exit_code != 0
    assert CliRunner().invoke(app, ["train", "reference", "--help"]).exit_code == 0
