"""What a user chooses about the engine: how fast, how safe, and what to do with a file that cannot be read."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, get_args

from medground.errors import ConfigError

OnError = Literal["stop", "skip"]
Engine = Literal["local", "processes", "ray"]


def available_cores() -> int:
    """Return how many cores this process may use."""
    # os.process_cpu_count comes with Python 3.13, and macOS has no affinity.
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@dataclass(frozen=True)
class Options:
    """Options of the local engine.

    Attributes:
        chunk: items that are stored at once; what a kill can cost. None: as many as suit the size of a task.
        workers: threads that decode before the model and measure after it; 0: everything in the calling thread.
            None: one a core, 8 at most.
        on_error: whether an item that cannot be read stops the run, or is skipped, listed and counted.
        memory_items: how many decoded items may be in memory, at least one batch. None: three batches and one
            a worker.
        torch_threads: threads of torch on the CPU. None: those that this folder's run began with, or one a core.
        retry_failed: compute chunks with failed items again. Always so where ``on_error`` is ``stop``.
        max_failures: items that may fail before the run ends: a count, or a share of all items below 1.
        deadline: seconds that one session may take.
        budget_tokens: most tokens of models behind servers, over all sessions of the run; None: no bound.
        budget_money: most money, alike.
        engine: ``local`` (threads of this process), ``processes`` (workers on this machine, one a device) or ``ray``
            (workers of a cluster). With the latter two, ``workers`` counts processes.
        threads: of a worker that decode and measure; None: an equal share of the cores of this machine.
        devices: of ``processes``, one a worker: ``cpu``, or the number of a GPU.
        address: of ``ray``'s cluster.
        gpus_per_worker: of ``ray``; may be a share of one.
    """

    chunk: int | None = None
    workers: int | None = None
    on_error: OnError = "stop"
    memory_items: int | None = None
    torch_threads: int | None = None
    retry_failed: bool = False
    max_failures: int | float | None = None
    deadline: float | None = None
    budget_tokens: int | None = None
    budget_money: float | None = None
    engine: Engine = "local"
    threads: int | None = None
    devices: tuple[str, ...] = ()
    address: str = "auto"
    gpus_per_worker: float = 0.0

    def __post_init__(self) -> None:
        lowest = {"chunk": 1, "workers": 0, "memory_items": 1, "torch_threads": 1}
        for name, least in lowest.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError("a number is too small", where=f"engine.{name}", expected=f">= {least}", got=value)
        if self.on_error not in get_args(OnError):
            raise ConfigError("unknown choice", where="engine.on_error", expected="stop or skip", got=self.on_error)

    @property
    def n_workers(self) -> int:
        """Number of worker threads; of workers where the engine has processes."""
        if self.workers is not None:
            return self.workers if self.engine == "local" else max(1, self.workers)
        return len(self.devices) or min(8, available_cores())

    @property
    def devices_of_workers(self) -> tuple[str, ...]:
        """The device of each worker of ``processes``; the list begins again where there are more workers."""
        listed = self.devices or ("cpu",)
        return tuple(listed[worker % len(listed)] for worker in range(self.n_workers))

    @property
    def threads_per_worker(self) -> int:
        """Threads of one worker that decode and measure."""
        return max(1, available_cores() // self.n_workers) if self.threads is None else self.threads

    @property
    def accepts_failures(self) -> bool:
        """Whether a stored chunk with failed items counts as finished."""
        return self.on_error == "skip" and not self.retry_failed

    def failures_allowed(self, items: int) -> int | None:
        """Return how many of so many items may fail; None: any number."""
        if self.max_failures is None:
            return None
        return int(self.max_failures * items) if 0 < self.max_failures < 1 else int(self.max_failures)

    def in_memory(self, batch_size: int) -> int:
        """Return how many decoded items may be in memory at once."""
        if self.n_workers == 0:
            return batch_size
        wanted = 3 * batch_size + self.n_workers if self.memory_items is None else self.memory_items
        return max(batch_size, wanted)
