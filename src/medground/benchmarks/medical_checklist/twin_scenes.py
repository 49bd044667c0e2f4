"""For each kind of term that phantoms can test: another scene in which the other term is true."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from medground.worlds.phantom import statements as language, twins
from medground.worlds.phantom.facts import ZONED, facts
from medground.worlds.phantom.scene import HEART, Scene, make_scene
from medground.worlds.phantom.statements import Statement, worded

KINDS = (
    "T046", "T082 side", "T047", "T082 third", "T074", "T046 absent", "T029 side", "T082 size", "T047", "T031",
    "T029 near", "T060", "T047 absent",
)  # fmt: skip
"""Semantic type and frame, in turn over the cases; T047 twice, for it has the most findings."""

_PLACES = 40

Part = tuple[str, str, str]


@dataclass(frozen=True)
class Twin:
    """Two scenes, and one sentence about each that differs in a term.

    Attributes:
        kind: of the term.
        tui: its semantic type.
        scene: where the first sentence is true and the second false.
        other: the other way round; all else is equal.
        first: the first sentence: before the term, the term, after it.
        second: the second.
        findings: what the sentences are about; nothing else in a caption may be.
        concepts: local identifiers of both terms.
    """

    kind: str
    tui: str
    scene: Scene
    other: Scene
    first: Part
    second: Part
    findings: tuple[str, ...]
    concepts: tuple[str, str]


def twin(kind: str, scene: Scene, rng: random.Random) -> Twin | None:
    """Return a twin of a scene for a kind of term, or None where there is none."""
    tui, _, frame = kind.partition(" ")
    made = _MAKERS[frame](kind, tui, scene, rng)
    return made if made is not None and _exact(made) else None


def _exact(made: Twin) -> bool:
    """Whether both sentences are true of their own scene and false of the other."""
    one, two = facts(made.scene), facts(made.other)
    pair = [_read(part) for part in (made.first, made.second)]
    if pair[0] is None or pair[1] is None:
        return False
    true = pair[0].holds(one) is True and pair[1].holds(two) is True
    return true and pair[0].holds(two) is False and pair[1].holds(one) is False


def _read(part: Part) -> Statement | None:
    found = language.said("".join(part) + ".")
    return found[0] if len(found) == 1 else None


def _finding(kind: str, tui: str, scene: Scene, rng: random.Random) -> Twin | None:
    """Another finding of the same type, in the same place."""
    held = language.TERMS[tui]
    if not held.keys() & set(scene.findings):
        # Few cases have what a rare type needs: give this one a finding of it.
        scene = scene.with_finding(rng.choice(sorted(held)))
    options = [
        (f, g) for f in sorted(held.keys() & set(scene.findings)) for g in sorted(held) if g not in scene.findings
    ]
    rng.shuffle(options)
    for f, g in options[:3]:
        other = twins.replaced(scene, f, g)
        fact = facts(scene, 64).findings[f]
        if other is None or fact.side == "both":
            continue
        words = {"s": fact.side or ""}
        frame = "present"
        if HEART not in (f, g) and fact.side:
            there = facts(other, 64).findings[g].third
            frame = "third" if fact.third and f in ZONED and g in ZONED and there == fact.third else "side"
            words["t"] = rng.choice(language.THIRDS[fact.third]) if frame == "third" and fact.third else ""
        pattern = rng.choice(language.PATTERNS[frame])
        return _of(kind, tui, (scene, other), pattern, "f", (rng.choice(held[f]), rng.choice(held[g])), words, (f, g))
    return None


def _absent(kind: str, tui: str, scene: Scene, rng: random.Random) -> Twin | None:
    """Return "no f" against "no g", of which one is there and the other is not."""
    held = language.TERMS[tui]
    options = [(f, g) for f in sorted(held) for g in sorted(held) if f not in scene.findings and g in scene.findings]
    rng.shuffle(options)
    for f, g in options[:3]:
        other = twins.replaced(scene, g, f)
        if other is not None:
            pattern = rng.choice(language.PATTERNS["absent"])
            terms = (rng.choice(held[f]), rng.choice(held[g]))
            return _of(kind, tui, (scene, other), pattern, "f", terms, {}, (f, g))
    return None


def _side(kind: str, tui: str, scene: Scene, rng: random.Random) -> Twin | None:
    found = facts(scene, 64)
    options = [f for f in found.present if f in language.LATERAL and found.findings[f].side in ("right", "left")]
    rng.shuffle(options)
    for f in options:
        other = twins.other_side(scene, f)
        if other is None:
            continue
        side = found.findings[f].side or ""
        back = "left" if side == "right" else "right"
        index = rng.randrange(len(language.SIDES[tui][side]))
        terms = (language.SIDES[tui][side][index], language.SIDES[tui][back][index])
        pattern = rng.choice(language.PATTERNS["side" if tui == "T082" else "hemithorax"])
        return _of(kind, tui, (scene, other), pattern, "s", terms, {"f": rng.choice(language.names(f))}, (f,))
    return None


def _third(kind: str, tui: str, scene: Scene, rng: random.Random) -> Twin | None:
    found = facts(scene, 64)
    options = [
        (f, t)
        for f in found.present
        if f in ZONED and found.findings[f].third and found.findings[f].side in ("right", "left")
        for t in language.THIRDS
        if t != found.findings[f].third
    ]
    rng.shuffle(options)
    for f, third in options[:3]:
        other = twins.other_third(scene, f, third)
        if other is None:
            continue
        fact = found.findings[f]
        terms = (rng.choice(language.THIRDS[fact.third or ""]), rng.choice(language.THIRDS[third]))
        words = {"f": rng.choice(language.names(f)), "s": fact.side or ""}
        return _of(kind, tui, (scene, other), rng.choice(language.PATTERNS["third"]), "t", terms, words, (f,))
    return None


def _size(kind: str, tui: str, scene: Scene, rng: random.Random) -> Twin | None:
    found = facts(scene, 64)
    options = [f for f in found.present if found.findings[f].size]
    rng.shuffle(options)
    for f in options:
        other = twins.other_size(scene, f)
        if other is not None:
            size = found.findings[f].size or ""
            terms = (size, "large" if size == "small" else "small")
            words = {"f": rng.choice(language.names(f))}
            return _of(kind, tui, (scene, other), rng.choice(language.PATTERNS["size"]), "z", terms, words, (f,))
    return None


def _near(kind: str, tui: str, scene: Scene, rng: random.Random) -> Twin | None:
    found = facts(scene, 64)
    options = [f for f in found.present if found.findings[f].near in language.LANDMARKS]
    rng.shuffle(options)
    for f in options[:1]:
        here = found.findings[f].near or ""
        for attempt in range(_PLACES):
            other = scene.with_finding(f, attempt)
            there = facts(other, 64).findings[f].near
            if there in language.LANDMARKS and there != here:
                terms = (rng.choice(language.LANDMARKS[here]), rng.choice(language.LANDMARKS[there or ""]))
                words = {"f": rng.choice(language.names(f))}
                return _of(kind, tui, (scene, other), rng.choice(language.PATTERNS["near"]), "l", terms, words, (f,))
    return None


def _view(kind: str, tui: str, scene: Scene, rng: random.Random) -> Twin | None:
    # Both views are asked for, so that neither leads nor words follow them.
    views = ("PA", "AP") if scene.view == "PA" else ("AP", "PA")
    one, other = (make_scene(scene.seed, scene.case, scene.findings, view=view) for view in views)
    index = rng.randrange(2)
    terms = (language.VIEWS[one.view][index], language.VIEWS[other.view][index])
    return _of(kind, tui, (one, other), rng.choice(language.PATTERNS["view"]), "v", terms, {}, ("",))


def _device(kind: str, tui: str, scene: Scene, rng: random.Random) -> Twin | None:
    first, second = rng.sample(sorted(language.DEVICES), 2)
    one, other = (make_scene(scene.seed, scene.case, scene.findings, devices=[d]) for d in (first, second))
    terms = (rng.choice(language.DEVICES[first]), rng.choice(language.DEVICES[second]))
    pattern = rng.choice(language.PATTERNS["device"])
    made = _of(kind, tui, (one, other), pattern, "d", terms, {}, ("",))
    return _with_articles(made)


def _with_articles(made: Twin) -> Twin:
    def fitted(part: Part) -> Part:
        left = language.article(part[0] + part[1])[: -len(part[1])]
        return left, part[1], part[2]

    return Twin(
        made.kind,
        made.tui,
        made.scene,
        made.other,
        fitted(made.first),
        fitted(made.second),
        made.findings,
        made.concepts,
    )


def _of(
    kind: str,
    tui: str,
    scenes: tuple[Scene, Scene],
    pattern: str,
    slot: str,
    terms: tuple[str, str],
    words: Mapping[str, str],
    findings: tuple[str, ...],
) -> Twin:
    parts = [worded(pattern, slot, term, words) for term in terms]
    concepts = (f"PH:{tui}:{terms[0]}", f"PH:{tui}:{terms[1]}")
    return Twin(kind, tui, scenes[0], scenes[1], parts[0], parts[1], findings, concepts)


def _by_type(kind: str, tui: str, scene: Scene, rng: random.Random) -> Twin | None:
    return {"T060": _view, "T074": _device}.get(tui, _finding)(kind, tui, scene, rng)


_MAKERS: Mapping[str, Callable[[str, str, Scene, random.Random], Twin | None]] = {
    "": _by_type,
    "absent": _absent,
    "side": _side,
    "third": _third,
    "size": _size,
    "near": _near,
}
