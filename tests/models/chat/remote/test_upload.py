"""Pictures that may not be passed on stay on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from medground.benchmarks.medical_checklist.phantom import Recipe, build_into
from medground.config import parse_run_file, read_run_file
from medground.errors import ConfigError
from medground.models.chat.remote.upload import is_here
from medground.session import assemble


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://localhost/v1", True),
        ("http://[::1]:1/v1", True),
        ("https://api.example.com/v1", False),
        ("http://localhost.example.com/v1", False),
        ("http://10.0.0.2/v1", False),
    ],
)
def test_what_is_on_this_machine(url: str, here: bool) -> None:
    assert is_here(url) == here


def told(run_file: Path, model: str) -> Any:
    text = run_file.read_text()
    run_file.write_text(text.replace("{name: baseline_random}", model))
    return assemble(read_run_file(run_file))


ELSEWHERE = "base_url: 'https://api.example.com/v1', model: m, cache: none"


@pytest.mark.parametrize(
    "model",
    [
        f"{{name: chat_grounder, of: {{name: api_chat, {ELSEWHERE}}}}}",
        f"{{name: blind, picture: other_case, of: {{name: chat_grounder, of: {{name: api_chat, {ELSEWHERE}}}}}}}",
    ],
)
def test_a_run_that_would_send_pictures_away_is_refused(run_file: Path, model: str) -> None:
    with pytest.raises(ConfigError, match="would send pictures of manifest") as caught:
        told(run_file, model)
    assert "allow_upload: true" in str(caught.value)
    assert caught.value.where == "api.example.com"


@pytest.mark.parametrize(
    "model",
    [
        f"{{name: chat_grounder, of: {{name: api_chat, allow_upload: true, {ELSEWHERE}}}}}",
        "{name: chat_grounder, of: {name: api_chat, base_url: 'http://127.0.0.1:1/v1', model: m, cache: none}}",
        f"{{name: blind, picture: grey, of: {{name: chat_grounder, of: {{name: api_chat, {ELSEWHERE}}}}}}}",
    ],
)
def test_a_run_that_may_or_that_sends_nothing_is_not(run_file: Path, model: str) -> None:
    assert len(told(run_file, model).models) == 2


AWAY = {"name": "api_chat", "base_url": "https://api.example.com/v1", "model": "m", "cache": "none"}


def assembled(benchmark: dict[str, Any], model: dict[str, Any], **more: Any) -> Any:
    return assemble(parse_run_file({"name": "r", "benchmark": benchmark, "models": [model], **more}))


@pytest.fixture
def checklist(tmp_path: Path) -> Path:
    """A build of two phantom pairs whose licence can be changed."""
    folder = tmp_path / "built"
    build_into(folder, Recipe(2, 64, 0))
    return folder


def test_every_benchmark_names_the_pictures_that_stay_here(
    tiny_manifest: Path, checklist: Path, tmp_path: Path
) -> None:
    items = checklist / "items.jsonl"
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "build.json").write_bytes((checklist / "build.json").read_bytes())
    (closed / "items.jsonl").write_text(items.read_text().replace('"CC0"', '"CC BY-NC"'))
    dialogues = tmp_path / "own.jsonl"
    dialogues.write_text("")
    kept = [
        ({"name": "heal_medvqa", "datasets": [{"name": "manifest", "root": str(tiny_manifest)}]}, "manifest"),
        ({"name": "medical_checklist", "build": str(closed)}, "closed"),
        ({"name": "cxreasondial", "dialogues": str(dialogues)}, "own"),
    ]
    for benchmark, named in kept:
        with pytest.raises(ConfigError, match=f"would send pictures of {named}"):
            assembled(benchmark, AWAY)
        assembled(benchmark, AWAY | {"allow_upload": True})
        assembled(benchmark, AWAY | {"images": "ignored"})
    free = [
        {"name": "heal_medvqa", "datasets": [{"name": "phantom"}]},
        {"name": "medical_checklist"},
        {"name": "medical_checklist", "build": str(checklist)},
        {"name": "cxreasondial"},
        {"name": "cxreasondial", "dialogues": str(dialogues), "pictures": False},
    ]
    for benchmark in free:
        assembled(benchmark, AWAY)


def test_a_judge_that_sees_words_alone_sends_no_picture(tmp_path: Path) -> None:
    dialogues = tmp_path / "own.jsonl"
    dialogues.write_text("")
    benchmark = {"name": "cxreasondial", "dialogues": str(dialogues), "judge": "llm"}
    here = AWAY | {"base_url": "http://127.0.0.1:1/v1"}
    assembled(benchmark, here, roles={"judges": AWAY})
