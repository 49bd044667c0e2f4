"""Where the engine's jobs run: in threads, in the calling thread, or in processes that start when first wanted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from medground.running import workers


class Inline(Executor):
    """Runs what is submitted at once, in the calling thread: the engine without workers."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """See :class:`concurrent.futures.Executor`."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def threads(size: int) -> Executor:
    """Return a pool of so many threads; 0: the calling thread."""
    return ThreadPoolExecutor(size, thread_name_prefix="medground") if size else Inline()


class Processes:
    """Starts processes when a task first wants them, and stops them at the end.

    Args:
        size: how many.
        lifetime: gives the seconds after which a process ends itself, whatever it does; None: never.
    """

    def __init__(self, size: int, lifetime: Callable[[], float | None] = lambda: None) -> None:
        self.size, self._lifetime = size, lifetime
        self._pool: Executor | None = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def pool(self) -> Executor:
        """Return the pool."""
        if self._pool is None:
            left = self._lifetime()
            self._pool = workers.process_pool(self.size, None if left is None else left + 1.0)
        return self._pool
