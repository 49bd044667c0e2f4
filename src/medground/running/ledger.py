"""What the sessions of a run asked of servers: a line a session and reading in ``ledger.jsonl``.

Whoever is asked keeps the count itself (an attribute ``ledger`` with ``record()``): requests, tokens, replies kept from
before, waits, money. The line is written anew whenever a task ends, so that a kill costs the count of one task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medground.running.options import Options
from medground.spending import Budget
from medground.storage import Storage

NAME = "ledger.jsonl"


class SessionLedger:
    """The line of one session.

    Args:
        storage: of the run.
        started: when the session began.
        reading: folder of the reading that it makes.
        key: of the file in the storage.
    """

    def __init__(self, storage: Storage, started: str, reading: str, key: str = NAME) -> None:
        self._storage, self._key = storage, key
        self._before = storage.get(key) if storage.exists(key) else b""
        self._session = {"started": started, "reading": reading}
        self._asked: dict[str, Mapping[str, Any]] = {}

    @property
    def earlier(self) -> list[dict[str, Any]]:
        """One record a session before this one; see :func:`read_ledger`."""
        return [json.loads(line) for line in self._before.decode().splitlines()]

    def budget(self, options: Options) -> Budget | None:
        """Return what the run may still cost; what earlier sessions asked for is spent. None: no bound."""
        if options.budget_tokens is None and options.budget_money is None:
            return None
        budget = Budget(options.budget_tokens, options.budget_money, where="engine.budget")
        for session in self.earlier:
            for counts in session["asked"].values():
                tokens = counts.get("prompt_tokens", 0) + counts.get("completion_tokens", 0)
                budget.spend(tokens, counts.get("money", 0.0))
        return budget

    def put(self, label: str, player: Any) -> None:
        """Write what was asked of a player so far; one that counts nothing leaves no trace."""
        ledger = getattr(player, "ledger", None)
        counts = ledger.record() if ledger is not None else {}
        if not any(isinstance(count, (int, float)) and count for count in counts.values()):
            return
        self._asked[label] = counts
        line = json.dumps(self._session | {"asked": self._asked}, ensure_ascii=True)
        self._storage.put(self._key, self._before + line.encode() + b"\n")


def read_ledger(folder: Path) -> list[dict[str, Any]]:
    """Return one record a session that asked a server: ``started``, ``reading`` and ``asked`` (label -> counts).

    Raises:
        ValueError: the file is damaged.
    """
    path = folder / NAME
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [json.loads(line) for line in lines]
