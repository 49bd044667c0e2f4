"""Where the scenes of a run come from: drawn here, or read from a folder in the published layout."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from medground.identity import fingerprint_of
from medground.worlds.gridvqa.generate import Confusers, Edition, Variant, fillable, scenes
from medground.worlds.gridvqa.imports import read_released
from medground.worlds.gridvqa.world import EVERYTHING, Bucket, Only, Scene, buckets


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
    """Scenes that are drawn when they are needed; see :func:`medground.worlds.gridvqa.generate.scene`.

    ``only`` says which of the buckets; both variants leave out those that D_pure cannot fill.
    """

    variant: Variant
    densities: tuple[float, ...]
    per_bucket: int
    grid: int
    confusers: Confusers
    seed: int
    edition: Edition = "second"
    only: Only = EVERYTHING

    @property
    def buckets(self) -> list[Bucket]:
        """See :class:`Source`."""
        return self._fillable[0]

    @property
    def left_out(self) -> list[str]:
        """One sentence for each bucket that cannot be filled."""
        return self._fillable[1]

    @property
    def _fillable(self) -> tuple[list[Bucket], list[str]]:
        chosen = self.only.of(buckets(self.densities))
        return fillable(chosen, self.grid, confusers=self.confusers, edition=self.edition, named=self.only.keys)

    def scenes(self, bucket: Bucket) -> list[Scene]:
        """See :class:`Source`."""
        return scenes(
            self.variant,
            [bucket],
            self.per_bucket,
            seed=self.seed,
            grid=self.grid,
            confusers=self.confusers,
            edition=self.edition,
        )

    def fingerprint(self, bucket: Bucket | None = None) -> str:
        """See :class:`Source`."""
        drawn = self if bucket is None else replace(self, densities=(bucket.density,), only=EVERYTHING)
        return fingerprint_of("drawn-2", repr(drawn), *([] if bucket is None else [bucket.key]))


@dataclass(frozen=True)
class Read:
    """Scenes of a folder in the published layout; all are read at once, their pictures are drawn anew."""

    root: Path
    split: str
    variant: str
    only: Only = EVERYTHING

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
        return self.only.of([bucket for bucket in buckets(densities) if bucket in self._held])

    def scenes(self, bucket: Bucket) -> list[Scene]:
        """See :class:`Source`."""
        return self._held[bucket]

    def fingerprint(self, bucket: Bucket | None = None) -> str:
        """See :class:`Source`."""
        chosen = self.buckets if bucket is None else [bucket]
        held = [scene for each in chosen for scene in self._held[each]]
        return fingerprint_of("read-1", self.variant, [repr(scene) for scene in held])

    def __getstate__(self) -> dict[str, Any]:
        """Leave the scenes behind: a task brings its own to another process."""
        return {name: value for name, value in self.__dict__.items() if name != "_held"}
