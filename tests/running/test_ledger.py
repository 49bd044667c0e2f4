"""What sessions asked of servers: a line each, written whenever a task ends."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from medground.running.ledger import NAME, SessionLedger, read_ledger
from medground.storage import FolderStorage


def asked(**counts: float) -> SimpleNamespace:
    return SimpleNamespace(ledger=SimpleNamespace(record=lambda: counts))


def test_sessions_stand_one_below_another(tmp_path: Path) -> None:
    first = SessionLedger(FolderStorage(tmp_path), "monday", "rules")
    first.put("a", asked(requests=3, waited_s=0.5))
    first.put("a", asked(requests=5, waited_s=0.5))
    first.put("judge", asked(requests=1))
    second = SessionLedger(FolderStorage(tmp_path), "tuesday", "llm")
    second.put("a", asked(cache_hits=5))
    counts = {"a": {"requests": 5, "waited_s": 0.5}, "judge": {"requests": 1}}
    assert read_ledger(tmp_path) == [
        {"started": "monday", "reading": "rules", "asked": counts},
        {"started": "tuesday", "reading": "llm", "asked": {"a": {"cache_hits": 5}}},
    ]


def test_who_counts_nothing_leaves_no_file(tmp_path: Path) -> None:
    ledger = SessionLedger(FolderStorage(tmp_path), "monday", "rules")
    for player in (object(), asked(), asked(waited_s=0.0, currency="USD")):
        ledger.put("a", player)
    assert not (tmp_path / NAME).exists()
    assert read_ledger(tmp_path) == []
