"""One run after another, killed at random instants."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from medground.config import parse_run_file
from medground.session import assemble, run_session
from torture.subjects import run_file

OUTPUTS = ("failures.jsonl", "readings/**/*", "predictions/**/*")
WORKERS, OFTEN = (0, 1, 2, 3), (3, 3, 1, 1)
"""Processes take seconds to start: fewer runs have them."""


@dataclass
class Count:
    """What happened.

    Attributes:
        subject: which run.
        kills: runs that were killed before they ended.
        folders: runs that ended in the end and were compared.
        files: that were compared.
        at_work: kills that struck after the first file of results was there.
        journals: kills that left a journal behind.
        seconds: that an untouched run takes with one worker and with two.
        differ: files whose bytes are not those of the untouched run.
    """

    subject: str
    kills: int = 0
    folders: int = 0
    files: int = 0
    at_work: int = 0
    journals: int = 0
    seconds: dict[int, float] = field(default_factory=dict)
    differ: list[str] = field(default_factory=list)


def torture(
    subject: str, kills: int, folder: Path, seed: int = 0, say: Callable[[str], None] = lambda _: None
) -> Count:
    """Kill runs of a subject until so many kills have struck, and compare every run that ends.

    Args:
        subject: name of a run file of ``subjects``.
        kills: how many.
        folder: empty; folders of runs are made in it.
        seed: of instants and workers.
        say: is told how far it is.

    Returns:
        The count; ``differ`` names files whose bytes are not those of the untouched run.

    Raises:
        RuntimeError: a run ended by itself with an error.
    """
    chance, count = random.Random(seed), Count(subject)
    _run(subject, 1, None, folder / "first")
    _import_alike(folder / "first/modules")
    whole = contents(folder / "first" / subject)
    for workers in (1, 2):
        started = time.monotonic()
        _run(subject, workers, None, folder / f"whole{workers}")
        count.seconds[workers] = round(time.monotonic() - started, 2)
        count.differ += _differing(whole, folder / f"whole{workers}" / subject)
    while count.kills < kills:
        tortured = folder / f"tortured{count.folders}"
        while not _run(subject, *_fate(chance, count, kills), tortured):
            count.kills += 1
            count.at_work += any(tortured.rglob("*.parquet"))
            count.journals += any(tortured.rglob("*.journal"))
        count.folders, count.files = count.folders + 1, count.files + len(whole)
        count.differ += _differing(whole, tortured / subject)
        shutil.rmtree(tortured)
        say(f"{subject}: {count.kills} kills, {count.folders} runs compared, {len(count.differ)} files differ")
    return count


def _fate(chance: random.Random, count: Count, kills: int) -> tuple[int, float | None]:
    """Return the workers of the next run, and after how many seconds it is killed."""
    (workers,) = chance.choices(WORKERS, OFTEN)
    lifetime = chance.uniform(0, count.seconds[1 if workers < 2 else 2])
    return workers, lifetime if count.kills < kills else None


def _differing(whole: Mapping[str, bytes], folder: Path) -> list[str]:
    got = contents(folder)
    return [f"{folder}/{name}" for name in sorted(whole.keys() | got.keys()) if whole.get(name) != got.get(name)]


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a run folder that must not depend on how the run went."""
    files = (p for pattern in OUTPUTS for p in folder.glob(pattern) if p.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def _run(subject: str, workers: int, lifetime: float | None, out: Path) -> bool:
    """Run in a process of its own; return whether it ended before it was killed."""
    out.mkdir(parents=True, exist_ok=True)
    child = os.fork()  # everything is imported already: a kill costs what the run itself takes
    if not child:
        _child(subject, workers, out)
    if lifetime is not None:
        _wait(child, lifetime)
        os.kill(child, signal.SIGKILL)  # of one that has ended and was not waited for: nothing
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and lifetime is not None:
        return False
    if status:
        raise RuntimeError(f"a run ended with status {status}:\n{(out / 'log').read_text()[-4000:]}")
    return True


def _import_alike(names: Path) -> None:
    """Import what a run imported, so that those to come spend their time at work."""
    for name in names.read_text().splitlines():
        if name.partition(".")[0] not in ("__main__", "__mp_main__", "torture"):
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def _wait(child: int, seconds: float) -> None:
    """Wait for so long, or until the child has ended, which stays to be waited for."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(min(left, 0.002))


def _child(subject: str, workers: int, out: Path) -> NoReturn:
    log = os.open(out / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())
    code = 1
    try:
        run_session(assemble(parse_run_file(run_file(subject, workers))), out / subject)
        (out / "modules").write_text("\n".join(sys.modules))
        code = 0
    except BaseException as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
    os._exit(code)
