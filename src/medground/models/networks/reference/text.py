"""Any finding by name, without a tokenizer file: hashed words and character trigrams.

An unknown word still gets a vector, close to the vectors of words that share letters with it.
"""

from __future__ import annotations

import re
import zlib
from typing import Final

BUCKETS: Final = 1024
LENGTH: Final = 64
"""Features kept of one prompt; more are cut, fewer are padded with -1."""

_WORD = re.compile(r"[a-z0-9]+")


def features(prompt: str) -> list[int]:
    """Return the buckets of a prompt: one a word and one a character trigram, CRC-32 modulo ``BUCKETS``.

    Words are lower-cased and marked at both ends, so that ``mass`` in ``mass`` and in ``massive`` differ.
    """
    found: list[int] = []
    for word in _WORD.findall(prompt.lower()):
        marked = f"<{word}>"
        found.append(zlib.crc32(marked.encode()) % BUCKETS)
        found += [zlib.crc32(marked[i : i + 3].encode()) % BUCKETS for i in range(len(marked) - 2)]
    return found[:LENGTH]


def padded(prompts: list[str]) -> list[list[int]]:
    """Return the buckets of several prompts, padded with -1 to one length."""
    rows = [features(prompt) or [0] for prompt in prompts]
    longest = max(len(row) for row in rows)
    return [row + [-1] * (longest - len(row)) for row in rows]
