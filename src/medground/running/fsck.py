"""Holds every file of a run against what its receipt says, offline: nothing is computed, nothing is changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medground.errors import RunError
from medground.running.chunks import PREDICTIONS, READINGS, ChunkFiles, DamagedChunkError, Receipt, read_receipt
from medground.running.reading import read_manifest
from medground.storage import FolderStorage

SUMS = "sums.json"
"""SHA-256 of a reading's summary and tables, written with them."""


@dataclass(frozen=True)
class Integrity:
    """What a run folder holds.

    Attributes:
        files: how many files are what was written.
        damaged: what is missing, cut or changed, in a sentence each.
        unfinished: files of chunks that were never committed; they do not count, and are computed again.
        unsealed: readings whose summary was written before sums were kept.
    """

    files: int
    damaged: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    unsealed: tuple[str, ...] = ()


def check_folder(folder: Path, *, answers: bool = True) -> Integrity:
    """Check the files of a run.

    Args:
        folder: of the run.
        answers: whether predictions are read too; without them only what a report shows.

    Raises:
        RunError: the folder holds no run.
    """
    read_manifest(folder)
    files, damaged, unfinished, unsealed = 0, [], [], []
    seals: dict[tuple[str, str], str] = {}
    roots = [folder / PREDICTIONS] if answers else []
    readings = sorted(path for path in (folder / READINGS).glob("*") if path.is_dir())
    for root in (*roots, *(part for reading in readings for part in (reading / "replies", reading / "rows"))):
        for task, chunk in _chunks(root, folder):
            place = Path(chunk.receipt)
            try:
                receipt = read_receipt(chunk)
            except DamagedChunkError as error:
                damaged.append(f"{place.parent}: {error}")
                continue
            if receipt is None:
                unfinished.append(str(place.with_suffix("")))
                continue
            files += 2 + (receipt.arrays is not None)
            damaged += _origin(root, folder, task, chunk, receipt, seals)
    for reading in readings:
        summed, wrong = _sums(reading, folder)
        files, damaged = files + summed, damaged + wrong
        if (reading / "summary.json").is_file() and not (reading / SUMS).is_file():
            unsealed.append(reading.name)
    return Integrity(files, tuple(damaged), tuple(unfinished), tuple(unsealed))


def refuse_damaged(folder: Path) -> None:
    """Raise RunError where what a report shows is not what was written."""
    audit = check_folder(folder, answers=False)
    if audit.damaged:
        raise RunError(
            "files of the run are not what was written",
            where=folder,
            got="; ".join(audit.damaged[:5]),
            fix="run the same run file again: what is damaged is computed anew",
        )


def sums_of(files: Mapping[str, bytes]) -> bytes:
    """Return the content of :data:`SUMS` for a reading's summary and tables."""
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    return json.dumps(hashes, indent=1).encode()


def sums_hold(sums: Mapping[str, str], read: Callable[[str], bytes]) -> bool:
    """Return whether every file is what :data:`SUMS` says; ``read`` gives one by its name.

    Raises:
        OSError: a file cannot be read.
    """
    return all(hashlib.sha256(read(name)).hexdigest() == digest for name, digest in sums.items())


def _chunks(root: Path, folder: Path) -> Iterator[tuple[str, ChunkFiles]]:
    """Yield (task, files) of every chunk below a root, finished or not."""
    storage = FolderStorage(folder)
    stems = {path.with_suffix("") for path in root.rglob("*") if path.suffix in {".json", ".parquet", ".npz"}}
    for stem in sorted(stems):
        key = stem.relative_to(folder).as_posix()
        parts = (f"{key}.{suffix}" for suffix in ("parquet", "npz", "json"))
        yield stem.parent.relative_to(root).as_posix(), ChunkFiles(storage, *parts)


def _origin(
    root: Path, folder: Path, task: str, chunk: ChunkFiles, receipt: Receipt, seals: dict[tuple[str, str], str]
) -> list[str]:
    """Return that rows were made of other predictions than are kept, where both are known."""
    if root == folder / PREDICTIONS:
        seals[task, receipt.seal] = receipt.seal
        return []
    if not receipt.made_from or not seals or (task, receipt.made_from) in seals:
        return []
    return [f"{chunk.receipt}: made of predictions that are not here"]


def _sums(reading: Path, folder: Path) -> tuple[int, list[str]]:
    """Return how many files of a reading are what was written, and which are not."""
    path = reading / SUMS
    if not path.is_file():
        return 0, []
    try:
        stated: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        wrong = [name for name, digest in stated.items() if _sha256(reading / name) != digest]
    except (ValueError, AttributeError) as error:
        return 0, [f"{path.relative_to(folder)}: cannot be read ({error})"]
    place = reading.relative_to(folder)
    return len(stated) - len(wrong), [f"{place}/{name}: missing or not what was written" for name in wrong]


def _sha256(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
