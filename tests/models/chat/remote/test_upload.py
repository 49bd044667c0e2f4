"""Pictures that may not be passed on stay on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from medground.config import read_run_file
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
