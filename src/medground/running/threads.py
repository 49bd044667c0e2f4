"""The number of threads that torch computes with: fixed, because sums over threads differ in their last bits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

_VARIABLE = "OMP_NUM_THREADS"


@contextmanager
def fixed_torch_threads(count: int) -> Iterator[Callable[[], None]]:
    """Hold torch to ``count`` threads on the CPU while the context lasts; torch is not imported for it.

    Yields:
        A function to call after anything that may have imported torch.
    """
    before, torch = os.environ.get(_VARIABLE), sys.modules.get("torch")
    threads_before = torch.get_num_threads() if torch is not None else None
    # A torch that is imported later reads the variable, so that even prompts encoded while a model is being built are
    # computed with this many threads.
    os.environ[_VARIABLE] = str(count)
    limit = partial(_limit, count)
    limit()
    try:
        yield limit
    finally:
        if before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = before
        if threads_before is not None:
            _limit(threads_before)


def _limit(count: int) -> None:
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)
