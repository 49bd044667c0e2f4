"""UMLS Rich Release Format: MRCONSO and MRSTY, and MRREL where it is given.

Read as a stream: the types first, then only the names of concepts that have one of the fifteen. A name is kept when LAT
is ENG and SUPPRESS is N. No quoting rule applies: quotes are ordinary characters.

Source: UMLS Reference Manual, chapter 3 (RRF files). The Metathesaurus and subsets of it may not be passed on.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.benchmarks.medical_checklist.terminologies.base import (
    NO_NAME,
    NO_TYPE,
    OUTSIDE_TYPES,
    Concept,
    Terminology,
    cyclic,
    relations,
    wrong_fields,
)
from medground.errors import DataError

NO_ENGLISH = "no English unsuppressed name"
LICENCE = "UMLS Metathesaurus licence: neither names nor identifiers may be passed on"
_CONSO, _STY, _REL = 18, 6, 16


def read(folder: Path) -> Terminology:
    """Return the concepts of a folder that holds MRCONSO.RRF and MRSTY.RRF (optionally MRREL.RRF).

    Raises:
        DataError: a file is missing, not UTF-8, or has a row with the wrong number of fields.
    """
    with _without_collector():
        return _read(folder)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Hold the collector of cycles: it would walk through millions of names again and again, and none is in a cycle."""
    held = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if held:
            gc.enable()


def _read(folder: Path) -> Terminology:
    types = _types(folder / "MRSTY.RRF")
    names, preferred, rows = _names(folder / "MRCONSO.RRF", types)
    dropped = {cui: reason for cui in types.concepts if (reason := types.reason(cui, names))}
    concepts = {}
    # Names are given up one by one as concepts are made of them: both at once would be the peak of the memory.
    for cui in sorted(names):
        held = names.pop(cui)
        name = preferred.pop(cui, None)
        rule = "first kept row" if name is None else "flags"
        concepts[cui] = Concept(cui, name or held[0], tuple(sorted(set(held))), tuple(sorted(types.of(cui))), rule)
    parents = _parents(folder / "MRREL.RRF", set(concepts))
    remarks = {"rows": rows[0], "rows_kept": rows[1], "concepts_on_a_cycle": cyclic(parents)}
    return Terminology(concepts, parents, dropped=dropped, remarks=remarks, licence=LICENCE)


class _Types:
    """Concept -> its types and whether MRCONSO names it, one number a concept.

    A release has millions of concepts and few sets of types: each set is kept once.
    """

    UNTYPED = 0

    def __init__(self) -> None:
        self.sets: list[tuple[str, ...]] = [()]
        self.concepts: dict[str, int] = {}
        self._codes: dict[tuple[str, ...], int] = {(): self.UNTYPED}
        self._wanted: list[bool] = [False]
        self._seen: list[int] = []

    def add(self, cui: str, tui: str) -> None:
        """Give a concept a type."""
        before = self.sets[self.concepts.get(cui, self.UNTYPED)]
        if tui in before:
            return
        types = (*before, tui)
        code = self._codes.get(types)
        if code is None:
            code = self._codes[types] = len(self.sets)
            self.sets.append(types)
            self._wanted.append(not TYPES.keys().isdisjoint(types))
        self.concepts[cui] = code

    def see(self, cui: str) -> bool:
        """Note that MRCONSO has a concept; return whether it has one of the fifteen types.

        A code that is noted is kept as its complement, one shared number a set of types.
        """
        if not self._seen:
            self._seen = [~code for code in range(len(self.sets))]
        code = self.concepts.get(cui, self.UNTYPED)
        code = ~code if code < 0 else code
        self.concepts[cui] = self._seen[code]
        return self._wanted[code]

    def of(self, cui: str) -> tuple[str, ...]:
        """Return the types of a concept."""
        code = self.concepts[cui]
        return self.sets[~code if code < 0 else code]

    def reason(self, cui: str, names: Mapping[str, tuple[str, ...]]) -> str | None:
        """Return why a concept is left out, or None."""
        code = self.concepts[cui]
        if code >= 0:
            return NO_NAME
        if ~code == self.UNTYPED:
            return NO_TYPE
        if not self._wanted[~code]:
            return OUTSIDE_TYPES
        return None if cui in names else NO_ENGLISH


def _rows(path: Path, fields: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (line, fields) as bytes: decoding ten million rows to keep one in five would cost more than reading."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                row = line.split(b"|")
                if len(row) != fields + 1:  # every row ends with a bar
                    if not line.strip():
                        continue
                    raise wrong_fields(path, number, fields, len(row) - 1)
                yield number, row
    except OSError as error:
        raise DataError(
            "a file of the UMLS release cannot be read",
            where=path,
            got=error.strerror,
            fix="give the META folder of an unpacked release",
        ) from None


def _types(path: Path) -> _Types:
    types = _Types()
    for _, row in _rows(path, _STY):
        types.add(row[0].decode("ascii", "replace"), row[1].decode("ascii", "replace"))
    return types


def _names(path: Path, types: _Types) -> tuple[dict[str, tuple[str, ...]], dict[str, str], tuple[int, int]]:
    """Return names and preferred names of concepts of the fifteen types, and rows read and kept."""
    names: dict[str, tuple[str, ...]] = {}
    preferred: dict[str, str] = {}
    read, kept, last, cui, wanted = 0, 0, b"", "", False
    held: list[str] = []
    for number, row in _rows(path, _CONSO):
        read += 1
        if row[0] != last:  # rows of one concept lie together: decode its identifier once
            if held:
                names[cui] = (*names.get(cui, ()), *held)
                held = []
            last = row[0]
            cui = last.decode("ascii", "replace")
            wanted = types.see(cui)
        if row[1] != b"ENG" or row[16] != b"N":
            continue
        kept += 1
        if not wanted:
            continue
        try:
            name = row[14].decode("utf-8")
        except UnicodeDecodeError:
            raise DataError("a name is not UTF-8", where=f"{path}, line {number}", got=row[14][:40]) from None
        if not name.strip():
            continue
        held.append(name)
        if row[2] == b"P" and row[4] == b"PF" and row[6] == b"Y":
            preferred.setdefault(cui, name)
    if held:
        names[cui] = (*names.get(cui, ()), *held)
    return names, preferred, (read, kept)


def _parents(path: Path, concepts: set[str]) -> dict[str, frozenset[str]]:
    """Return child -> parents from unsuppressed PAR and CHD rows; nothing where the file is not given.

    In a row ``C1 | REL | C2`` the relation is the one that C2 has to C1: PAR means that C2 is the parent.
    """
    if not path.is_file():
        return {}
    pairs = []
    for _, row in _rows(path, _REL):
        if row[3] not in (b"PAR", b"CHD") or row[14] != b"N":
            continue
        first, second = row[0].decode("ascii", "replace"), row[4].decode("ascii", "replace")
        child, parent = (first, second) if row[3] == b"PAR" else (second, first)
        if child in concepts or parent in concepts:
            pairs.append((child, parent))
    return relations(pairs)
