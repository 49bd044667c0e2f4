"""The fifteen UMLS semantic types of the benchmark.

Type names and identifiers are from the UMLS Semantic Network, which may be used openly with acknowledgement.
Types below one of the fifteen in the tree (neoplasms, symptoms, findings) are not part of the benchmark: types are
compared for equality, never by descent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class SemanticType(NamedTuple):
    """One type: the benchmark's label, the network's identifier and exact name, abbreviation and group."""

    tui: str
    label: str
    name: str
    abbreviation: str
    group: str


TYPES: dict[str, SemanticType] = {
    t.tui: t
    for t in (
        SemanticType("T082", "Spatial Concept", "Spatial Concept", "spco", "CONC"),
        SemanticType("T046", "Pathologic Function", "Pathologic Function", "patf", "DISO"),
        SemanticType("T023", "Body Part or Organ", "Body Part, Organ, or Organ Component", "bpoc", "ANAT"),
        SemanticType("T060", "Diagnostic Procedure", "Diagnostic Procedure", "diap", "PROC"),
        SemanticType("T029", "Body Location", "Body Location or Region", "blor", "ANAT"),
        SemanticType("T061", "Therapeutic Procedure", "Therapeutic or Preventive Procedure", "topp", "PROC"),
        SemanticType("T047", "Disease or Syndrome", "Disease or Syndrome", "dsyn", "DISO"),
        SemanticType("T074", "Medical Device", "Medical Device", "medd", "DEVI"),
        SemanticType("T039", "Physiologic Function", "Physiologic Function", "phsf", "PHYS"),
        SemanticType("T037", "Injury or Poisoning", "Injury or Poisoning", "inpo", "DISO"),
        SemanticType("T031", "Body Substance", "Body Substance", "bdsu", "ANAT"),
        SemanticType("T030", "Body Space", "Body Space or Junction", "bsoj", "ANAT"),
        SemanticType("T022", "Body System", "Body System", "bdsy", "ANAT"),
        SemanticType("T190", "Anatomical Abnormality", "Anatomical Abnormality", "anab", "DISO"),
        SemanticType("T038", "Biologic Function", "Biologic Function", "biof", "PHEN"),
    )
}
TUI_OF_NAME: dict[str, str] = {t.name: t.tui for t in TYPES.values()}

# Types outside the fifteen that terminologies often give by name; kept so that a concept records all its types.
OUTSIDE: dict[str, str] = {
    "T191": "Neoplastic Process",
    "T184": "Sign or Symptom",
    "T033": "Finding",
    "T020": "Acquired Abnormality",
    "T019": "Congenital Abnormality",
    "T048": "Mental or Behavioral Dysfunction",
    "T034": "Laboratory or Test Result",
    "T059": "Laboratory Procedure",
    "T121": "Pharmacologic Substance",
    "T024": "Tissue",
    "T079": "Temporal Concept",
    "T080": "Qualitative Concept",
    "T040": "Organism Function",
    "T042": "Organ or Tissue Function",
    "T017": "Anatomical Structure",
    "T058": "Health Care Activity",
    "T203": "Drug Delivery Device",
}
_TUI_OF_ANY_NAME = TUI_OF_NAME | {name: tui for tui, name in OUTSIDE.items()}


def tui_of(name: str) -> str:
    """Return the identifier of a type's exact name, or the name itself for a type that is not listed here."""
    return _TUI_OF_ANY_NAME.get(name, name)


def in_benchmark(tuis: Iterable[str]) -> tuple[str, ...]:
    """Return those of ``tuis`` that are one of the fifteen, in order.

    Example:
        >>> in_benchmark(["T047", "T191"])
        ('T047',)
    """
    return tuple(t for t in tuis if t in TYPES)
