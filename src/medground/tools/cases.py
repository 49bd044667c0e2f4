"""All tools on one case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, cast

from medground.errors import RegistryError, did_you_mean
from medground.tools.anatomy import Anatomy
from medground.tools.base import Measurement, Tool
from medground.tools.rules import TASKS

#: A frontal picture that the pipeline can measure has at least so many anatomy masks and so wide a window.
LEAST_MASKS = 70
LEAST_WINDOW = 450.0


def tool(task: str, parameters: Mapping[str, Any] | None = None) -> Tool:
    """Return the tool of a task, with its parameters.

    Raises:
        RegistryError: there is no such task.
    """
    if task not in TASKS:
        raise RegistryError(
            f"there is no diagnostic task named {task!r}",
            expected=", ".join(TASKS),
            fix=did_you_mean(task, list(TASKS)) or "name one of the twelve tasks",
        )
    module = import_module(f"medground.tools.{task}")
    cls = next(value for value in vars(module).values() if isinstance(value, type) and vars(value).get("name") == task)
    return cast("Tool", cls(**(parameters or {})))


def measure(anatomy: Anatomy, tasks: Iterable[str] = TASKS) -> dict[str, Measurement]:
    """Measure several tasks of one case, in the order asked."""
    return {task: tool(task).measure(anatomy) for task in tasks}


def frontal(masks: int, window: float) -> str | None:
    """Return why a picture is not taken for a usable frontal one (``mask_number``, ``window``), or None.

    >>> frontal(69, 1200)
    'mask_number'
    """
    if masks < LEAST_MASKS:
        return "mask_number"
    return "window" if window < LEAST_WINDOW else None
