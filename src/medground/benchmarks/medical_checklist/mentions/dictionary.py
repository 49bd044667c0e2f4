"""All names of a terminology found in one pass (Aho and Corasick, 1975): leftmost, then longest, without overlap."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from medground.benchmarks.medical_checklist.mentions.base import Mention
from medground.benchmarks.medical_checklist.mentions.boundaries import fold, is_whole_word
from medground.benchmarks.medical_checklist.semantic_types import in_benchmark
from medground.benchmarks.medical_checklist.terminologies.base import Terminology
from medground.benchmarks.medical_checklist.words import FUNCTION, SHOUTED
from medground.errors import ConfigError

SHORTEST = 2
VERSION = "dictionary 1"

# One pattern: names that must be written exactly so (acronyms), and the spelling of the name that ignores case.
_Pattern = tuple[frozenset[str], str | None]


class Dictionary:
    """Finds the names of a terminology.

    A name without any lower-case letter (CT, PET/CT) matches exactly; every other name ignores case. Where both match
    ("TOE", "toe"), the exact one stands. Blanks and hyphens
    are literal. Names of one character are dropped. Boundaries are checked before the longest match is chosen: chosen
    the other way round, "lung" in "lung abscesses" would be lost to "lung abscess".

    Args:
        terminology: concepts; those outside the fifteen types take no part.
        exclude: names (ignoring case) never to be found.

    Example:
        >>> from medground.benchmarks.medical_checklist.terminologies.base import Concept
        >>> liver = Concept("X1", "liver", ("liver",), ("T023",))
        >>> [m.text for m in Dictionary(Terminology({"X1": liver})).find("Liver, liverish")]
        ['Liver']
    """

    def __init__(self, terminology: Terminology, exclude: Sequence[str] = ()) -> None:
        self.terminology = terminology
        self.exclude = frozenset(fold(e) for e in exclude)
        self._concepts: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self._automaton = self._build()

    def _build(self) -> Any:
        import ahocorasick

        ids: dict[str, set[str]] = {}
        types: dict[str, set[str]] = {}
        patterns: dict[str, tuple[set[str], list[str]]] = {}
        for concept in self.terminology.concepts.values():
            tuis = in_benchmark(concept.tuis)
            for name in concept.names:
                folded = fold(name)
                if not tuis or self._is_no_term(name, folded):
                    continue
                exact, loose = patterns.setdefault(folded, (set(), []))
                key = name if is_acronym(name) else folded
                (exact.add if is_acronym(name) else loose.append)(name)
                ids.setdefault(key, set()).add(concept.concept_id)
                types.setdefault(key, set()).update(concept.tuis)
        automaton = ahocorasick.Automaton()
        for folded, (exact, loose) in patterns.items():
            # Of several spellings ("Paget disease", "paget disease") the first in order stands for all.
            automaton.add_word(folded, (len(folded), frozenset(exact), min(loose, default=None)))
        if not patterns:
            raise ConfigError("a terminology has no name of the fifteen types", expected="at least one")
        automaton.make_automaton()
        self._concepts = {key: (tuple(sorted(ids[key])), tuple(sorted(types[key]))) for key in ids}
        return automaton

    def _is_no_term(self, name: str, folded: str) -> bool:
        """Whether a name is too short, excluded, padded, or a function word ("all" and "IN" are names in UMLS)."""
        if len(name) < SHORTEST or folded in self.exclude or name != name.strip():
            return True
        return name in SHOUTED if is_acronym(name) else folded in FUNCTION

    def find(self, caption: str) -> list[Mention]:
        """Return the mentions of a caption from left to right."""
        if not caption:
            return []
        folded = fold(caption)
        best: dict[int, tuple[int, str, str]] = {}
        for last, (length, exact, loose) in self._automaton.iter(folded):
            end = last + 1
            start = end - length
            if start in best and best[start][0] >= end:
                continue
            if not is_whole_word(caption, start, end):
                continue
            written = caption[start:end]
            if written in exact:
                best[start] = (end, written, written)
            elif loose is not None:
                best[start] = (end, loose, folded[start:end])
        mentions, reached = [], 0
        for start in sorted(best):
            end, alias, key = best[start]
            if start < reached:
                continue
            ids, tuis = self._concepts[key]
            mentions.append(Mention(start, end, caption[start:end], alias, ids, tuis))
            reached = end
        return mentions

    @cached_property
    def _identity(self) -> str:
        held = repr((VERSION, self.terminology.fingerprint, sorted(self.exclude)))
        return hashlib.sha256(held.encode()).hexdigest()

    def fingerprint(self) -> str:
        """Return a hash of the terminology, the exclusions and the version of the rules."""
        return self._identity


def is_acronym(name: str) -> bool:
    """Whether a name has letters and none of them in lower case: CT, PET/CT, T2.

    Example:
        >>> is_acronym("CT"), is_acronym("X-ray"), is_acronym("12")
        (True, False, False)
    """
    return name.upper() == name and name.lower() != name
