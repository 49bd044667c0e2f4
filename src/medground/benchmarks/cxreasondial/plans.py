"""Plans: which tasks and evidence types a query asks for, and how a plan compares with what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from medground.errors import DataError
from medground.judges.base import EVIDENCE_TYPES
from medground.tools import TASKS

#: A (task, evidence type) pair.
Step = tuple[str, str]
Plan = frozenset[Step]


def read_plan(value: Any) -> Plan:
    """Read a structured plan: a list of mappings with ``task`` and ``evidence_type``.

    Raises:
        DataError: it is prose, or names something outside the lists. A plan is refused, never repaired.
    """
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise DataError("a plan is a list", expected="[{task, evidence_type}, ...]", got=repr(value)[:80])
    steps = []
    for entry in value:
        if not isinstance(entry, Mapping):
            raise DataError("a step of a plan is a mapping", expected="task, evidence_type", got=repr(entry)[:80])
        task, kind = entry.get("task"), entry.get("evidence_type")
        if task not in TASKS:
            raise DataError("a plan names a task that there is not", expected=", ".join(TASKS), got=repr(task)[:80])
        if kind not in EVIDENCE_TYPES:
            raise DataError(
                "a plan names an evidence type that there is not",
                expected=" or ".join(EVIDENCE_TYPES),
                got=repr(kind)[:80],
            )
        steps.append((str(task), str(kind)))
    return frozenset(steps)


def record(plan: Iterable[Step]) -> list[dict[str, str]]:
    """A plan as JSON-like data, sorted."""
    return [{"task": task, "evidence_type": kind} for task, kind in sorted(plan)]


def task_identified(expected: Plan, plan: Plan) -> int:
    """DTI: the sets of tasks are equal."""
    return int({task for task, _ in expected} == {task for task, _ in plan})


def type_identified(expected: Plan, plan: Plan) -> int:
    """ETI: for every task in both sets the evidence types are equal; with no task in common, all evidence types are.

    >>> type_identified(frozenset({("rotation", "visual")}), frozenset({("projection", "visual")}))
    1
    """
    shared = {task for task, _ in expected} & {task for task, _ in plan}
    if not shared:
        return int({kind for _, kind in expected} == {kind for _, kind in plan})
    return int(all(_kinds(expected, task) == _kinds(plan, task) for task in shared))


def _kinds(plan: Plan, task: str) -> set[str]:
    return {kind for name, kind in plan if name == task}
