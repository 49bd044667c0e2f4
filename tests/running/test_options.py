from __future__ import annotations

import os

import pytest

from medground.errors import ConfigError
from medground.running.options import Options, available_cores


@pytest.mark.parametrize(
    "wrong",
    [{"chunk": 0}, {"workers": -1}, {"memory_items": 0}, {"torch_threads": 0}, {"on_error": "ignore"}],
)
def test_wrong_options_are_named(wrong):
    with pytest.raises(ConfigError, match=f"engine.{next(iter(wrong))}"):
        Options(**wrong)


def test_at_least_one_batch_fits_in_memory():
    assert Options(memory_items=1, workers=2).in_memory(8) == 8
    assert Options(memory_items=20, workers=2).in_memory(8) == 20
    assert Options(workers=2).in_memory(8) == 26
    assert Options(workers=0, memory_items=50).in_memory(8) == 8


def test_workers_follow_the_cores(monkeypatch):
    assert Options().n_workers == min(8, available_cores())
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1


def test_failures_are_accepted_only_when_skipping():
    assert not Options(on_error="stop").accepts_failures
    assert Options(on_error="skip").accepts_failures
    assert not Options(on_error="skip", retry_failed=True).accepts_failures
