"""A terminology by kind and path, as a command or a build asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from medground.benchmarks.medical_checklist.terminologies import embedded, ncit, obo, pubtator, rrf, tsv
from medground.benchmarks.medical_checklist.terminologies.base import Terminology
from medground.errors import ConfigError

Kind = Literal["embedded", "umls", "ncit", "obo", "medmentions", "tsv"]


def open_terminology(
    kind: Kind, path: Path | None = None, *, tui: str | None = None, root: str | None = None
) -> Terminology:
    """Return a terminology.

    Args:
        kind: which reader.
        path: its file, or its folder for ``umls``.
        tui: the type that an OBO ontology stands for.
        root: the term of an OBO ontology whose subtree is meant.

    Raises:
        ConfigError: a path or type is missing, or not asked for.
    """
    if kind == "embedded":
        return embedded.read()
    if path is None:
        raise ConfigError("a terminology needs a path", where=kind, fix="--terminology-path PATH")
    if kind == "obo":
        if tui is None:
            raise ConfigError("an ontology needs a semantic type", where=path, fix="--terminology-type T023")
        return obo.read(path, tui=tui, root=root)
    readers = {"umls": rrf.read, "ncit": ncit.read, "medmentions": pubtator.read, "tsv": tsv.read}
    return readers[kind](path)
