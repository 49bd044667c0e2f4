"""NCI Thesaurus, flat file: tab-separated, without a header.

Columns: code, IRI, parents (bars between), synonyms (bars between, the preferred name first), definition, display name,
concept status, semantic types (bars between). Retired and obsolete concepts are left out.
"""

from __future__ import annotations

from pathlib import Path

from medground.benchmarks.medical_checklist.semantic_types import tui_of
from medground.benchmarks.medical_checklist.terminologies.base import (
    Terminology,
    cyclic,
    lines,
    relations,
    table,
    wrong_fields,
)

_FIELDS = 8
_WITHDRAWN = ("retired", "obsolete")
LICENCE = "NCI Thesaurus: CC BY 4.0, with attribution (see the licence that came with the file)"


def read(path: Path) -> Terminology:
    """Return the concepts of ``Thesaurus.txt``.

    Raises:
        DataError: the file cannot be read, is not UTF-8, or has a row with other than eight fields.
    """
    names: dict[str, list[str]] = {}
    tuis: dict[str, set[str]] = {}
    preferred: dict[str, tuple[str, str]] = {}
    dropped: dict[str, str] = {}
    parents: list[tuple[str, str]] = []
    for number, line in lines(path):
        if not line:
            continue
        row = line.split("\t")
        if len(row) != _FIELDS:
            raise wrong_fields(path, number, _FIELDS, len(row))
        code, _, above, synonyms, _, _, status, types = row
        if any(word in status.casefold() for word in _WITHDRAWN):
            dropped[code] = "status"
            continue
        names[code] = [name for name in synonyms.split("|") if name]
        tuis[code] = {tui_of(name) for name in types.split("|") if name}
        if names[code]:
            preferred[code] = (names[code][0], "first synonym")
        parents.extend((code, parent) for parent in above.split("|") if parent)
    concepts = table(names, tuis, preferred, dropped)
    held = relations(pair for pair in parents if pair[0] not in dropped or pair[1] in concepts)
    remarks = {"concepts_on_a_cycle": cyclic(held)}
    return Terminology(concepts, held, dropped=dict(sorted(dropped.items())), remarks=remarks, licence=LICENCE)
