"""UMLS Rich Release Format: MRCONSO and MRSTY, and MRREL where it is given.

Read as a stream: the types first, then only the names of concepts that have one of the fifteen. A name is kept when LAT
is ENG and SUPPRESS is N. No quoting rule applies: quotes are ordinary characters.

Source: UMLS Reference Manual, chapter 3 (RRF files). The Metathesaurus and subsets of it may not be passed on.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.benchmarks.medical_checklist.terminologies.base import (
    NO_NAME,
    NO_TYPE,
    OUTSIDE_TYPES,
    Terminology,
    cyclic,
    relations,
    table,
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
    tuis = _types(folder / "MRSTY.RRF")
    wanted = {cui for cui, held in tuis.items() if not TYPES.keys().isdisjoint(held)}
    names, preferred, seen, rows = _names(folder / "MRCONSO.RRF", wanted)
    dropped = {cui: reason for cui in seen if (reason := _reason(cui, tuis, wanted, names))}
    dropped |= {cui: NO_NAME for cui in tuis if cui not in seen}
    concepts = table(names, {cui: set(tuis[cui]) for cui in names}, preferred, dropped)
    parents = _parents(folder / "MRREL.RRF", set(concepts))
    remarks = {"rows": rows[0], "rows_kept": rows[1], "concepts_on_a_cycle": cyclic(parents)}
    return Terminology(concepts, parents, dropped=dropped, remarks=remarks, licence=LICENCE)


def _reason(cui: str, tuis: dict[str, tuple[str, ...]], wanted: set[str], names: dict[str, list[str]]) -> str | None:
    """Return why a concept of MRCONSO is left out, or None."""
    if cui not in tuis:
        return NO_TYPE
    if cui not in wanted:
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


def _types(path: Path) -> dict[str, tuple[str, ...]]:
    """Return concept -> types. Equal tuples are one object: a release has millions of concepts and few type sets."""
    held: dict[str, tuple[str, ...]] = {}
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    for _, row in _rows(path, _STY):
        cui, tui = row[0].decode("ascii", "replace"), row[1].decode("ascii", "replace")
        before = held.get(cui, ())
        if tui not in before:
            types = (*before, tui)
            held[cui] = shared.setdefault(types, types)
    return held


def _names(
    path: Path, wanted: set[str]
) -> tuple[dict[str, list[str]], dict[str, tuple[str, str]], set[str], tuple[int, int]]:
    """Return names and preferred names of wanted concepts, all concepts seen, and rows read and kept."""
    names: dict[str, list[str]] = {}
    preferred: dict[str, tuple[str, str]] = {}
    seen: set[str] = set()
    read, kept, last, cui = 0, 0, b"", ""
    for number, row in _rows(path, _CONSO):
        read += 1
        if row[0] != last:  # rows of one concept lie together: decode its identifier once
            last = row[0]
            cui = last.decode("ascii", "replace")
            seen.add(cui)
        if row[1] != b"ENG" or row[16] != b"N":
            continue
        kept += 1
        if cui not in wanted:
            continue
        try:
            name = row[14].decode("utf-8")
        except UnicodeDecodeError:
            raise DataError("a name is not UTF-8", where=f"{path}, line {number}", got=row[14][:40]) from None
        if not name.strip():
            continue
        names.setdefault(cui, []).append(name)
        if row[2] == b"P" and row[4] == b"PF" and row[6] == b"Y":
            preferred.setdefault(cui, (name, "flags"))
    return names, preferred, seen, (read, kept)


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
