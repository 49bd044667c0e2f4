"""Items in processes of their own: for tasks whose items are independent and busy the processor.

A worker is handed a task (a specification and a path) and the number of an item. It builds the task's players once and
keeps them; what it returns is what the same item gives in any other process.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from medground.benchmarks.base import Item, Stages, Task
from medground.benchmarks.requests import Outcomes, in_lockstep
from medground.running.cast import Cast
from medground.running.chunks import Picture
from medground.running.pictures import look_at
from medground.running.threads import fixed_torch_threads


def process_pool(workers: int, lifetime: float | None = None) -> Executor:
    """Return a pool of processes that inherit nothing but the modules that they import, and end with this one.

    Args:
        workers: how many.
        lifetime: seconds after which a process ends itself, even while a model hangs; None: never.
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=begin, initargs=(lifetime,))


def begin(lifetime: float | None) -> None:
    """Set a process up: Ctrl-C is left to the one that started it, with which it ends."""
    # Ctrl-C on a terminal reaches the whole group: the run takes what its processes still say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="medground-parent", daemon=True).start()
    if lifetime is not None:
        # Needs no lock of the interpreter, which a model that hangs may hold.
        faulthandler.dump_traceback_later(lifetime, exit=True, file=os.open(os.devnull, os.O_WRONLY))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def submit(pool: Executor, task: Task, fingerprint: str, index: int) -> Future[tuple[Outcomes, list[Picture]]]:
    """Have the item ``index`` of a task asked about in another process."""
    return pool.submit(_in_process, task, fingerprint, index)


def converse(
    stages: Stages, item: Item, batch_size: int, answer: Callable[..., Any] | None = None
) -> tuple[Outcomes, list[Picture]]:
    """Ask about one item alone; an error is part of the outcome."""
    pictures = look_at(item)
    try:
        loaded = stages.load(item)
    except Exception as error:
        return Outcomes(None, (), error), pictures
    (outcome,) = in_lockstep([stages.converse(item, loaded)], answer or stages.answer, lambda _: batch_size)
    return outcome, pictures


@dataclass
class _Opened:
    """What a worker keeps between items."""

    fingerprint: str
    stages: Stages
    items: Sequence[Item]


_cast = Cast()
_opened: list[_Opened] = []


def _in_process(task: Task, fingerprint: str, index: int) -> tuple[Outcomes, list[Picture]]:
    # One thread a process: the processes are the parallelism, and sums do not depend on their number.
    with fixed_torch_threads(1) as limit:
        if not _opened or _opened[0].fingerprint != fingerprint:
            _opened[:] = [_Opened(fingerprint, task.open(_cast.players(task.roles)), task.items())]
        limit()
        opened = _opened[0]
        return converse(opened.stages, opened.items[index], task.batch_size)
