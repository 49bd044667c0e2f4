"""Workers as actors of a Ray cluster, or of one that is started on this machine."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from typing import Any

from medground.errors import ConfigError, RunError
from medground.running.crew import Died, Ended, Event, Ready
from medground.running.options import available_cores
from medground.running.worker import Job, Order, Worker

_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Nothing is reported to anybody, and workers without a GPU of their own see what this machine has."""


class _Remote:
    """The actor: a worker that returns its errors, so that only a death is an error of the actor."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._worker: Worker | None = None

    def ready(self) -> Exception | None:
        """Make the worker; return what kept it from being made."""
        try:
            self._worker = Worker(self._job)
        except Exception as error:
            return error
        return None

    def compute(self, order: Order) -> Any:
        """Return the receipt of a chunk, or the error of a stage."""
        assert self._worker is not None
        try:
            return self._worker.compute(order)
        except Exception as error:
            return error


class RayCrew:
    """Actors, each with a share of the GPUs.

    Args:
        job: the run; its place must be reached from every node.
        size: how many workers.
        address: of the cluster; ``auto``: the one that this machine belongs to, else one is started here.
        gpus: GPUs a worker.

    Raises:
        ConfigError: Ray is not installed.
        RunError: the cluster cannot be reached.
    """

    def __init__(self, job: Job, size: int, *, address: str = "auto", gpus: float = 0.0) -> None:
        self.size = size
        self._ray = _connected(address, size)
        self._job = self._ray.put(job)
        options = {"num_cpus": 1, "num_gpus": gpus, "max_restarts": 0, "max_task_retries": 0}
        self._actor: Any = self._ray.remote(**options)(_Remote)
        self._actors: dict[int, Any] = {}
        self._under_way: dict[Any, tuple[int, Order | None]] = {}

    def start(self, worker: int) -> None:
        """See :class:`~medground.running.crew.Crew`."""
        self._actors[worker] = self._actor.remote(self._job)
        self._under_way[self._actors[worker].ready.remote()] = (worker, None)

    def submit(self, worker: int, order: Order) -> None:
        """See :class:`~medground.running.crew.Crew`."""
        self._under_way[self._actors[worker].compute.remote(order)] = (worker, order)

    def wait(self, timeout: float | None) -> Sequence[Event]:
        """See :class:`~medground.running.crew.Crew`."""
        ready, _ = self._ray.wait(list(self._under_way), num_returns=1, timeout=timeout)
        return [event for reference in ready if (event := self._event(reference)) is not None]

    def _event(self, reference: Any) -> Event | None:
        worker, order = self._under_way.pop(reference)
        try:
            outcome = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:  # an answer that cannot be sent, say
            outcome = RunError("a worker's answer cannot be read", got=error)
        except self._ray.exceptions.RayError as error:
            for other in [ref for ref, (who, _) in self._under_way.items() if who == worker]:
                del self._under_way[other]
            return Died(worker, str(error).strip().splitlines()[0].rstrip(".:"))
        if order is not None:
            return Ended(worker, order, outcome)
        return Ready(worker) if outcome is None else Died(worker, str(outcome), outcome)

    def stop(self) -> None:
        """See :class:`~medground.running.crew.Crew`."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._actors.clear()
        self._under_way.clear()


def _connected(address: str, size: int) -> Any:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ConfigError(
            "the engine ray needs a package that is not installed",
            where="engine.name",
            expected="ray",
            fix="pip install 'medground[ray]'",
        ) from error
    if ray.is_initialized():
        return ray
    refuse_unreachable(address)
    common: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(address=address, **common)
    except ConnectionError as error:
        if address != "auto":
            raise RunError("the Ray cluster cannot be reached", where=address, got=error) from error
        ray.init(num_cpus=max(size, available_cores()), include_dashboard=False, **common)
    return ray


def refuse_unreachable(address: str) -> None:
    """Raise RunError where nothing listens at ``HOST:PORT``: Ray itself would end this process."""
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except OSError as error:
        raise RunError(
            "the Ray cluster cannot be reached",
            where=f"engine.address: {address}",
            got=error,
            fix="start it (ray start --head), or leave `address` out",
        ) from error
