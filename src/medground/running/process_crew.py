"""Workers as processes of this machine, one a device: several GPUs without a cluster."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Sequence
from multiprocessing import connection
from typing import Any

from medground.running.crew import Died, Ended, Event, Ready
from medground.running.worker import Done, Job, Order, Worker
from medground.running.workers import begin

_VISIBLE = "CUDA_VISIBLE_DEVICES"


class ProcessCrew:
    """Processes that inherit nothing but the modules that they import.

    Args:
        job: the run.
        devices: one a process: ``cpu``, or the number of a GPU, which is the only one that the process sees.
    """

    def __init__(self, job: Job, devices: Sequence[str]) -> None:
        self.size = len(devices)
        self._job, self._devices = job, devices
        self._context = multiprocessing.get_context("spawn")
        self._processes: dict[int, Any] = {}
        self._pipes: dict[int, Any] = {}

    def start(self, worker: int) -> None:
        """See :class:`~medground.running.crew.Crew`."""
        ours, theirs = self._context.Pipe()
        arguments = (theirs, self._job, self._devices[worker])
        process = self._context.Process(target=_serve, args=arguments, name=f"medground-worker-{worker + 1}")
        process.start()
        theirs.close()
        self._processes[worker], self._pipes[worker] = process, ours

    def submit(self, worker: int, order: Order) -> None:
        """See :class:`~medground.running.crew.Crew`."""
        with contextlib.suppress(OSError):  # its death is reported by ``wait``
            self._pipes[worker].send(order)

    def wait(self, timeout: float | None) -> Sequence[Event]:
        """See :class:`~medground.running.crew.Crew`."""
        told = set(connection.wait(list(self._pipes.values()), timeout))
        events: list[Event] = []
        for worker, pipe in [entry for entry in self._pipes.items() if entry[1] in told]:
            try:
                events.append(self._event(worker, pipe.recv()))
            except (EOFError, OSError):
                events.append(self._died(worker))
        return events

    def _event(self, worker: int, message: tuple[str, Any, Any]) -> Event:
        kind, order, outcome = message
        if kind == "ready":
            return Ready(worker)
        if kind == "unable":
            return Died(worker, str(outcome), outcome)
        return Ended(worker, order, outcome)

    def _died(self, worker: int) -> Died:
        process = self._processes.pop(worker)
        self._pipes.pop(worker).close()
        process.join()
        code = process.exitcode
        return Died(worker, f"signal {-code}" if code is not None and code < 0 else f"exit code {code}")

    def stop(self) -> None:
        """See :class:`~medground.running.crew.Crew`."""
        for process in self._processes.values():
            process.kill()
        for worker in list(self._processes):
            self._died(worker)


def _serve(pipe: Any, job: Job, device: str) -> None:
    """Carry out orders until the owner closes the pipe."""
    begin(None)
    if device != "cpu":
        os.environ[_VISIBLE] = device.removeprefix("cuda:")
    try:
        worker = Worker(job)
    except Exception as error:
        pipe.send(("unable", None, error))
        return
    pipe.send(("ready", None, None))
    while True:
        try:
            order: Order = pipe.recv()
        except EOFError:
            return
        outcome: Done | Exception
        try:
            outcome = worker.compute(order)
        except Exception as error:
            outcome = error
        pipe.send(("ended", order, outcome))
