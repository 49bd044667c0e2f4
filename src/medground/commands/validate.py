"""``medground validate``: a run file is tried on three cases a dataset before hours are spent on it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from medground.benchmarks.base import Task, evaluate
from medground.benchmarks.requests import answer_all
from medground.config import read_run_file
from medground.datasets.plausible import doubts
from medground.datasets.report import Checking, Reporting
from medground.errors import MedgroundError
from medground.models.chat.remote.upload import asks_elsewhere
from medground.session import Session, assemble

TRIED = 3


@dataclass(frozen=True)
class Check:
    """One thing that was checked.

    Attributes:
        what: the thing.
        ok: whether it is right.
        details: what was found; counts, or problems.
    """

    what: str
    ok: bool
    details: tuple[str, ...] = ()


def validate_file(
    file: Path, overrides: Sequence[str] = (), sheet: Path | None = None, *, ask: bool = False
) -> list[Check]:
    """Check a run file and what it names; problems are collected, not raised, as far as that is possible.

    Args:
        file: the run file.
        overrides: keys of the run file.
        sheet: the page that shows cases as decoded, with regions and maps on them; None: none is written.
        ask: whether whoever is behind a server elsewhere is asked about the three cases, which may cost money.

    Raises:
        ConfigError: the run file itself is not right.
        RegistryError: a component does not exist.
    """
    session = assemble(read_run_file(file, overrides), file.resolve().parent)
    checks = [Check(f"run file {file.name}", ok=True, details=(f"{len(session.models)} models",))]
    checks += [check for entry in session.datasets for check in _dataset(entry.label, entry)]
    if all(check.ok for check in checks):
        checks += list(_tasks(session, ask=ask))
    if sheet is not None:
        checks.append(_sheet(session, sheet))
    return checks


def _sheet(session: Session, target: Path) -> Check:
    """Write the contact sheet, also where a check failed: it may show why."""
    from medground.commands.sheet import write_sheet

    name = f"contact sheet {target.name}"
    try:
        return Check(name, ok=True, details=tuple(write_sheet(session, target)))
    except OSError as error:
        return Check(name, ok=False, details=tuple(str(error).splitlines()))


def _dataset(label: str, entry: Any) -> Iterator[Check]:
    """Read the tables; every box against its frame, every code against its size, every label, every file."""
    try:
        dataset = entry.build()
        # Problems of the tables stop cases() at the first; check() has them all.
        problems = [str(problem) for problem in dataset.check()] if isinstance(dataset, Checking) else []
        if not problems:
            dataset.cases()
        doubtful = [] if problems else doubts(dataset.cases())
        problems += [str(doubt) for doubt in doubtful if doubt.certain]
        lines = [f"doubt: {doubt}" for doubt in doubtful if not doubt.certain]
        lines += dataset.report().lines() if isinstance(dataset, Reporting) else []
    except MedgroundError as error:
        yield Check(f"dataset {label}", ok=False, details=tuple(str(error).splitlines()))
        return
    yield Check(
        f"dataset {label}: tables, boxes, codes, labels and files", ok=not problems, details=(*lines, *problems)
    )


def _tasks(session: Session, *, ask: bool) -> Iterator[Check]:
    """Load each model and take three cases through decoding, prediction and measuring."""
    for task in session.benchmark.tasks():
        name = "/".join(task.path)
        try:
            yield Check(f"{name}: {TRIED} cases", ok=True, details=tuple(_try(task, ask=ask)))
        except MedgroundError as error:
            yield Check(f"{name}: {TRIED} cases", ok=False, details=tuple(str(error).splitlines()))
        except Exception as error:  # a user's own model can raise anything, and the other checks go on
            yield Check(f"{name}: {TRIED} cases", ok=False, details=_raised(error))


def _raised(error: Exception) -> tuple[str, ...]:
    """Return what was raised and the line that raised it."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__}: {error}"
    return (what, f"  where: {Path(place.filename).name} line {place.lineno}, in {place.name}: {place.line}")


def _try(task: Task, *, ask: bool) -> Iterator[str]:
    items = task.items()
    spread = sorted({int(i) for i in np.linspace(0, len(items) - 1, TRIED)}) if items else []
    yield f"fingerprint {task.fingerprint()}"
    roles = {**task.roles, **task.reading_roles}
    away = {role: url for role, e in roles.items() if not ask and (url := asks_elsewhere(e.cls, e.parameters))}
    if away:
        hosts = ", ".join(
            dict.fromkeys(f"{roles[role].label} at {urlsplit(url).hostname}" for role, url in away.items())
        )
        yield f"not asked, since that may cost money: {hosts}; medground validate FILE --ask asks"
    if set(away) & set(task.roles):
        return
    players = {role: entry.build() for role, entry in roles.items() if role not in away}
    chosen = [items[i] for i in spread]
    if away:  # who answers is here, who judges is not
        stages = task.open({role: players[role] for role in task.roles})
        for item in chosen:
            answer_all(stages.converse(item, stages.load(item)), stages.answer, task.batch_size)
        yield f"{len(chosen)} items asked about, none judged"
        return
    measured = evaluate(task, players, chosen)
    shapes = {array.shape for m in measured for array in m.arrays.values()}
    yield f"{sum(len(m.rows) for m in measured)} rows" + (f", maps {sorted(shapes)}" if shapes else "")
