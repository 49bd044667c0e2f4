"""A run cut into shards: each process computes every N-th chunk, and a merge makes the summary of all.

::

    shards/settings.json            what the shards have agreed on
    shards/<I-of-N>/shard.json      what a shard's session planned and how it ended
    shards/<I-of-N>/profile.json  ledger.jsonl  replies/

Chunks lie where those of a whole run lie, under names that say what made them: a shard that runs twice writes the same
files, and whatever number of shards wrote them, the merge finds them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medground.errors import ConfigError, RunError
from medground.running.plan import Chunk, Plan
from medground.storage import Storage

SHARDS = "shards"
_SETTINGS = f"{SHARDS}/settings.json"
_SHOWN = 5


@dataclass(frozen=True)
class Shard:
    """Part ``index`` (from 1) of ``of``."""

    index: int
    of: int

    @property
    def name(self) -> str:
        """As part of a file's name: ``2-of-8``."""
        return f"{self.index}-of-{self.of}"

    @property
    def folder(self) -> str:
        """Key of the folder of its own files."""
        return f"{SHARDS}/{self.name}"

    def holds(self, number: int) -> bool:
        """Return whether the chunk ``number`` of a plan belongs to it."""
        return number % self.of == self.index - 1


def parse_shard(text: str) -> Shard:
    """Return the shard that ``I/N`` names.

    Raises:
        ConfigError: it is not ``I/N`` with 1 <= I <= N.

    Example:
        >>> parse_shard("2/8").name
        '2-of-8'
    """
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    shard = Shard(int(match[1]), int(match[2])) if match else None
    if shard is None or not 1 <= shard.index <= shard.of:
        raise ConfigError("not a shard", where="--shard", expected="I/N with 1 <= I <= N, such as 2/8", got=text)
    return shard


def agreed_threads(storage: Storage) -> int | None:
    """Return how many threads of torch the shards of a run have agreed on; None: no shard has begun."""
    try:
        return int(json.loads(storage.get(_SETTINGS))["torch_threads"])
    except (FileNotFoundError, ValueError, TypeError, LookupError):
        return None


def agree_on_threads(storage: Storage, threads: int) -> int:
    """Have every shard compute with the threads of torch that the first one had, on whatever machine it runs."""
    storage.create(_SETTINGS, json.dumps({"torch_threads": threads}).encode())
    agreed = agreed_threads(storage)
    return threads if agreed is None else agreed


def plan_digest(plan: Plan) -> str:
    """Return a hash of the names of all chunks and rows: of everything that a plan is made of."""
    names = [(chunk.name, chunk.rows_name) for chunk in plan.chunks]
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:16]


def put_record(storage: Storage, shard: Shard, plan: Plan, outcome: str, failures: int) -> None:
    """Write down what a shard's session planned and how it ended."""
    record = {"shard": [shard.index, shard.of], "plan": plan_digest(plan), "outcome": outcome, "failures": failures}
    storage.put(f"{shard.folder}/shard.json", json.dumps(record, indent=1).encode())


def records(storage: Storage) -> dict[Shard, Mapping[str, Any]]:
    """Return what the sessions of all shards wrote down.

    Raises:
        RunError: a record is damaged.
    """
    found: dict[Shard, Mapping[str, Any]] = {}
    for stored in storage.list(f"{SHARDS}/"):
        if not stored.key.endswith("/shard.json"):
            continue
        try:
            record = json.loads(storage.get(stored.key))
            found[Shard(*map(int, record["shard"]))] = record
            record["plan"], record["outcome"]
        except (ValueError, TypeError, LookupError) as error:
            fix = "run the shard again: its record is rewritten, and its finished chunks are not computed again"
            raise RunError("the record of a shard is damaged", where=stored.key, got=error, fix=fix) from error
    return dict(sorted(found.items(), key=lambda entry: (entry[0].of, entry[0].index)))


def refuse_incomplete(storage: Storage, plan: Plan, missing: Sequence[Chunk], failed: int) -> None:
    """Raise RunError where a run cannot be merged, with what is missing and which shards bring it.

    Args:
        storage: of the run.
        plan: of the run file.
        missing: chunks that are not finished.
        failed: how many of them have failed items that the run file does not accept.
    """
    known = records(storage)
    digest = plan_digest(plan)
    strange = [shard for shard, record in known.items() if record["plan"] != digest]
    if not missing:
        return
    if strange:
        raise RunError(
            "shards of this folder were planned from another run file, or from other data",
            where=storage.where,
            expected=f"the plan {digest} of this run file",
            got=", ".join(f"shard {s.index}/{s.of}: {known[s]['plan']}" for s in strange[:_SHOWN]),
            fix="run these shards again with the run file of the others, on the same data and version",
        )
    raise RunError(
        "the run cannot be merged: chunks are missing",
        where=storage.where,
        expected=f"{len(plan.chunks)} chunks",
        got=f"{len(missing)} missing{_failed(failed)}: {_named(missing)}",
        fix=_which_shards(known, plan, missing),
    )


def _failed(count: int) -> str:
    return f" ({count} of them with items that failed)" if count else ""


def _named(missing: Sequence[Chunk]) -> str:
    names = [f"{'/'.join(chunk.path)} chunk {chunk.index}" for chunk in missing[:_SHOWN]]
    return ", ".join(names) + (" ..." if len(missing) > _SHOWN else "")


def _which_shards(known: Mapping[Shard, Mapping[str, Any]], plan: Plan, missing: Sequence[Chunk]) -> str:
    counts = {shard.of for shard in known}
    if len(counts) != 1:
        return "run the run file without --shard: it computes what is missing"
    of = counts.pop()
    wanted = {(chunk.task_index, chunk.index) for chunk in missing}
    numbers = [number for number, c in enumerate(plan.chunks) if (c.task_index, c.index) in wanted]
    shards = sorted({number % of + 1 for number in numbers})
    return f"medground run FILE --shard {', '.join(f'{index}/{of}' for index in shards)}"
