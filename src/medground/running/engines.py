"""Which engine computes: threads in this process, processes of this machine, or workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from medground.running.allowance import Allowance
from medground.running.chunk_store import ChunkStore
from medground.running.crew import Crew, Owner
from medground.running.local import Work, run_local
from medground.running.options import Options
from medground.running.process_crew import ProcessCrew
from medground.running.profile import Profile
from medground.running.progress import Progress
from medground.running.ray_crew import RayCrew
from medground.running.worker import Job
from medground.spending import Budget


def compute(
    work: Work,
    store: ChunkStore,
    options: Options,
    progress: Progress,
    opened: Callable[[], None],
    allowance: Allowance,
    *,
    ask: bool = True,
    asked: Callable[[str, Any], None] = lambda *_: None,
    budget: Budget | None = None,
    job: Job | None = None,
) -> list[Profile]:
    """Compute chunks with the engine that the options name; see :func:`~medground.running.local.run_local`.

    Args:
        work: tasks with those of their chunks that are to be computed.
        store: where the chunks go.
        options: of the engine.
        progress: what is told about it.
        opened: called after a task was opened in this process.
        allowance: failures and time that the run may take.
        ask: whether models may be asked; another reading, which may not, is made in this process.
        asked: told label and component of whoever was asked.
        budget: of the run; workers of other processes could not share one, and are refused one by the run file.
        job: what workers rebuild the run from; None: it can only be computed in this process.
    """
    if options.engine == "local" or job is None or not ask or not any(chunks for _, chunks in work):
        return run_local(work, store, options, progress, opened, allowance, ask=ask, asked=asked, budget=budget)
    return Owner(_crew(job, options), work, store, progress, allowance, asked).run()


def _crew(job: Job, options: Options) -> Crew:
    if options.engine == "processes":
        return ProcessCrew(job, options.devices_of_workers)
    return RayCrew(job, options.n_workers, address=options.address, gpus=options.gpus_per_worker)
