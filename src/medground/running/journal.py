"""Answers of expensive items, written down one by one while their chunk is under way.

One file a chunk; a record is a line of JSON (chunk, item, lengths, hash) and then the bytes of the item's table and
arrays. What a kill left half written at the end is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path
from typing import BinaryIO

from medground.benchmarks.requests import Transcript
from medground.running import predictions


class Journal:
    """The journal of one chunk.

    Args:
        path: its file; made with the first record. None: there is none, and what a kill ends is asked again.
        chunk: name of the chunk: records of another are ignored.
    """

    def __init__(self, path: Path | None, chunk: str) -> None:
        self._path, self._chunk = path, chunk
        self._lock = threading.Lock()

    def add(self, transcript: Transcript) -> None:
        """Append what was said about one item; it is on the disk when this returns.

        Raises:
            OSError: the disk is full or the folder cannot be written.
        """
        if self._path is None:
            return
        table, arrays = predictions.encode([transcript])
        body = table + (arrays or b"")
        head = {
            "chunk": self._chunk,
            "table": len(table),
            "arrays": None if arrays is None else len(arrays),
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        with self._lock:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(json.dumps(head).encode() + b"\n" + body)
                file.flush()
                os.fsync(file.fileno())

    def read(self) -> dict[str, Transcript]:
        """Return item id -> what was said, of the records that are whole, and cut off what is not."""
        held: dict[str, Transcript] = {}
        if self._path is None or not self._path.exists():
            return held
        with self._path.open("r+b") as file:
            whole = 0
            while (transcript := self._next(file)) is not None:
                held[transcript.item_id] = transcript
                whole = file.tell()
            file.truncate(whole)
        return held

    def _next(self, file: BinaryIO) -> Transcript | None:
        try:
            head = json.loads(file.readline())
            if head["chunk"] != self._chunk:
                return None
            table = file.read(head["table"])
            arrays = None if head["arrays"] is None else file.read(head["arrays"])
            if hashlib.sha256(table + (arrays or b"")).hexdigest() != head["sha256"]:
                return None
        except (ValueError, KeyError, TypeError):
            return None
        (transcript,) = predictions.decode(table, arrays)
        return transcript
