from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from medground.running.threads import fixed_torch_threads


class FakeTorch(SimpleNamespace):
    def __init__(self, threads):
        super().__init__(threads=threads)

    def get_num_threads(self):
        return self.threads

    def set_num_threads(self, count):
        self.threads = count


@pytest.mark.parametrize("before", [None, "7"])
def test_a_torch_that_is_there_is_held_and_let_go(monkeypatch, before):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if before:
        monkeypatch.setenv("OMP_NUM_THREADS", before)
    torch = FakeTorch(5)
    monkeypatch.setitem(sys.modules, "torch", torch)
    with fixed_torch_threads(2):
        assert torch.threads == 2
        assert os.environ["OMP_NUM_THREADS"] == "2"
    assert torch.threads == 5
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_a_torch_that_comes_later_is_held_too(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with fixed_torch_threads(3) as opened:
        opened()
        monkeypatch.setitem(sys.modules, "torch", FakeTorch(8))
        opened()
        assert sys.modules["torch"].threads == 3
