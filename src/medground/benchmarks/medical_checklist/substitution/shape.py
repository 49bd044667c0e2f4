"""Adjective or noun, for terms of place: "axial CT" and "the apex of the lung" cannot exchange their words."""

from __future__ import annotations

from medground.benchmarks.medical_checklist.words import word_set

_ADJECTIVES = word_set(
    "left right upper lower deep diffuse oblique distal proximal inferior superior anterior posterior medial lateral "
    "bilateral unilateral transverse subcutaneous superficial parallel perpendicular adjacent remote inner outer rear "
    "front top bottom AP PA ap pa"
)
_ENDINGS = ("al", "ar", "ior", "ic", "ous", "ary", "ine", "ed", "ane", "eral", "verse", "ique")
_NOUNS = word_set("midline outline interval canal pedicle spine line plane interior exterior")


def is_adjective(term: str) -> bool:
    """Whether a term of place is an adjective, by its last word.

    Example:
        >>> [is_adjective(t) for t in ("left", "axial", "margin", "cross section", "midline")]
        [True, True, False, False, False]
    """
    last = term.rsplit(maxsplit=1)[-1].lower() if term.split() else ""
    return last in _ADJECTIVES or (last not in _NOUNS and last.endswith(_ENDINGS))
