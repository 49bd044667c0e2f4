"""Who plays which role: every component is built once a run, and let go of when nothing needs it any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from medground.benchmarks.base import Entry, Task
from medground.spending import Budget, within


class Cast:
    """Builds players on demand.

    Args:
        tasks: that are still to be computed, in order; a component is let go of after the last that needs it.
        asked: told label and component whenever a task that it played in has ended.
        budget: that everybody takes from; None: no bound.
    """

    def __init__(
        self,
        tasks: Iterable[Task] = (),
        asked: Callable[[str, Any], None] = lambda *_: None,
        budget: Budget | None = None,
    ) -> None:
        self._players: dict[tuple[str, str], Any] = {}
        self._labels: dict[tuple[str, str], str] = {}
        self._asked, self._budget = asked, budget
        self._needed = Counter(key for task in tasks for key in _keys(task))

    def players(self, roles: Mapping[str, Entry]) -> dict[str, Any]:
        """Return role -> built component."""
        return {role: self._player(entry) for role, entry in roles.items()}

    def _player(self, entry: Entry) -> Any:
        key = _key(entry)
        if key not in self._players:
            with within(self._budget):
                self._players[key] = entry.build()
            self._labels[key] = entry.label
        return self._players[key]

    def tell(self) -> None:
        """Tell of everybody who is in memory what was asked of them."""
        for key, player in self._players.items():
            self._asked(self._labels[key], player)

    def keep_for(self, task: Task) -> None:
        """Let go of everybody whom a task does not need."""
        self.tell()
        needed = _keys(task)
        self._players = {key: player for key, player in self._players.items() if key in needed}

    def release(self, task: Task) -> None:
        """Let go of what no later task needs."""
        self.tell()
        for key in _keys(task):
            self._needed[key] -= 1
            if self._needed[key] <= 0:
                self._players.pop(key, None)


def _key(entry: Entry) -> tuple[str, str]:
    return entry.name, entry.identity()


def _keys(task: Task) -> set[tuple[str, str]]:
    return {_key(entry) for entry in (*task.roles.values(), *task.reading_roles.values())}
