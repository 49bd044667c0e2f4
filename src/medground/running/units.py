"""An item on its way through the stages, and the chunk whose items arrive in any order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from medground.benchmarks.base import Item, Measured
from medground.benchmarks.requests import Transcript
from medground.running.chunks import Failure, Picture
from medground.running.plan import Chunk


@dataclass
class Gathering:
    """A chunk whose items arrive in any order.

    Attributes:
        chunk: which.
        seal: of its predictions, where they are kept already.
        unsaid: positions of items about which nothing was said: their failures belong to the predictions.
    """

    chunk: Chunk
    measured: dict[int, Measured] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)
    transcripts: dict[int, Transcript] = field(default_factory=dict)
    pictures: dict[int, list[Picture]] = field(default_factory=dict)
    replies: dict[int, Transcript] = field(default_factory=dict)
    seal: str | None = None
    unsaid: set[int] = field(default_factory=set)

    def complete(self) -> bool:
        """Return whether every item has arrived."""
        return len(self.measured) == len(self.chunk.items)


@dataclass
class Unit:
    """One item on its way. It holds its data only as long as a stage needs them.

    Attributes:
        order: among all units of its task.
        in_memory: whether it counts among the decoded items in memory.
    """

    order: int
    item: Item
    gathering: Gathering
    position: int
    loaded: Any = None
    transcript: Transcript | None = None
    measured: Measured | None = None
    in_memory: bool = False


def units_of(chunks: Sequence[Chunk]) -> Iterator[Unit]:
    """Yield one unit an item, in the order of the plan."""
    order = count()
    for chunk in chunks:
        gathering = Gathering(chunk)
        for position, item in enumerate(chunk.items):
            yield Unit(next(order), item, gathering, position)
