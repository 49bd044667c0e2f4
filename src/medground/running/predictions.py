"""What was said about the items of a chunk, as one table and one archive of arrays: free of any protocol or reader.

The table has one record a request (item, place, role, capability, key, outcome, reason, values) and one an item with
the notes of its conversation. An array is named ``place.name`` below its item.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from medground.benchmarks.requests import Answer, Exchange, Transcript
from medground.running.arrays import pack_arrays, unpack_arrays
from medground.running.jsonable import plain

SCHEMA = pl.Schema(
    {
        "item": pl.String(),
        "place": pl.Int32(),
        "role": pl.String(),
        "capability": pl.String(),
        "key": pl.String(),
        "outcome": pl.String(),
        "reason": pl.String(),
        "values": pl.String(),
    }
)
_NOTES = -1
"""Place of the record that holds an item's notes."""


def encode(transcripts: Sequence[Transcript]) -> tuple[bytes, bytes | None]:
    """Return transcripts as the bytes of a parquet file and of an npz (None without arrays), the same every time.

    Raises:
        RunError: a value has no JSON.
        ValueError: an array holds Python objects.
    """
    records = [record for transcript in transcripts for record in _records(transcript)]
    buffer = io.BytesIO()
    pl.DataFrame(records, schema=SCHEMA, orient="row").write_parquet(buffer, compression="zstd")
    return buffer.getvalue(), pack_arrays((t.item_id, _arrays(t)) for t in transcripts)


def _records(transcript: Transcript) -> Iterable[dict[str, Any]]:
    where = f"item {transcript.item_id}"
    yield dict.fromkeys(SCHEMA.names()) | {
        "item": transcript.item_id,
        "place": _NOTES,
        "values": _json(transcript.notes, where),
    }
    for place, exchange in enumerate(transcript.exchanges):
        yield {
            "item": transcript.item_id,
            "place": place,
            "role": exchange.role,
            "capability": exchange.capability,
            "key": _json(exchange.key, where),
            "outcome": exchange.answer.outcome,
            "reason": exchange.answer.reason,
            "values": _json(exchange.answer.values, where),
        }


def _json(value: Any, where: str) -> str:
    return json.dumps(plain(value, where), sort_keys=True, ensure_ascii=False, allow_nan=False)


def _arrays(transcript: Transcript) -> dict[str, NDArray[np.generic]]:
    return {
        f"{place}.{name}": array
        for place, exchange in enumerate(transcript.exchanges)
        for name, array in exchange.answer.arrays.items()
    }


def decode(table: bytes, arrays: bytes | None) -> list[Transcript]:
    """Return the transcripts that ``encode`` was given, in order, arrays bit by bit."""
    held = {} if arrays is None else dict(unpack_arrays(io.BytesIO(arrays)))
    notes: dict[str, Mapping[str, Any]] = {}
    exchanges: dict[str, list[Exchange]] = {}
    for record in pl.read_parquet(io.BytesIO(table)).iter_rows(named=True):
        item, place = record["item"], record["place"]
        if place == _NOTES:
            notes[item], exchanges[item] = json.loads(record["values"]), []
            continue
        mine = {
            name.partition(".")[2]: array
            for name, array in held.get(item, {}).items()
            if name.partition(".")[0] == str(place)
        }
        answer = Answer(json.loads(record["values"]), mine, record["outcome"], record["reason"])
        exchanges[item].append(Exchange(record["role"], record["capability"], json.loads(record["key"]), answer))
    return [Transcript(item, tuple(exchanges[item]), notes[item]) for item in notes]


def as_kept(transcript: Transcript) -> Transcript:
    """Return a transcript as it will be read back, so that rows made now and later are the same."""
    return Transcript(
        transcript.item_id,
        tuple(
            Exchange(e.role, e.capability, _plain(e.key), Answer(_plain(e.answer.values), *_rest(e.answer)))
            for e in transcript.exchanges
        ),
        _plain(transcript.notes),
    )


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(plain(value), allow_nan=False))


def _rest(answer: Answer) -> tuple[Any, ...]:
    arrays = {name: np.asarray(array) for name, array in answer.arrays.items()}
    return arrays, answer.outcome, answer.reason, answer.passing
