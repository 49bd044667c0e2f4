"""A finished run folder as the report sees it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from medground.benchmarks.results import Summary
from medground.errors import RunError
from medground.running.fsck import refuse_damaged
from medground.running.ledger import read_ledger
from medground.running.reading import read_manifest, reading_path


@dataclass(frozen=True)
class Run:
    """What a run folder says.

    Attributes:
        folder: where it lies.
        config: the resolved run file.
        config_text: the same, as written.
        manifest: versions, hashes, sessions.
        summary: every number and verdict of the run.
        summary_sha256: of ``summary.json``.
        failures: one entry an item that could not be read.
        ledger: one entry a session that asked a server.
    """

    folder: Path
    config: Mapping[str, Any]
    config_text: str
    manifest: Mapping[str, Any]
    summary: Summary
    summary_sha256: str
    failures: Sequence[Mapping[str, Any]]
    ledger: Sequence[Mapping[str, Any]] = ()
    reading: str | None = None

    @property
    def name(self) -> str:
        """How the report calls the run."""
        return str(self.config.get("name") or self.folder.name)

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return str(self.manifest["benchmark"]["name"])

    @property
    def data(self) -> Mapping[str, Any]:
        """What the benchmark keeps for its own report beside cells and verdicts."""
        return self.summary.data

    @property
    def date(self) -> str:
        """The day on which its last session ended, as YYYY-MM-DD; empty where it is not recorded."""
        ends = [session.get("ended") for session in self.manifest.get("sessions", [])]
        return str(ends[-1])[:10] if ends and ends[-1] else ""

    @cached_property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables of the run, by file stem, every column as text."""
        files = sorted((reading_path(self.folder, self.reading) / "tables").glob("*.csv"))
        return {file.stem: pl.read_csv(file, infer_schema=False) for file in files}


def read_run(folder: Path, reading: str | None = None) -> Run:
    """Read a finished run.

    Args:
        folder: of the run.
        reading: folder of a reading; None: the run file's own.

    Raises:
        RunError: the folder holds no run, the run is not finished, or a file of it is damaged.
    """
    manifest = read_manifest(folder)
    refuse_damaged(folder)
    try:
        raw = (reading_path(folder, reading) / "summary.json").read_bytes()
        text = (folder / "run.yaml").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise RunError(
            "the run is not finished",
            where=folder,
            expected=f"a {Path(error.filename).name}",
            fix="run the same run file again: it goes on where it stopped",
        ) from None
    try:
        failures = (folder / "failures.jsonl").read_text(encoding="utf-8") if _has_failures(folder) else ""
        return Run(
            folder,
            yaml.safe_load(text),
            text,
            manifest,
            Summary.from_json(json.loads(raw), folder / "summary.json"),
            hashlib.sha256(raw).hexdigest(),
            [json.loads(line) for line in failures.split("\n") if line],
            read_ledger(folder),
            reading,
        )
    except (ValueError, yaml.YAMLError) as error:
        raise RunError(
            "a file of the run cannot be read", where=folder, got=error, fix="run the same run file again"
        ) from error


def _has_failures(folder: Path) -> bool:
    return (folder / "failures.jsonl").exists()


def unique_names(runs: Iterable[Run]) -> list[str]:
    """Return the runs' names, told apart by a number where two are equal."""
    names = [run.name for run in runs]
    return [n if names.count(n) == 1 else f"{n} ({names[: i + 1].count(n)})" for i, n in enumerate(names)]
