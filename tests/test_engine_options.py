"""Options of an engine that belong to another one are refused, not left without effect."""

from __future__ import annotations

from typing import Any

import pytest

from medground.config import parse_run_file
from medground.errors import ConfigError
from medground.session import engine_options

RUN: dict[str, Any] = {"name": "r", "benchmark": {"name": "xbench"}, "models": [{"name": "reference"}]}


@pytest.mark.parametrize(
    ("engine", "key"),
    [
        ({"devices": [0]}, "devices"),
        ({"threads": 2}, "threads"),
        ({"name": "ray", "devices": [0]}, "devices"),
        ({"name": "processes", "gpus_per_worker": 1}, "gpus_per_worker"),
        ({"name": "processes", "address": "10.0.0.1:6379"}, "address"),
        ({"name": "ray", "budget_tokens": 10}, "budget_tokens"),
    ],
)
def test_what_belongs_to_another_engine_is_refused(engine: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=f"{key} belongs to the engine"):
        parse_run_file(RUN | {"engine": engine})


def test_options_reach_the_engine() -> None:
    run = parse_run_file(RUN | {"engine": {"name": "processes", "devices": ["cpu", 1], "threads": 3}})
    options = engine_options(run)
    assert (options.engine, options.devices_of_workers, options.threads_per_worker) == ("processes", ("cpu", "1"), 3)
    ray = engine_options(parse_run_file(RUN | {"engine": {"name": "ray", "workers": 4, "gpus_per_worker": 0.5}}))
    assert (ray.engine, ray.n_workers, ray.gpus_per_worker, ray.address) == ("ray", 4, 0.5, "auto")
