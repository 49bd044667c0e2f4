"""The golden faults of a server: requests seen, outcome, waits, cache, re-asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from medground.models.base import GenerationOptions, Message
from medground.models.chat.api_chat import ApiChat
from medground.spending import StopRunError

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "chat" / "server_faults.json").read_text())
SCHEMA = {
    "type": "object",
    "properties": {
        "coverage": {"enum": [0, 1]},
        "faithfulness": {"enum": [0, 1]},
        "reason": {"type": "string"},
        "mismatches": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["coverage", "faithfulness", "reason", "mismatches"],
    "additionalProperties": False,
}
STATUS = {"ok": "ok", "unreadable": "parse_error"}
SLOW = {"slow_forever", "slow_then_fast", "rate_limit_forever", "rate_limit_twice"}


def model(url: str, cache: Path, client: dict[str, Any]) -> ApiChat:
    return ApiChat(
        base_url=url,
        model="stub-judge-1",
        max_tries=client.get("max_tries", 4),
        # Delays of the golden server are whole seconds: time runs four times as fast in this test.
        timeout=client.get("timeout_s", 10) / 4,
        max_wait=client.get("max_wait_s", 60),
        base_wait=0.005,
        cache=cache,
    )


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_golden_fault(case: dict[str, Any], stub: Any, tmp_path: Path) -> None:
    client, replies = case["client"], case["server_replies"]

    def answer(number: int, body: dict[str, Any]) -> dict[str, Any]:
        reply = dict(replies[min(number, len(replies) - 1)])
        reply["delay_s"] = reply.get("delay_s", 0) / 4
        return reply

    stub.answer = answer
    stub.models = [entry["id"] for entry in GOLDEN["models"]["data"]]
    chat = model(stub.url, tmp_path / "cache.sqlite3", client)
    conversation = [Message("user", "judge this")]
    outcomes = []
    for _ in range(client.get("calls", 1)):
        if client.get("run_stops"):
            with pytest.raises(StopRunError) as caught:
                chat.reply([conversation], GenerationOptions(schema=SCHEMA))
            if case["name"] == "model_unknown":
                assert "stub-judge-2" in str(caught.value)
            with pytest.raises(StopRunError):
                chat.reply([conversation], GenerationOptions(schema=SCHEMA))
        else:
            outcomes += chat.reply([conversation], GenerationOptions(schema=SCHEMA))
    assert stub.seen == client["requests_seen"]
    gaps = [after - before for before, after in zip(stub.times, stub.times[1:], strict=False)]
    assert all(gap >= least - 0.01 for gap, least in zip(gaps, client["minimum_waits_s"], strict=False))
    assert (len(chat._cache) > 0) == client["stored_in_cache"]
    if client.get("run_stops"):
        chat.close()
        return
    last = outcomes[-1]
    assert STATUS.get(last.outcome, "api_error") == client["judge_status"]
    expected = client["verdict"]
    assert {name: (last.data or {}).get(name) for name in expected} == expected
    if "first_call" in client:
        assert STATUS.get(outcomes[0].outcome, "api_error") == client["first_call"]["judge_status"]
        assert outcomes[0].data is None
    if "detail" in client:
        assert client["detail"] in last.reason
    chat.close()
    assert chat.ledger.record().get("re_asks", 0) == client.get("re_asks", 0)
    if case["name"] == "no_usage_field":
        assert last.usage == {}
        assert chat.ledger.record()["replies_without_usage"] == 1
    if case["name"] == "bad_request":
        assert "unknown parameter temperature" in last.reason


def test_golden_concurrency(stub: Any, answered: Any, tmp_path: Path) -> None:
    stated = GOLDEN["concurrency"]

    def answer(number: int, body: dict[str, Any]) -> dict[str, Any]:
        text = body["messages"][0]["content"]
        return {"status": 200, "delay_s": stated["delay_s"], "body": answered(text)}

    stub.answer = answer
    chat = ApiChat(base_url=stub.url, model="m", concurrency=stated["limit"], cache=tmp_path / "c.sqlite3")
    asked = [[Message("user", f"question {i}")] for i in range(stated["requests"])]
    assert [reply.text for reply in chat.reply(asked)] == [turn[0].text for turn in asked]
    chat.close()
    assert stub.most_going == stated["limit"]
    assert stub.seen == stated["requests"]
