"""A budget of the whole run: all models together, all sessions together, never passed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from medground.config import parse_run_file
from medground.errors import ConfigError
from medground.models.base import Message
from medground.models.chat.api_chat import ApiChat
from medground.running.ledger import read_ledger
from medground.session import assemble, run_session
from medground.spending import Budget, StopRunError, budget_of_the_run, within

A_REPLY = 2500
"""Tokens of a reply in the whole run."""


@pytest.fixture
def chat(stub: Any) -> Iterator[Any]:
    models: list[ApiChat] = []

    def make(**more: Any) -> ApiChat:
        models.append(ApiChat(**{"base_url": stub.url, "model": "stub-1", "cache": "none"} | more))
        return models[-1]

    yield make
    for model in models:
        model.close()


BOUND = 9_000
"""Of a run: the greatest cost of some requests, fewer than its two models make."""


def ask(text: str) -> tuple[Message, ...]:
    return (Message("user", text),)


def test_models_that_are_made_for_a_run_share_its_budget(stub: Any, chat: Any) -> None:
    budget = Budget(tokens=2_000, where="engine.budget")
    with within(budget):
        models = [chat(max_new_tokens=100, concurrency=4) for _ in range(2)]
    assert budget_of_the_run() is None
    stopped: list[str] = []

    def use(model: Any, name: str) -> None:
        try:
            model.reply([ask(f"{name} {i}") for i in range(200)])
        except StopRunError as error:
            stopped.append(str(error.where))

    threads = [threading.Thread(target=use, args=(m, n)) for m, n in zip(models, "ab", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stopped == ["engine.budget_tokens"] * 2
    spent = [m.ledger.record()["prompt_tokens"] + m.ledger.record()["completion_tokens"] for m in models]
    # The last request is refused where it could pass the bound: nothing is spent beyond, and little is left.
    assert 2_000 - 2 * (100 + 40) - 8 * (100 + 40) < sum(spent) <= 2_000
    assert min(spent) > 0


def test_a_request_that_the_run_refuses_takes_nothing_from_the_models_own_budget(stub: Any, chat: Any) -> None:
    with within(Budget(tokens=50, where="engine.budget")):
        model = chat(max_new_tokens=100, budget_tokens=10_000)
    with pytest.raises(StopRunError, match="could be passed"):
        model.reply([ask("a")])
    own, run = model._budgets
    assert own._tokens == run._tokens == 0
    assert stub.seen == 0


def test_money_needs_prices_in_one_currency(chat: Any, tmp_path: Path) -> None:
    def prices(currency: str) -> Path:
        path = tmp_path / f"{currency}.yaml"
        models = "{stub-1: {prompt: 1, completion: 1}}"
        path.write_text(f"{{date: 2026-11-01, currency: {currency}, models: {models}}}")
        return path

    with within(Budget(money=1.0, where="engine.budget")):
        chat(prices=prices("USD"))
        with pytest.raises(ConfigError, match="two currencies"):
            chat(prices=prices("EUR"))
        with pytest.raises(ConfigError, match="prices of every model"):
            chat(base_url="https://api.example.com/v1")
        chat()  # on this machine


def test_a_run_goes_on_within_what_its_sessions_have_left(stub: Any, answered: Any, tmp_path: Path) -> None:
    usage = {"prompt_tokens": A_REPLY - 2, "completion_tokens": 2}
    stub.answer = lambda n, b: {"body": answered() | {"usage": usage}}

    def run(tokens: int) -> Any:
        model = {"name": "api_chat", "base_url": stub.url, "model": "stub-1", "cache": str(tmp_path / "c.sqlite3")}
        data = {
            "name": "r",
            "benchmark": {"name": "cxreasondial", "phantoms": 1, "size": 64, "canaries": 0.0},
            "models": [model | {"label": "one"}, model | {"label": "two", "max_new_tokens": 200}],
            "engine": {"workers": 0, "torch_threads": 1, "budget_tokens": tokens},
        }
        return run_session(assemble(parse_run_file(data)), tmp_path / "run")

    def spent() -> int:
        counts = [c for session in read_ledger(tmp_path / "run") for c in session["asked"].values()]
        return sum(c.get("prompt_tokens", 0) + c.get("completion_tokens", 0) for c in counts)

    with pytest.raises(StopRunError, match="budget of tokens") as caught:
        run(BOUND)
    assert caught.value.where == "engine.budget_tokens"
    assert 0 < spent() <= BOUND
    first, asked = spent(), stub.seen
    # The same budget again: what was spent is spent, and what is kept is not paid for twice.
    with pytest.raises(StopRunError, match="budget of tokens"):
        run(BOUND)
    assert spent() <= BOUND
    assert (stub.seen - asked) * A_REPLY == spent() - first
    assert run(1_000_000).summary.cells
