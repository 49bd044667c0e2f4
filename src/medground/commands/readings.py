"""Another reading of a finished run: named by what was changed, found by what it consists of."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from medground.errors import RunError
from medground.running.reading import readings
from medground.running.run import reading_folder
from medground.session import Session, read_session

Choice = tuple[str, Any]
"""``protocol``, ``reader`` or ``judge``, and a name or a mapping."""


def session_of(folder: Path, choice: Choice | None) -> tuple[Session, str]:
    """Return a run under a reading, and the folder that holds it.

    Args:
        folder: of the run.
        choice: what differs from the run file; None: the run file's own reading.

    Raises:
        RunError: the run was not read so.
        ConfigError: its benchmark cannot be read so.
    """
    session = read_session(folder, None if choice is None else dict([choice]))
    name = reading_folder(session.benchmark)
    known = readings(folder)
    if choice is not None and name not in known:
        option, given = choice
        raise RunError(
            "the run was not read so",
            where=folder,
            expected=", ".join(known) or "a finished reading",
            got=name,
            fix=f"medground score {shlex.quote(str(folder))} --{option} {shlex.quote(str(given))}",
        )
    return session, name
