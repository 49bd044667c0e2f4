"""Regions that are made when they are looked at: run-length codes, mask files, boxes that need a picture's size."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from medground.imaging.regions import Region


@dataclass(frozen=True)
class Maker:
    """How to make one region.

    Attributes:
        make: returns the region; raises a :class:`~medground.errors.DataError` that names the row it came from.
        key: text that says what the region is made from; part of the dataset's fingerprint.
    """

    make: Callable[[], Region]
    key: str


class LazyRegions(Mapping[str, Region]):
    """Finding -> region, made anew at each look-up; which findings have one is known at once.

    Nothing is kept, so that 12,000 cases cost no more memory than their codes. Take ``dict(case.regions)`` where a
    case's regions are needed more than once.
    """

    def __init__(self, makers: Mapping[str, Maker]) -> None:
        self._makers = dict(makers)

    def __getitem__(self, finding: str) -> Region:
        return self._makers[finding].make()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __contains__(self, finding: object) -> bool:
        return finding in self._makers  # the inherited test would make the region

    def fingerprint(self, finding: str) -> str:
        """Return a hash of what a region is made from, without making it."""
        return hashlib.sha256(self._makers[finding].key.encode()).hexdigest()[:16]


def as_regions(parts: Mapping[str, Region | Maker]) -> Mapping[str, Region]:
    """Return regions by finding: a plain mapping where all of them are made, else a :class:`LazyRegions`."""
    regions = {finding: part for finding, part in parts.items() if isinstance(part, Region)}
    if len(regions) == len(parts):
        return regions
    makers = {f: p if isinstance(p, Maker) else Maker(partial(_itself, p), p.fingerprint()) for f, p in parts.items()}
    return LazyRegions(makers)


def _itself(region: Region) -> Region:
    return region
