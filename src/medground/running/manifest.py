"""What a run's numbers rest on: versions, hashes, seeds, and the sessions that computed them.

Everything above ``sessions`` is the same for an uninterrupted run and for one that was killed and resumed; times,
workers and counts of reused chunks belong to a session. No name of a machine or a person is recorded, and no secret.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import medground
from medground.benchmarks.base import Benchmark
from medground.running.jsonable import plain
from medground.running.options import Options
from medground.running.plan import Plan
from medground.running.redact import redact

FORMAT = 2
"""Of the run folder: 1 kept rows alone; 2 keeps predictions, and rows a reading."""

_PACKAGES = ("numpy", "numba", "scipy", "pillow", "pydicom", "polars", "torch", "transformers", "safetensors")


def environment() -> dict[str, Any]:
    """Return versions and platform, without importing any of the packages."""
    return {
        "medground": medground.__version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "platform": f"{platform.system()} {platform.machine()}",
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def devices() -> list[str]:
    """Return the accelerators that torch sees, if anything has imported it; ``cpu`` otherwise."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return ["cpu"]
    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


class Manifest:
    """The content of ``manifest.json``, session after session.

    Args:
        benchmark: whose name and facts (hashes, prompts, protocol, seeds) are kept.
        reading: name of the reading's folder.
        plan: what is computed.
        options: of the engine.
        torch_threads: threads of torch on the CPU.
        previous: the manifest of the session before, if any.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        reading: str,
        plan: Plan,
        options: Options,
        torch_threads: int,
        previous: Mapping[str, Any] | None,
    ) -> None:
        here = environment()
        first = previous.get("environment", here) if previous else here
        self.changed = {key: [first.get(key), here[key]] for key in here if first.get(key) != here[key]}
        self._session: dict[str, Any] = {
            "started": now(),
            "ended": None,
            "outcome": "running or killed",
            "engine": options.engine,
            "workers": options.n_workers,
            "on_error": options.on_error,
            "environment_changed": self.changed or None,
        }
        self.data: dict[str, Any] = {
            "format": FORMAT,
            "benchmark": {"name": benchmark.name, **redact(plain(benchmark.manifest(), "manifest"))},
            "reading": reading,
            "settings": {"chunk": options.chunk or "auto", "torch_threads": torch_threads},
            "environment": first,
            "plan": [
                {
                    "path": list(planned.path),
                    "fingerprint": planned.fingerprint,
                    "reading": planned.reading,
                    "batch_size": planned.batch_size,
                    "items": planned.n_items,
                    "chunks": [chunk.name for chunk in planned.chunks],
                    "rows": [chunk.rows_name for chunk in planned.chunks],
                }
                for planned in plan.tasks
            ],
            "sessions": [*(previous.get("sessions", []) if previous else []), self._session],
        }

    @property
    def started(self) -> str:
        """When this session began."""
        return str(self._session["started"])

    def end(self, outcome: str, *, reused: int, computed: int) -> None:
        """Close the session: how it ended, chunks found finished, chunks computed in it."""
        self._session |= {
            "ended": now(),
            "outcome": outcome,
            "chunks_reused": reused,
            "chunks_computed": computed,
            "devices": devices(),
        }


def now() -> str:
    """Return the time in UTC, to the second, as a manifest writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
