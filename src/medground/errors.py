"""Every error that medground raises on purpose.

::

    MedgroundError
    ├── ConfigError          a run file, an option or a component's parameter
    ├── RegistryError        a component that cannot be found or imported
    ├── DataError            something wrong with the user's data
    │   ├── ImageError       a picture that cannot be decoded as a radiograph
    │   ├── RegionError      a box, polygon, mask or run-length code
    │   └── DatasetError     a folder or a table of a dataset
    ├── MetricError          arrays that a metric cannot take
    ├── ModelError           a model, its prompts or its outputs
    │   └── CheckpointError  weights that do not fit, or that must not be loaded
    └── RunError             a run folder: lock, mismatch, disk
        └── LimitError       more failures, time or memory than the run file allows

A message says what is wrong, where, what was expected, what was found, and how to mend it. The command line
prints it without a traceback and exits with code 1.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MedgroundError(Exception):
    """Base of all errors that a user can mend.

    Args:
        what: one sentence that names the problem.
        where: file, row, key or item that it is about.
        expected: what would have been right.
        got: what was found instead.
        fix: the command or the line that mends it.
    """

    def __init__(
        self,
        what: str,
        *,
        where: object = None,
        expected: object = None,
        got: object = None,
        fix: str | None = None,
    ) -> None:
        self.what, self.where, self.expected, self.got, self.fix = what, where, expected, got, fix
        super().__init__(what)

    def __str__(self) -> str:
        parts = [("where", self.where), ("expected", self.expected), ("got", self.got), ("fix", self.fix)]
        lines = [self.what, *(f"  {name}: {value}" for name, value in parts if value is not None)]
        return "\n".join(_bounded(line) for text in lines for line in text.split("\n"))

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.expected, self.got, self.fix))


_LONGEST = 2000


def _bounded(line: str) -> str:
    """Return a line of a message without what input of any length would make of it."""
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}... ({len(line):,} characters)"


def _rebuild(
    cls: type[MedgroundError], what: str, where: object, expected: object, got: object, fix: str | None
) -> MedgroundError:
    return cls(what, where=where, expected=expected, got=got, fix=fix)


class ConfigError(MedgroundError):
    """A run file, an option or a component's parameter is wrong."""


class RegistryError(MedgroundError):
    """A component cannot be found or imported."""


class DataError(MedgroundError):
    """Something is wrong with the user's data."""


class ImageError(DataError):
    """A picture cannot be decoded as a radiograph."""


class RegionError(DataError):
    """A box, polygon, mask or run-length code is malformed."""


class DatasetError(DataError):
    """A folder or a table of a dataset is not as its publisher distributes it."""


class MetricError(MedgroundError):
    """A metric was given arrays that it cannot take."""


class ModelError(MedgroundError):
    """A model, its prompts or its outputs are wrong."""


class CheckpointError(ModelError):
    """Weights do not fit the network, or the file must not be loaded."""


class RunError(MedgroundError):
    """A run folder is locked, belongs to another run, or cannot be written."""


class LimitError(RunError):
    """A run has reached a limit that the run file sets: failures, time or memory."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the member of ``names`` that ``name`` most likely meant, or None when nothing is close."""
    pool = list(names)
    folded = {n.casefold(): n for n in pool}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    return folded[near[0]] if near else None


def did_you_mean(name: str, names: Iterable[str]) -> str | None:
    """Return ``did you mean 'x'?`` for a misspelt name, or None."""
    near = nearest(name, names)
    return f"did you mean {near!r}?" if near else None
