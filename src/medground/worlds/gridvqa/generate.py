"""Makes scenes: each from its own seed, so that any number of workers makes the same ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from medground.errors import ConfigError
from medground.worlds.gridvqa.board import Draws
from medground.worlds.gridvqa.released import released_scene
from medground.worlds.gridvqa.second import refusal, second_scene
from medground.worlds.gridvqa.spurious import spurious_scene
from medground.worlds.gridvqa.strict import strict_scene
from medground.worlds.gridvqa.world import Bucket, Scene

Variant = Literal["pure", "spurious"]
Confusers = Literal["strict", "released"]
Edition = Literal["second", "first"]


def scene(
    variant: Variant,
    bucket: Bucket,
    index: int,
    *,
    seed: int = 0,
    grid: int = 5,
    confusers: Confusers = "strict",
    edition: Edition = "second",
) -> Scene:
    """Make one scene; the same arguments give the same scene on every machine.

    Args:
        variant: ``pure`` (D_pure) or ``spurious`` (D_spur).
        bucket: depth, type, form and density.
        index: number of the scene in its bucket.
        seed: of the whole data set.
        grid: cells a side.
        confusers: ``strict`` places them by construction, ``released`` as the published generator does; the latter
            also lets directions repeat, in both variants, and belongs to the first edition.
        edition: ``second``: counts of look-alikes say nothing about an answer of yes or no, and every relation
            counts in comparisons too (:mod:`medground.worlds.gridvqa.second`); ``first``: the scenes of earlier
            releases, to the byte. D_spur is drawn alike in both, from other seeds.

    Raises:
        ConfigError: the bucket cannot be filled at this density on this grid.
    """
    scene_id = f"{variant}-{bucket.key}-{index:05d}"
    second = edition == "second" and confusers == "strict"
    draws = Draws(f"{'second' if second else confusers}/{seed}/{grid}/{scene_id}")
    if variant == "spurious":
        return spurious_scene(draws, bucket, grid, scene_id, distinct=confusers == "strict")
    if second:
        return second_scene(draws, bucket, grid, scene_id)
    return (strict_scene if confusers == "strict" else released_scene)(draws, bucket, grid, scene_id)


def scenes(
    variant: Variant,
    chosen: Sequence[Bucket],
    n: int,
    *,
    seed: int = 0,
    grid: int = 5,
    confusers: Confusers = "strict",
    edition: Edition = "second",
) -> list[Scene]:
    """Make n scenes a bucket, bucket after bucket."""
    return [
        scene(variant, bucket, i, seed=seed, grid=grid, confusers=confusers, edition=edition)
        for bucket in chosen
        for i in range(n)
    ]


def fillable(
    chosen: Sequence[Bucket],
    grid: int,
    *,
    confusers: Confusers = "strict",
    edition: Edition = "second",
    named: Collection[str] = (),
) -> tuple[list[Bucket], list[str]]:
    """Return the buckets that D_pure can fill on a grid, and one sentence for each that it cannot.

    Raises:
        ConfigError: none of them can be filled, or not one that is ``named`` by its key.
    """
    if edition == "first" or confusers == "released":
        return list(chosen), []
    reasons = {bucket.key: refusal(bucket, grid) for bucket in chosen}
    left_out = {
        key: f"{key} cannot be filled on a {grid} by {grid} grid: {reason}" for key, reason in reasons.items() if reason
    }
    filled = [bucket for bucket in chosen if bucket.key not in left_out]
    wanted = [left_out[key] for key in named if key in left_out]
    if wanted or not filled:
        raise ConfigError(
            "; ".join(wanted or left_out.values()),
            where="buckets",
            fix="raise the density or the grid, or leave it out",
        )
    return filled, list(left_out.values())
