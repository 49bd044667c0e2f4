from __future__ import annotations

import pytest

from medground.running.redact import REDACTED, redact


@pytest.mark.parametrize(
    "key",
    ["api_key", "apiKey", "API-KEY", "hf_token", "token", "password", "client_secret", "Authorization", "access_key"],
)
def test_secrets_are_replaced_wherever_they_are(key):
    assert redact({"models": [{key: "sk-1", "name": "m"}]}) == {"models": [{key: REDACTED, "name": "m"}]}


@pytest.mark.parametrize(
    "setting",
    [{"tokenizer": "bert"}, {"max_tokens": 5}, {"pad_token": 0}, {"key": "a"}, {"monkey": "b"}, {"token": None}],
)
def test_settings_stay(setting):
    assert redact(setting) == setting


def test_a_login_is_taken_out_of_an_address():
    assert redact(["https://me:pw@host/v1", ("plain@mail",)]) == [f"https://{REDACTED}@host/v1", ["plain@mail"]]
