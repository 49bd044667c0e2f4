"""``medground score``: a finished run read otherwise, or files made elsewhere; no model is asked again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medground import registry
from medground.benchmarks.results import Summary
from medground.commands.readings import Choice
from medground.config import read_yaml
from medground.errors import ConfigError, RunError
from medground.running.progress import Progress
from medground.session import read_session, run_session


@dataclass(frozen=True)
class Score:
    """A finished run, or files, under a reading.

    Attributes:
        summary: as a run gives it.
        reading: name of the reading, or of the protocol.
        items: one record an item, where files were scored.
        folder: where the reading was written; None for files made elsewhere.
    """

    summary: Summary
    reading: str
    items: tuple[Mapping[str, Any], ...] = ()
    folder: Path | None = None

    def as_json(self) -> dict[str, Any]:
        """Return ``{reading, items, summary}``; undefined is None."""
        return {"reading": self.reading, "items": list(self.items), "summary": self.summary.to_json()}


def read_choice(text: str, option: str) -> Any:
    """Return a protocol, reader or judge given by name, as a YAML file, or spelt out as a mapping.

    Raises:
        ConfigError: it is none of these.
    """
    path = Path(text)
    if path.suffix in {".yaml", ".yml", ".json"} and path.is_file():
        text = path.read_text(encoding="utf-8")
    choice = read_yaml(text, f"the {option}", where=f"--{option}")
    if not isinstance(choice, (str, dict)):
        raise ConfigError(f"a {option} is a name or a mapping", where=f"--{option}", got=text)
    return choice


def one_of(given: Mapping[str, str | None]) -> tuple[str, str]:
    """Return the one option that is given, and its text.

    Raises:
        ConfigError: none is given, or several.
    """
    chosen = _given(given)
    if len(chosen) != 1:
        raise ConfigError("score takes one reading", expected="--protocol P, --reader R or --judge J", got=len(chosen))
    return chosen[0]


def any_of(given: Mapping[str, str | None]) -> Choice | None:
    """Return the reading that is chosen by one option; None where none is given.

    Raises:
        ConfigError: several are given.
    """
    if not _given(given):
        return None
    option, text = one_of(given)
    return option, read_choice(text, option)


def _given(given: Mapping[str, str | None]) -> list[tuple[str, str]]:
    return [(option, text) for option, text in given.items() if text is not None]


def score_run(folder: Path, option: str, choice: Any, progress: Progress | None = None) -> Score:
    """Read a finished run otherwise, from what was said: beside its own reading, and nothing is overwritten.

    Args:
        folder: the run.
        option: ``protocol``, ``reader`` or ``judge``.
        choice: a name or a mapping; see :func:`read_choice`.
        progress: what is told about it.

    Raises:
        RunError: the run is not finished.
        ConfigError: its benchmark cannot be read so.
    """
    session = read_session(folder, {option: choice})
    report = run_session(session, folder, own=False, progress=progress)
    reading = session.benchmark.reading[0]
    return Score(report.summary, reading, folder=Path(report.reading))


def score_files(cases: Path, maps: Path, protocol: Any) -> Score:
    """Score heat maps made elsewhere, by the one benchmark that can.

    Raises:
        ConfigError: the protocol does not exist.
        DataError: a file cannot be read, or cases and maps do not belong together.
    """
    for name in registry.offering("score_files"):
        benchmark = registry.load("benchmark", name)
        resolved = registry.door(benchmark, "protocol")(protocol)
        items, summary = registry.door(benchmark, "score_files")(cases, maps, resolved)
        return Score(summary, resolved.name, tuple(items))
    raise RunError("no benchmark scores files", expected="one with the door score_files")


def score(run: Path | None, option: str, choice: Any, cases: Path | None, maps: Path | None) -> Score:
    """Score a run folder, or ``maps`` on ``cases``.

    Raises:
        ConfigError: neither, or both, are given.
    """
    if run is not None and cases is None and maps is None:
        return score_run(run, option, choice)
    if run is None and cases is not None and maps is not None and option == "protocol":
        return score_files(cases, maps, choice)
    raise ConfigError(
        "score takes a run folder, or cases and maps",
        expected="medground score RUN --protocol P, or medground score --cases FILE --maps FILE --protocol P",
    )
