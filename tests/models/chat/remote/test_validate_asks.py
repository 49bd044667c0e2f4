"""``medground validate`` asks nobody behind a server elsewhere unless it is told to: three cases may cost money too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from medground.commands.validate import validate_file
from medground.models.chat.remote import upload
from medground.models.chat.remote.upload import asks_elsewhere
from medground.registry import Part


@pytest.fixture
def run_file(stub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a run file; of the two names of this machine, the numbers stand for a server elsewhere."""
    monkeypatch.setattr(upload, "is_here", lambda url: "localhost" in url)
    here = stub.url.replace("127.0.0.1", "localhost")

    def write(model: str, judge: str) -> Path:
        places = {"here": here, "away": stub.url}
        data = {
            "name": "r",
            "benchmark": {"name": "cxreasondial", "phantoms": 1, "size": 64, "canaries": 0.0, "judge": "llm"},
            "models": [{"name": "api_chat", "base_url": places[model], "model": "stub-1", "cache": "none"}],
            "roles": {"judges": {"name": "api_chat", "base_url": places[judge], "model": "stub-2", "cache": "none"}},
        }
        path = tmp_path / "run.yaml"
        path.write_text(yaml.safe_dump(data))
        return path

    return write


def asked(stub: Any) -> set[str]:
    return {body["model"] for body in stub.bodies}


@pytest.mark.parametrize(
    ("model", "judge", "told"),
    [
        ("here", "here", {"stub-1", "stub-2"}),
        ("here", "away", {"stub-1"}),
        ("away", "here", set()),
        ("away", "away", set()),
    ],
)
def test_whoever_is_elsewhere_is_asked_only_on_demand(
    stub: Any, answered: Any, run_file: Any, model: str, judge: str, told: set[str]
) -> None:
    stub.answer = lambda n, body: {"body": answered(model=body["model"])}
    checks = validate_file(run_file(model, judge))
    assert asked(stub) == told
    lines = [line for check in checks for line in check.details]
    assert any("--ask asks" in line for line in lines) == ("away" in (model, judge))
    validate_file(run_file(model, judge), ask=True)
    assert asked(stub) == {"stub-1", "stub-2"}


def test_a_model_inside_another_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Remote:
        remote = True

    inner = Part("api_chat", Remote, {"base_url": "https://api.example.com/v1"})
    assert asks_elsewhere(object, {"of": Part("blind", object, {"of": inner})}) == "https://api.example.com/v1"
    assert asks_elsewhere(object, {"by": Part("api_chat", Remote, {"base_url": "http://127.0.0.1:1/v1"})}) is None
    assert asks_elsewhere(object, {}) is None
