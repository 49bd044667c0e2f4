"""What every terminology comes to: concepts with names and types, and which concept lies above which.

A reader is a file of this folder. It returns a ``Terminology``; the licence of the source stays with the user's copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from medground.benchmarks.medical_checklist.semantic_types import in_benchmark
from medground.errors import DataError

OUTSIDE_TYPES = "no type of the fifteen"
NO_TYPE = "no type"
NO_NAME = "no name"


@dataclass(frozen=True, slots=True)
class Concept:
    """One meaning with all its names.

    Attributes:
        concept_id: identifier of the source (a CUI, a code, or a local one).
        preferred: the name that the source prefers.
        names: sorted set of names as spelled.
        tuis: all semantic types, sorted; types outside the fifteen too.
        preferred_by: the rule that chose ``preferred``.
    """

    concept_id: str
    preferred: str
    names: tuple[str, ...]
    tuis: tuple[str, ...]
    preferred_by: str = "first name"

    @property
    def benchmark_tuis(self) -> tuple[str, ...]:
        """The types of this concept that are one of the fifteen."""
        return in_benchmark(self.tuis)


@dataclass(frozen=True)
class Terminology:
    """Concepts of the fifteen types and their relations.

    Attributes:
        concepts: by identifier, in sorted order.
        parents: child -> concepts one step up by ``is_a`` (or PAR).
        wholes: part -> concepts one step up by ``part_of``.
        overlaps: concept -> concepts that may be true of the same thing, either way ("cyst" and "bulla").
        dropped: identifier -> why the concept was left out.
        remarks: what else the reader counted (kind -> number).
        licence: what the source says of passing its names on.
    """

    concepts: Mapping[str, Concept]
    parents: Mapping[str, frozenset[str]] = field(default_factory=dict)
    wholes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    overlaps: Mapping[str, frozenset[str]] = field(default_factory=dict, kw_only=True)
    dropped: Mapping[str, str] = field(default_factory=dict)
    remarks: Mapping[str, int] = field(default_factory=dict)
    licence: str = "unknown"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over names, types and relations; the order of a file's rows does not enter it."""
        digest = hashlib.sha256()
        for c in self.concepts.values():
            digest.update(repr((c.concept_id, c.names, c.tuis)).encode())
        for relation in (self.parents, self.wholes, self.overlaps):
            digest.update(repr(sorted((k, sorted(v)) for k, v in relation.items())).encode())
        return digest.hexdigest()

    def above(self, concept_id: str) -> frozenset[str]:
        """Return every ancestor and whole of a concept, at any distance; safe on cycles.

        A replacement by one of them leaves a caption true.
        """
        held = self._above.get(concept_id)
        return self._climb(concept_id) if held is None else held

    @cached_property
    def by_kind(self) -> Terminology:
        """The same terminology with ``is_a`` alone."""
        return Terminology(self.concepts, self.parents) if self.wholes or self.overlaps else self

    def related(self, first: Iterable[str], second: Iterable[str]) -> bool:
        """Whether a concept of ``first`` lies above one of ``second``, the other way round, or both may be true."""
        a, b = frozenset(first), frozenset(second)
        if any(not b.isdisjoint(self.overlaps.get(c, ())) for c in a):
            return True
        return any(not b.isdisjoint(self.above(c)) for c in a) or any(not a.isdisjoint(self.above(c)) for c in b)

    @cached_property
    def _above(self) -> dict[str, frozenset[str]]:
        return {}

    def _climb(self, concept_id: str) -> frozenset[str]:
        reached: set[str] = set()
        stack = [concept_id]
        while stack:
            current = stack.pop()
            for up in (*self.parents.get(current, ()), *self.wholes.get(current, ())):
                if up not in reached:
                    reached.add(up)
                    stack.append(up)
        reached.discard(concept_id)
        self._above[concept_id] = frozenset(reached)
        return self._above[concept_id]

    def strings_of_several_concepts(self) -> dict[str, list[str]]:
        """Return lower-cased strings that name more than one concept, with the concepts."""
        held: dict[str, set[str]] = {}
        for concept in self.concepts.values():
            for name in concept.names:
                held.setdefault(name.lower(), set()).add(concept.concept_id)
        return {name: sorted(ids) for name, ids in sorted(held.items()) if len(ids) > 1}

    def parent_child_pairs(self) -> list[tuple[str, str]]:
        """Return unordered pairs that are one ``is_a`` step apart, both inside the terminology."""
        pairs = {
            (min(child, parent), max(child, parent))
            for child, parents in self.parents.items()
            for parent in parents
            if child in self.concepts and parent in self.concepts
        }
        return sorted(pairs)


def cyclic(relation: Mapping[str, frozenset[str]]) -> int:
    """Return how many concepts lie above themselves: on a cycle of a relation that should have none."""
    on_cycle = 0
    for start in relation:
        seen: set[str] = set()
        stack = list(relation[start])
        while stack:
            current = stack.pop()
            if current == start:
                on_cycle += 1
                break
            if current not in seen:
                seen.add(current)
                stack.extend(relation.get(current, ()))
    return on_cycle


def relations(pairs: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Return (child, parent) pairs as child -> parents, sorted by child."""
    held: dict[str, set[str]] = {}
    for child, parent in pairs:
        if child != parent:
            held.setdefault(child, set()).add(parent)
    return {child: frozenset(held[child]) for child in sorted(held)}


def lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield (number from 1, line without its end) of a UTF-8 file, cut at ``\n`` alone.

    Strings of terminologies hold U+2028 and U+0085, at which ``splitlines`` would cut.

    Raises:
        DataError: the file cannot be opened or is not UTF-8.
    """
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                yield number, line.removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise DataError("a terminology file cannot be read", where=path, got=error.strerror) from None
    except UnicodeDecodeError as error:
        raise DataError(
            "a terminology file is not UTF-8",
            where=path,
            got=f"byte {error.object[error.start]:#04x} near byte {error.start}",
            fix=f"iconv -f LATIN1 -t UTF-8 {path.name}",
        ) from None


def wrong_fields(path: Path, line: int, expected: int, got: int) -> DataError:
    """Return the error for a row with too few or too many fields."""
    return DataError("a row has the wrong number of fields", where=f"{path}, line {line}", expected=expected, got=got)


def table(
    names: Mapping[str, list[str]],
    tuis: Mapping[str, set[str]],
    preferred: Mapping[str, tuple[str, str]],
    dropped: dict[str, str],
) -> dict[str, Concept]:
    """Return the concepts that have a name and one of the fifteen types; note the others in ``dropped``.

    Args:
        names: identifier -> names in the file's order.
        tuis: identifier -> all types.
        preferred: identifier -> (name, rule).
        dropped: filled with identifier -> reason.
    """
    concepts = {}
    for concept_id in sorted(set(names) | set(tuis)):
        held, types = names.get(concept_id, []), tuple(sorted(tuis.get(concept_id, ())))
        reason = _why_dropped(held, types)
        if reason:
            dropped.setdefault(concept_id, reason)
            continue
        name, rule = preferred.get(concept_id) or (held[0], "first kept row")
        concepts[concept_id] = Concept(concept_id, name, tuple(sorted(set(held))), types, rule)
    return concepts


def _why_dropped(names: list[str], types: tuple[str, ...]) -> str | None:
    if not names:
        return NO_NAME
    if not types:
        return NO_TYPE
    return None if in_benchmark(types) else OUTSIDE_TYPES
