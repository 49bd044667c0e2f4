"""``medground merge``: the summary of what shards have computed, in a folder or behind an address."""

from __future__ import annotations

from pathlib import Path

from medground.config import parse_run_file, read_yaml
from medground.errors import RunError
from medground.running.ledger import NAME as LEDGER
from medground.running.progress import Progress, progress_on
from medground.running.run import RunReport
from medground.running.shards import SHARDS
from medground.session import assemble, run_session
from medground.shard_replies import join_replies
from medground.storage import Storage, is_address, open_storage
from medground.storage.copying import copy_missing

_COPIED = ("run.yaml", "manifest.json", "predictions/", "readings/", f"{SHARDS}/")


def merge_run(place: str, out: Path, progress: Progress | None = None) -> RunReport:
    """Make the summary of a run whose chunks shards have computed.

    Args:
        place: the run folder, or its address: then the run is brought into ``out/<name>`` first.
        out: folder of run folders.
        progress: what is told about it.

    Raises:
        RunError: there is no run, chunks are missing, or a shard belongs to another run file.
    """
    progress = progress or progress_on()
    storage = open_storage(place)
    if not storage.exists("run.yaml"):
        raise RunError("there is no run", where=place, expected="a run.yaml", fix="medground run FILE --shard 1/N")
    run = parse_run_file(read_yaml(storage.get("run.yaml").decode(), "the run file", where=place), where=place)
    folder = Path(place)
    if is_address(place):
        folder = out / run.name
        copied = copy_missing(storage, open_storage(folder), _COPIED)
        progress.say(f"{copied} files were brought from {place}")
    report = run_session(assemble(run), folder, merging=True, progress=progress)
    joined = join_replies(open_storage(folder))
    if joined:
        progress.say(f"{joined} replies that shards kept were joined")
    _join_ledgers(open_storage(folder))
    return report


def _join_ledgers(storage: Storage) -> None:
    """Write what all sessions of all shards asked of servers into the ledger of the run, each line once."""
    keys = [s.key for s in storage.list(f"{SHARDS}/") if s.key.endswith(f"/{LEDGER}")]
    if not keys:
        return
    before = storage.get(LEDGER).splitlines() if storage.exists(LEDGER) else []
    lines = dict.fromkeys([*before, *(line for key in keys for line in storage.get(key).splitlines())])
    storage.put(LEDGER, b"".join(line + b"\n" for line in lines))
