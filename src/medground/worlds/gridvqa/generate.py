"""Makes scenes: each from its own seed, so that any number of workers makes the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from medground.worlds.gridvqa.board import Draws
from medground.worlds.gridvqa.released import released_scene
from medground.worlds.gridvqa.spurious import spurious_scene
from medground.worlds.gridvqa.strict import strict_scene
from medground.worlds.gridvqa.world import Bucket, Scene

Variant = Literal["pure", "spurious"]
Confusers = Literal["strict", "released"]


def scene(
    variant: Variant,
    bucket: Bucket,
    index: int,
    *,
    seed: int = 0,
    grid: int = 5,
    confusers: Confusers = "strict",
) -> Scene:
    """Make one scene; the same arguments give the same scene on every machine.

    Args:
        variant: ``pure`` (D_pure) or ``spurious`` (D_spur).
        bucket: depth, type, form and density.
        index: number of the scene in its bucket.
        seed: of the whole data set.
        grid: cells a side.
        confusers: ``strict`` places them by construction, ``released`` as the published generator does; the latter
            also lets directions repeat, in both variants.

    Raises:
        ConfigError: a strict scene has no room at this density on this grid.
    """
    scene_id = f"{variant}-{bucket.key}-{index:05d}"
    draws = Draws(f"{confusers}/{seed}/{grid}/{scene_id}")
    if variant == "spurious":
        return spurious_scene(draws, bucket, grid, scene_id, distinct=confusers == "strict")
    return (strict_scene if confusers == "strict" else released_scene)(draws, bucket, grid, scene_id)


def scenes(
    variant: Variant,
    chosen: Sequence[Bucket],
    n: int,
    *,
    seed: int = 0,
    grid: int = 5,
    confusers: Confusers = "strict",
) -> list[Scene]:
    """Make n scenes a bucket, bucket after bucket."""
    return [scene(variant, bucket, i, seed=seed, grid=grid, confusers=confusers) for bucket in chosen for i in range(n)]
