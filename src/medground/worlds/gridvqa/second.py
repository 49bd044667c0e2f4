"""D_pure, second edition: the number of look-alikes says nothing, and every relation counts.

Three promises, kept by construction:

* in existence questions, and in comparisons with relations, the answer is decided last: everything is placed but a
  few *swing* objects that fit the target, and these go inside the region (yes) or outside (no). A draft is given up for
  want of either place, whatever the answer is to be. So every count of objects by colour and shape has one distribution
  for both answers, and nothing that counts look-alikes beats a coin.
* every relation has an object in its confuser region, in comparisons too: without the relation its side counts more.
* where a larger count can change the answer, it does. An existence question answered "yes" cannot be changed so, nor a
  comparison by the side that it favours already: ``can_change`` of :class:`~medground.worlds.gridvqa.checker.Dropped`.

Existence questions without relations keep the number of *partial* look-alikes (one attribute of two) independent too;
that of objects that fit is their answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medground.errors import ConfigError
from medground.worlds.gridvqa.board import CLASSES, Draws
from medground.worlds.gridvqa.draft import (
    Draft,
    Side,
    answer,
    attributes_only,
    draft,
    kinds,
    sides,
    strangers,
)
from medground.worlds.gridvqa.language import Question
from medground.worlds.gridvqa.questions import ask
from medground.worlds.gridvqa.world import Answer, Bucket, Scene, occupied

ATTEMPTS = 20_000
"""Drafts of one scene before its bucket is refused."""


def second_scene(draws: Draws, bucket: Bucket, grid: int, scene_id: str, *, yes: bool | None = None) -> Scene:
    """Draw a scene of D_pure.

    Args:
        draws: the source of chance.
        bucket: depth, type, form and density.
        grid: cells a side.
        scene_id: its name.
        yes: the answer of an existence question or comparison; None: drawn, fifty to fifty. From the same chance, both
            answers have the same objects wherever there are relations: some lie elsewhere.

    Raises:
        ConfigError: the bucket cannot be filled on this grid, see :func:`refusal`.
    """
    reason = refusal(bucket, grid)
    if reason is not None:
        raise ConfigError(
            f"{bucket.key} cannot be filled on a {grid} by {grid} grid: {reason}",
            got=f"{occupied(grid, bucket.density)} objects at density {bucket.density:g}",
            fix="raise the density or the grid, or choose other buckets",
        )
    question = ask(draws, bucket)
    coin = draws.random() < 0.5
    for _ in range(ATTEMPTS):
        made = draft(draws, bucket, question, grid)
        reply = _fill(made, coin if yes is None else yes)
        if reply is not None:
            return made.scene(scene_id, "pure", reply)
    raise ConfigError(
        f"{bucket.key} has no layout on a {grid} by {grid} grid",
        got=f"{ATTEMPTS} drafts without one",
        fix="another density, or a larger grid",
    )


def refusal(bucket: Bucket, grid: int) -> str | None:
    """Return why a bucket of D_pure cannot be filled on a grid; None where it can."""
    size, need = occupied(grid, bucket.density), smallest(bucket)
    if grid < 3 and bucket.relational:
        return "three cells a side are needed for relations"
    if size < need:
        return f"a scene of D_pure needs {need} objects"
    if bucket.form == "count" and bucket.relational and size == need:
        return "its count would always be 1"
    return None


def smallest(bucket: Bucket) -> int:
    """Return the number of objects that a scene needs at least."""
    if bucket.type == "A":
        return 3
    if bucket.type == "CMP":
        relations = 2 * (bucket.depth - 1)
        return 2 * relations + 1 if relations else 3
    return 2 * bucket.depth + 1


def _fill(made: Draft, yes: bool) -> Answer | None:
    """Place everything; None where the draft has no room."""
    form, relational = made.question.form, made.bucket.relational
    if not relational:
        if form == "count":
            return attributes_only(made)
        return (_plain_comparison if form == "compare" else _plain_existence)(made, yes)
    where = _stand(made)
    if where is None:
        return None
    if form == "compare":
        return _comparison(made, where, yes)
    return _count(made, where[0]) if form == "count" else _existence(made, where[0], yes)


def _stand(made: Draft) -> list[Side] | None:
    """Place the anchors and return the regions of every clause; None where one of them has no free cell."""
    cells = made.draws.several(range(made.board.cells), len(made.question.anchors))
    where = sides(made.board, made.question, cells)
    if not all(s.valid and all(s.confusers) for s in where):
        return None
    made.anchor(cells)
    return where


def _count(made: Draft, where: Side) -> Answer | None:
    draws, target = made.draws, kinds(made.question.clauses[0])
    most = min(made.left - len(where.confusers), where.valid.bit_count())
    n = 1 + draws.below(most)
    lures = len(where.confusers)
    lures += draws.below(min(made.left - n, where.outside.bit_count()) - lures + 1)
    if not (made.scatter(n, where.valid, target, "target") and _lure(made, where, target, lures)):
        return None
    _rest(made)
    return n


def _existence(made: Draft, where: Side, yes: bool) -> Answer | None:
    draws, target = made.draws, kinds(made.question.clauses[0])
    least = len(where.confusers) + 1
    most = min(made.left, where.outside.bit_count())
    if most < least:
        return None
    alike = least + draws.below(most - least + 1)
    swing = 1 if draws.random() < 0.5 else 1 + draws.below(alike - least + 1)
    if not (_lure(made, where, target, alike - swing) and _swing(made, where, target, swing, yes)):
        return None
    _rest(made)
    return "yes" if yes else "no"


@dataclass(frozen=True, slots=True)
class _Plan:
    """Numbers of a comparison: targets on both sides whatever the answer, swing, lures a region, further lures."""

    first: int
    second: int
    swing: int
    extra: tuple[int, int]

    @property
    def each(self) -> tuple[int, int]:
        """Lures in every confuser region of a side: enough for dropping its relation to change the answer."""
        return self.second - self.first + 1, self.first + self.swing - self.second


def _comparison(made: Draft, where: Sequence[Side], yes: bool) -> Answer | None:
    plan = _plan(made.draws, made.left, len(where[0].confusers))
    if plan is None:
        return None
    targets = [kinds(clause) for clause in made.question.clauses]
    for spot, target, each, extra in zip(where, targets, plan.each, plan.extra, strict=True):
        for region in spot.confusers:
            if not made.scatter(each, region, target, "lure"):
                return None
        if not made.scatter(extra, spot.outside, target, "lure"):
            return None
    for n, spot, target in zip((plan.first, plan.second), where, targets, strict=True):
        if not made.scatter(n, spot.valid, target, "target"):
            return None
    if not _swing(made, where[0], targets[0], plan.swing, yes):
        return None
    _rest(made)
    return answer(made.question, plan.first + (plan.swing if yes else 0), plan.second)


def _plan(draws: Draws, room: int, relations: int) -> _Plan | None:
    """Draw the numbers of a comparison that fit into ``room`` objects; None where these do not."""
    swing = 1 if draws.random() < 0.7 else 2
    first = draws.below(1 + max(0, (room - 2 * relations - 1) // 2))
    second = first + draws.below(swing)
    plan = _Plan(first, second, swing, (0, 0))
    left = room - first - second - swing - relations * sum(plan.each)
    if left < 0:
        return None
    extra = draws.below(left + 1)
    one = draws.below(extra + 1)
    return _Plan(first, second, swing, (one, extra - one))


def _plain_existence(made: Draft, yes: bool) -> Answer:
    """Place the swing as targets, or as objects that share nothing with one."""
    draws, target = made.draws, kinds(made.question.clauses[0])
    plain = strangers(made.question, targets=False)
    swing = 1 if draws.random() < 0.5 else 1 + draws.below(made.size)
    made.scatter(made.left - swing, made.board.full, plain, "distractor")
    if yes:
        made.scatter(swing, made.board.full, target, "target")
    else:
        made.scatter(swing, made.board.full, _unlike(made.question), "distractor")
    return "yes" if yes else "no"


def _unlike(question: Question) -> list[int]:
    """Return the classes that share neither colour nor shape with the target."""
    target = question.clauses[0].target
    return [i for i, (colour, shape) in enumerate(CLASSES) if colour != target.colour and shape != target.shape]


def _plain_comparison(made: Draft, yes: bool) -> Answer:
    """Draw how many objects both sides have together, then which side has more of them."""
    draws = made.draws
    both = 3 + draws.below(made.left - 2)
    half = both // 2
    first = half + 1 + draws.below(both - 1 - half) if yes else 1 + draws.below(half)
    for n, clause in zip((first, both - first), made.question.clauses, strict=True):
        made.scatter(n, made.board.full, kinds(clause), "target")
    _rest(made)
    return answer(made.question, first, both - first)


def _lure(made: Draft, where: Side, target: Sequence[int], n: int) -> bool:
    """Place n lures outside the region: one in every confuser region first, then rather there than elsewhere."""
    for region in where.confusers:
        if not made.scatter(1, region, target, "lure"):
            return False
    for _ in range(n - len(where.confusers)):
        roomy = [region for region in where.confusers if made.free(region)]
        near = roomy and made.draws.random() < 0.5
        if not made.scatter(1, made.draws.pick(roomy) if near else where.outside, target, "lure"):
            return False
    return True


def _swing(made: Draft, where: Side, target: Sequence[int], n: int, yes: bool) -> bool:
    """Place n objects that fit the target inside the region or outside; False unless both have room for them."""
    if min(made.free(where.valid).bit_count(), made.free(where.outside).bit_count()) < n:
        return False
    return made.scatter(n, where.valid if yes else where.outside, target, "target" if yes else "lure")


def _rest(made: Draft) -> None:
    """Fill up to the density with objects that fit no anchor and no target."""
    made.scatter(made.left, made.board.full, strangers(made.question, targets=False), "distractor")
