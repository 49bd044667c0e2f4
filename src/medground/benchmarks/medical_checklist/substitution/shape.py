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


_AXES = (
    "left right bilateral unilateral left-sided right-sided",
    "axial transverse transaxial coronal frontal sagittal parasagittal midsagittal oblique",
    "upper superior cranial lower inferior caudal apical basal basilar middle",
    "anterior ventral posterior dorsal",
    "anteroposterior posteroanterior AP PA",
    "lateral medial central peripheral midline",
    "proximal distal",
    "superficial deep subcutaneous internal external",
    "intracranial extracranial",
    "intrahepatic extrahepatic",
    "intraluminal extraluminal",
    "retroperitoneal intraperitoneal",
    "epidural extradural subdural",
    "ipsilateral contralateral",
    "diffuse focal localized localised multifocal",
    "horizontal vertical",
    "perihilar subpleural",
    "margin margins border borders center centre",
)
_AXIS = {word: number for number, words in enumerate(_AXES) for word in words.split()}


def same_axis(first: str, second: str) -> bool:
    """Whether two terms of place speak of the same axis: "left" and "right", not "left" and "diffuse".

    Across axes both may be true of one picture. Terms of no known axis go with each other.

    Example:
        >>> same_axis("left", "Right"), same_axis("left", "diffuse")
        (True, False)
    """
    return _AXIS.get(first.lower(), _AXIS.get(first)) == _AXIS.get(second.lower(), _AXIS.get(second))
