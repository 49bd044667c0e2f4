"""A model in a process of its own: one that hangs or crashes is ended and started again, and the run goes on.

A thin shell. The other process builds the model and answers calls of its public methods, in pickles over its standard
streams; what the model itself prints goes to the standard error. Answers are those of the model in this process.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any

from medground.errors import MedgroundError, ModelError

NOT_CALLED = frozenset({"prepare", "preparation"})
"""Methods that stay away: pictures are prepared where the model is."""
STARTS = 600.0
"""Seconds that a model may take to be built, where calls have a deadline."""
_LENGTH = struct.Struct(">Q")
_ENDED = "the process of a model ended while it was asked"


def isolated(cls: type[Any], parameters: Mapping[str, Any], deadline: float | None = None) -> Any:
    """Return a model that works in a process of its own.

    Args:
        cls: the model's class, importable by its name.
        parameters: of its constructor.
        deadline: seconds that one call may take; None: as long as it takes.

    Raises:
        ModelError: its process cannot be started, or does not become ready.
        MedgroundError: what its constructor raised.
    """
    methods = [name for name in dir(cls) if not name.startswith("_") and callable(getattr(cls, name))]
    shell = type(f"Isolated{cls.__name__}", (_Shell,), {n: _forwarding(n) for n in methods if n not in NOT_CALLED})
    return shell(cls, dict(parameters), deadline)


def _forwarding(name: str) -> Callable[..., Any]:
    def method(self: _Shell, *args: Any, **kwargs: Any) -> Any:
        return self._asked(name, args, kwargs)

    method.__name__ = name
    return method


class _Shell:
    """The model as this process sees it: its methods, and whatever else is read from it."""

    def __init__(self, cls: type[Any], parameters: dict[str, Any], deadline: float | None) -> None:
        self._cls, self._parameters, self._deadline = cls, parameters, deadline
        self._process: subprocess.Popen[bytes] | None = None
        self._fitted: tuple[Any, Any] | None = None
        self._turn = threading.Lock()
        with self._turn:
            self._started()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in NOT_CALLED:
            raise AttributeError(name)
        return self._asked("", (name,), {})

    def __del__(self) -> None:
        if self.__dict__.get("_process") is not None:
            self._end()

    def _asked(self, method: str, args: Any, kwargs: Any) -> Any:
        """Return what a method returned, or the value of an attribute (``method`` empty, its name the argument)."""
        with self._turn:
            self._started()
            if method == "fit":  # what a model has learnt is learnt again by the one that takes its place
                self._fitted = args, kwargs
            return self._answer((method, args, kwargs), self._deadline)

    def _started(self) -> None:
        """Start the process where none runs."""
        if self._process is not None and self._process.poll() is None:
            return
        command = [sys.executable, "-c", "from medground.models.controls.isolated import serve; serve()"]
        self._process = subprocess.Popen(  # noqa: S603  (this very Python)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        made = (self._cls.__module__, self._cls.__qualname__, self._parameters)
        self._answer((sys.path, str(Path.cwd())), self._deadline and max(self._deadline, STARTS))
        self._answer(made, self._deadline and max(self._deadline, STARTS))
        if self._fitted is not None:
            self._answer(("fit", *self._fitted), self._deadline)

    def _answer(self, message: Any, deadline: float | None) -> Any:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            _send(process.stdin, message)
            worked, value = _receive(process.stdout, None if deadline is None else time.monotonic() + deadline)
        except TimeoutError:
            self._end()
            raise ModelError(
                "a model did not answer in time, and its process was ended",
                where=self._cls.__name__,
                expected=f"an answer within {deadline:g} s",
                fix="the next call starts it again; isolate: SECONDS in the run file is how long a call may take",
            ) from None
        except (EOFError, OSError) as error:
            code = process.wait()
            self._end()
            raise ModelError(
                _ENDED, where=self._cls.__name__, got=f"signal {-code}" if code < 0 else f"exit code {code}"
            ) from error
        if not worked:
            raise value
        return value

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()
            process.wait()


def _send(stream: IO[bytes], message: Any) -> None:
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_LENGTH.pack(len(content)))
    stream.write(content)
    stream.flush()


def _receive(stream: IO[bytes], until: float | None) -> Any:
    """Return the next message.

    Raises:
        TimeoutError: it is not there in time.
        EOFError: the other side has ended.
    """
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size, until))
    return pickle.loads(_read(stream, length, until))  # noqa: S301  (from a process that we started)


def _read(stream: IO[bytes], count: int, until: float | None) -> bytes:
    content = bytearray()
    while len(content) < count:
        left = None if until is None else max(0.0, until - time.monotonic())
        if not select.select([stream], [], [], left)[0]:
            raise TimeoutError
        piece = os.read(stream.fileno(), min(count - len(content), 1 << 20))
        if not piece:
            raise EOFError
        content += piece
    return bytes(content)


def serve() -> None:
    """Be the other process: build a model, answer calls until the streams close."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the model prints must not be taken for an answer
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    asked, model = sys.stdin.buffer, None
    with contextlib.suppress(EOFError):
        path, folder = _receive(asked, None)
        sys.path[:] = path
        os.chdir(folder)
        _send(answers, (True, None))
        module, name, parameters = _receive(asked, None)
        worked, model = _tried(lambda: _found(module, name)(**parameters))
        _send(answers, (worked, None if worked else model))
        while worked:
            method, args, kwargs = _receive(asked, None)
            _send(answers, _tried(partial(_called, model, method, args, kwargs)))


def _called(model: Any, method: str, args: Any, kwargs: Any) -> Any:
    return getattr(model, method)(*args, **kwargs) if method else getattr(model, *args)


def _found(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _tried(make: Callable[[], Any]) -> tuple[bool, Any]:
    """Return whether something worked, and its value or what it raised, as something that can be sent."""
    try:
        return True, make()
    except AttributeError as error:
        return False, AttributeError(str(error))
    except MedgroundError as error:
        return False, error
    except Exception as error:  # a user's own model can raise anything
        return False, ModelError("a model raised an error", got=f"{type(error).__name__}: {error}"[:500])


def _end_with(parent: int) -> None:
    """End this process with the one that started it, even in the middle of a call."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
