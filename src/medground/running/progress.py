"""How far a run is: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from medground.escaping import for_terminal

if TYPE_CHECKING:
    from rich.console import Console


class Progress:
    """What the engine tells about a run. This one keeps it to itself: for library use and tests."""

    def start(self, total: int, done: int) -> None:
        """``done`` of ``total`` items are already stored."""

    def title(self, text: str) -> None:
        """What is being worked on now."""

    def advance(self, *, failed: bool = False) -> None:
        """One item more is done. Called from several threads."""

    def say(self, message: str) -> None:
        """Something that the user should know."""

    def stop(self) -> None:
        """The run has ended, well or not."""


class LineProgress(Progress):
    """A line every ten seconds or ten per cent, whichever is first.

    Args:
        stream: where the lines go.
        clock: seconds, monotonic.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._lock = threading.Lock()
        self._title = ""
        self._total = self._reused = self._done = self._failed = 0
        self._began = self._line_at = clock()
        self._line_done = 0

    def start(self, total: int, done: int) -> None:
        """See :class:`Progress`."""
        self._total, self._reused, self._done, self._line_done = total, done, done, done
        self._began = self._line_at = self._clock()

    def title(self, text: str) -> None:
        """See :class:`Progress`."""
        self._title = text

    def advance(self, *, failed: bool = False) -> None:
        """See :class:`Progress`."""
        with self._lock:
            self._done += 1
            self._failed += failed
            now = self._clock()
            tenth = 10 * (self._done - self._line_done) >= self._total
            if tenth or now - self._line_at >= 10 or self._done == self._total:
                self._line_at, self._line_done = now, self._done
                self._write(self._line(now - self._began))

    def _line(self, elapsed: float) -> str:
        rate = (self._done - self._reused) / elapsed if elapsed > 0 else 0.0
        left = f", {duration((self._total - self._done) / rate)} left" if rate else ""
        failed = f", {self._failed} failed" if self._failed else ""
        share = 100 * self._done // self._total
        return f"{share:3d} %  {self._done}/{self._total} items, {rate:.1f}/s{failed}{left}  {self._title}"

    def say(self, message: str) -> None:
        """See :class:`Progress`."""
        with self._lock:
            self._write(message)

    def _write(self, line: str) -> None:
        print(for_terminal(line.rstrip()), file=self._stream, flush=True)


class BarProgress(Progress):
    """A bar of rich with rate, failures and the time left."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress as Bar, TextColumn, TimeRemainingColumn

        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}", markup=False),
            TimeRemainingColumn(),
            console=console,
        )
        self._lock = threading.Lock()
        self._failed = self._advanced = 0
        self._began = 0.0
        self._task = self._bar.add_task("", total=None, visible=False, rate="")

    def start(self, total: int, done: int) -> None:
        """See :class:`Progress`."""
        self._began = time.monotonic()
        self._bar.update(self._task, total=total, completed=done, visible=True)
        self._bar.start()

    def title(self, text: str) -> None:
        """See :class:`Progress`."""
        self._bar.update(self._task, description=for_terminal(text))

    def advance(self, *, failed: bool = False) -> None:
        """See :class:`Progress`."""
        with self._lock:
            self._advanced += 1
            self._failed += failed
            rate = self._advanced / max(time.monotonic() - self._began, 1e-9)
            text = f"{rate:.1f}/s" + (f", {self._failed} failed" if self._failed else "")
        self._bar.update(self._task, advance=1, rate=text)

    def say(self, message: str) -> None:
        """See :class:`Progress`."""
        self._bar.console.print(for_terminal(message), markup=False, highlight=False)

    def stop(self) -> None:
        """See :class:`Progress`."""
        self._bar.stop()


_quiet = False


def be_quiet() -> None:
    """From now on no progress and no note is written: ``medground --quiet``."""
    global _quiet  # noqa: PLW0603  (one switch of the command line, set before anything runs)
    _quiet = True


def is_quiet() -> bool:
    """Return whether progress and notes are left out."""
    return _quiet


def progress_on(stream: TextIO | None = None) -> Progress:
    """Return a bar if ``stream`` (standard error) is a terminal, lines otherwise, and nothing where quiet is asked."""
    if _quiet:
        return Progress()
    stream = stream or sys.stderr
    if not stream.isatty():
        return LineProgress(stream)
    from rich.console import Console

    return BarProgress(Console(file=stream))


def duration(seconds: float) -> str:
    """Return a time for people: ``42 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
