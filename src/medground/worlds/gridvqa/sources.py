"""Where the scenes of a run come from: drawn here, or read from a folder in the published layout."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from medground.identity import fingerprint_of
from medground.worlds.gridvqa.generate import Confusers, Variant, scenes
from medground.worlds.gridvqa.imports import read_released
from medground.worlds.gridvqa.world import Bucket, Scene, buckets


class Source(Protocol):
    """Scenes by bucket."""

    @property
    def buckets(self) -> list[Bucket]:
        """The buckets that it has, in order."""

    def scenes(self, bucket: Bucket) -> list[Scene]:
        """The scenes of one bucket, in order."""

    def fingerprint(self, bucket: Bucket | None = None) -> str:
        """A hash of everything that decides them, or those of one bucket."""


@dataclass(frozen=True)
class Drawn:
    """Scenes that are drawn when they are needed; see :func:`medground.worlds.gridvqa.generate.scene`."""

    variant: Variant
    densities: tuple[float, ...]
    per_bucket: int
    grid: int
    confusers: Confusers
    seed: int

    @property
    def buckets(self) -> list[Bucket]:
        """See :class:`Source`."""
        return buckets(self.densities)

    def scenes(self, bucket: Bucket) -> list[Scene]:
        """See :class:`Source`."""
        return scenes(self.variant, [bucket], self.per_bucket, seed=self.seed, grid=self.grid, confusers=self.confusers)

    def fingerprint(self, bucket: Bucket | None = None) -> str:
        """See :class:`Source`."""
        drawn = self if bucket is None else replace(self, densities=(bucket.density,))
        return fingerprint_of("drawn-1", repr(drawn), *([] if bucket is None else [bucket.key]))


@dataclass(frozen=True)
class Read:
    """Scenes of a folder in the published layout; all are read at once, their pictures are drawn anew."""

    root: Path
    split: str
    variant: str

    @cached_property
    def _held(self) -> dict[Bucket, list[Scene]]:
        held = defaultdict(list)
        for scene in read_released(self.root, self.split, variant=self.variant, whole=True):
            held[scene.bucket].append(scene)
        return dict(held)

    @property
    def buckets(self) -> list[Bucket]:
        """See :class:`Source`."""
        densities = sorted({bucket.density for bucket in self._held})
        return [bucket for bucket in buckets(densities) if bucket in self._held]

    def scenes(self, bucket: Bucket) -> list[Scene]:
        """See :class:`Source`."""
        return self._held[bucket]

    def fingerprint(self, bucket: Bucket | None = None) -> str:
        """See :class:`Source`."""
        held = [s for scenes in self._held.values() for s in scenes] if bucket is None else self._held[bucket]
        return fingerprint_of("read-1", self.variant, [repr(scene) for scene in held])

    def __getstate__(self) -> dict[str, Any]:
        """Leave the scenes behind: a task brings its own to another process."""
        return {name: value for name, value in self.__dict__.items() if name != "_held"}
