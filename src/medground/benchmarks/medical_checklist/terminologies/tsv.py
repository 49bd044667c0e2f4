"""A plain table: ``concept_id, tui, term, preferred`` with a header, tabs between, no quoting.

Relations may stand beside it in a second table ``child, parent, kind`` with the kinds ``is_a``, ``part_of`` and
``overlaps`` (both may be true of one thing; read either way).
"""

from __future__ import annotations

from pathlib import Path

from medground.benchmarks.medical_checklist.terminologies.base import (
    Terminology,
    cyclic,
    lines,
    relations,
    table,
    wrong_fields,
)
from medground.errors import DataError

_HEADER = ["concept_id", "tui", "term", "preferred"]
_RELATIONS = ["child", "parent", "kind"]


def read(path: Path, relations_path: Path | None = None) -> Terminology:
    """Return the concepts of a table.

    Args:
        path: the table of terms.
        relations_path: the table of relations; by default ``relations.tsv`` beside it, where there is one.

    Raises:
        DataError: a header, a row or a kind of relation is not as described.
    """
    names: dict[str, list[str]] = {}
    tuis: dict[str, set[str]] = {}
    preferred: dict[str, tuple[str, str]] = {}
    dropped: dict[str, str] = {}
    for _, (concept_id, tui, term, first) in _rows(path, _HEADER):
        tuis.setdefault(concept_id, set()).update({tui} - {""})
        held = names.setdefault(concept_id, [])
        if term and term not in held:
            held.append(term)
        if term and first == "1":
            preferred.setdefault(concept_id, (term, "marked"))
    concepts = table(names, tuis, preferred, dropped)
    parents, wholes, overlaps = _relations(
        relations_path or path.with_name("relations.tsv"), required=relations_path is not None
    )
    remarks = {"concepts_on_a_cycle": cyclic(parents) + cyclic(wholes)}
    return Terminology(concepts, parents, wholes, dict(sorted(dropped.items())), remarks, overlaps=overlaps)


def _rows(path: Path, header: list[str]) -> list[tuple[int, list[str]]]:
    rows = []
    for number, line in lines(path):
        row = line.removeprefix("\ufeff").split("\t") if number == 1 else line.split("\t")
        if number == 1:
            if row != header:
                raise DataError("a table has another header", where=path, expected=header, got=row)
        elif line.strip():
            if len(row) != len(header):
                raise wrong_fields(path, number, len(header), len(row))
            rows.append((number, row))
    return rows


_Relation = dict[str, frozenset[str]]


def _relations(path: Path, *, required: bool) -> tuple[_Relation, _Relation, _Relation]:
    if not required and not path.is_file():
        return {}, {}, {}
    pairs: dict[str, list[tuple[str, str]]] = {"is_a": [], "part_of": [], "overlaps": []}
    for number, (child, parent, kind) in _rows(path, _RELATIONS):
        if kind not in pairs:
            raise DataError(
                "an unknown kind of relation", where=f"{path}, line {number}", expected=list(pairs), got=kind
            )
        pairs[kind].append((child, parent))
    either_way = [*pairs["overlaps"], *((b, a) for a, b in pairs["overlaps"])]
    return relations(pairs["is_a"]), relations(pairs["part_of"]), relations(either_way)
