"""OBO 1.2 and 1.4 flat files: Uberon, the Human Disease Ontology, and others like them.

An ontology has no semantic types: the caller names the one that its terms, or the terms below a root, stand for.
Names are the term's name and its EXACT synonyms; broader, narrower and related ones are kept apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from medground.benchmarks.medical_checklist.semantic_types import TYPES
from medground.benchmarks.medical_checklist.terminologies.base import (
    Concept,
    Terminology,
    cyclic,
    lines,
    relations,
)
from medground.errors import ConfigError, DataError

_SYNONYM = re.compile(r'"((?:[^"\\]|\\.)*)"\s+(EXACT|BROAD|NARROW|RELATED)?')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "W": " "}


@dataclass(slots=True)
class Term:
    """One [Term] stanza."""

    term_id: str = ""
    name: str = ""
    exact: list[str] = field(default_factory=list)
    other_synonyms: list[tuple[str, str]] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    wholes: list[str] = field(default_factory=list)
    umls: list[str] = field(default_factory=list)
    obsolete: bool = False


def terms(path: Path) -> Iterator[Term]:
    """Yield every [Term] stanza of a file, obsolete ones too.

    Raises:
        DataError: the file cannot be read, or a term has no id.
    """
    current: Term | None = None
    for number, line in lines(path):
        text = line.strip()
        if text.startswith("["):
            if current is not None:
                yield _checked(current, path, number)
            current = Term() if text == "[Term]" else None
        elif current is not None and text and not text.startswith("!"):
            _take(current, text)
    if current is not None:
        yield _checked(current, path, None)


def read(path: Path, *, tui: str, root: str | None = None) -> Terminology:
    """Return the terms of an ontology, or of the ``is_a`` subtree below ``root``, all with one semantic type.

    Args:
        path: the OBO file.
        tui: one of the fifteen types.
        root: identifier of a term; it and its descendants are kept.
    """
    if tui not in TYPES:
        raise ConfigError("an ontology needs one of the fifteen types", where=path, expected=list(TYPES), got=tui)
    held: dict[str, Term] = {}
    dropped: dict[str, str] = {}
    for term in terms(path):
        if term.obsolete:
            dropped[term.term_id] = "obsolete"
        elif not term.name:
            dropped[term.term_id] = "no name"
        else:
            held[term.term_id] = term
    parents = relations((t.term_id, up) for t in held.values() for up in t.parents)
    wholes = relations((t.term_id, up) for t in held.values() for up in t.wholes)
    kept = subtree(parents, root) & set(held) if root else set(held)
    dropped |= {term_id: "outside the subtree" for term_id in held if term_id not in kept}
    concepts = {
        term_id: Concept(
            term_id, held[term_id].name, tuple(sorted({held[term_id].name, *held[term_id].exact})), (tui,), "name"
        )
        for term_id in sorted(kept)
    }
    return Terminology(concepts, parents, wholes, dropped, {"concepts_on_a_cycle": cyclic(parents)})


def subtree(parents: dict[str, frozenset[str]], root: str) -> set[str]:
    """Return a term and everything below it by ``is_a``."""
    children: dict[str, list[str]] = {}
    for child, above in parents.items():
        for parent in above:
            children.setdefault(parent, []).append(child)
    reached, stack = {root}, [root]
    while stack:
        for child in children.get(stack.pop(), ()):
            if child not in reached:
                reached.add(child)
                stack.append(child)
    return reached


def _take(term: Term, text: str) -> None:
    """Read one ``tag: value`` line into a stanza."""
    tag, _, value = text.partition(":")
    value = value.strip()
    if tag == "synonym":
        if match := _SYNONYM.match(value):
            name, scope = _unescaped(match[1]), match[2] or "RELATED"
            if scope == "EXACT":
                term.exact.append(name)
            else:
                term.other_synonyms.append((name, scope))
        return
    bare = re.split(r"\s+!\s*|\s+\{", value, maxsplit=1)[0].strip() if tag != "name" else value
    if tag == "id":
        term.term_id = bare
    elif tag == "name":
        term.name = _unescaped(value)
    elif tag == "is_a":
        term.parents.append(bare)
    elif tag == "relationship" and bare.startswith("part_of "):
        term.wholes.append(bare.split(maxsplit=1)[1])
    elif tag == "xref" and bare.startswith("UMLS_CUI:"):
        term.umls.append(bare.removeprefix("UMLS_CUI:").split()[0])
    elif tag == "is_obsolete":
        term.obsolete = bare == "true"


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]), text)


def _checked(term: Term, path: Path, line: int | None) -> Term:
    if not term.term_id:
        where = f"{path}, the stanza before line {line}" if line else f"{path}, the last stanza"
        raise DataError("a term has no id", where=where, expected="id: ...")
    return term
