"""Terms of place and their opposites: "left" for "right", "coronal" for "axial", each only where it is read so.

An adjective of place has another sense in another company: the lateral view and the lateral meniscus, the deep vein and
the deep lesion. An opposite stands here with the words that must, or must not, follow.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from medground.benchmarks.medical_checklist.words import FUNCTION, word_set

IMAGING = word_set(
    "view views image images imaging scan scans section sections slice slices plane planes projection projections "
    "radiograph radiographs radiography film films x-ray x-rays xray CT MRI MR T1 T2 T1-weighted T2-weighted T1W T2W "
    "T1WI T2WI FLAIR STIR DWI tomography tomogram tomograms tomographic magnetic sonogram ultrasound reconstruction "
    "reconstructions reformation reformatted reformat CTA MRA HRCT CBCT NCCT CECT angiogram angiography fluoroscopy"
)
_IMAGING_NEXT = re.compile(
    r"\s+(?:[\w-]+\s+){0,3}?(?:" + "|".join(sorted(map(re.escape, IMAGING), key=len, reverse=True)) + r")\b",
    re.IGNORECASE,
)
_LUNG = word_set("lung lungs segment segments lobe lobes zone zones")


class Place(NamedTuple):
    """How one term of place may be exchanged.

    Attributes:
        partners: what may take its place.
        only: words of which one must follow; empty: any.
        never: words that must not follow.
        imaging: a word for a picture must follow within four words.
    """

    partners: frozenset[str]
    only: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    imaging: bool = False


def _both(first: str, second: str, only: frozenset[str] = frozenset(), never: str = "") -> dict[str, Place]:
    a, b = word_set(first), word_set(second)
    return {w: Place(b, only, word_set(never)) for w in a} | {w: Place(a, only, word_set(never)) for w in b}


_TABLE: dict[str, Place] = {
    **_both("left", "right", never="main circumflex"),
    **_both("upper", "lower", never="most motor incisor incisors adc value values signal density attenuation dose"),
    **_both("superior", "inferior"),
    **_both("cranial", "caudal", word_set("angulation direction displacement migration traction end part")),
    **_both("anterior", "posterior"),
    **_both(
        "ventral", "dorsal", never="spine vertebra vertebrae vertebral root roots column columns hernia region kyphosis"
    ),
    **_both(
        "medial",
        "lateral",
        never="ventricle ventricles ventricular decubitus position sulcus horn horns neck mass masses",
    ),
    **_both("proximal", "distal"),
    **_both("superficial", "deep", never="vein veins venous brain white gray grey sulcus femoral"),
    **_both("internal", "external"),
    **_both("intracranial", "extracranial"),
    **_both("intrahepatic", "extrahepatic"),
    **_both("intraluminal", "extraluminal"),
    **_both("retroperitoneal", "intraperitoneal"),
    **_both("epidural extradural", "subdural"),
    **_both("ipsilateral", "contralateral"),
    **_both("diffuse", "focal localized localised"),
    **_both("horizontal", "vertical", never="fissure"),
    **_both("perihilar", "subpleural"),
    **_both("central", "peripheral", never="canal sulcus nervous slip incisor incisors nerve neuropathy blood cord"),
    **_both("apical", "basal basilar", _LUNG),
}
_PLANES = word_set("axial transverse transaxial coronal sagittal")
_TABLE |= {w: Place(_PLANES - {w}, imaging=True) for w in _PLANES}
_TABLE |= {w: Place(_PLANES - {"sagittal"}, imaging=True) for w in ("parasagittal", "midsagittal")}
_PROJECTIONS = {
    "lateral": word_set("anteroposterior ap pa posteroanterior"),
    **{w: word_set("lateral posteroanterior pa") for w in ("anteroposterior", "ap")},
    **{w: word_set("lateral anteroposterior ap") for w in ("posteroanterior", "pa")},
}
_RELATIVE = word_set("to and or of")
_PICTURES = ("view", "radiogra", "projection", "x-ray", "xray", "film", "image", "cephal", "skull", "incisor")
_COMPARED = word_set("than compared")
_BEFORE_PLANE = _PLANES | _PROJECTIONS.keys() | word_set("oblique left right medial anterior posterior dorsal")


def partners(caption: str, start: int, end: int) -> frozenset[str]:
    """Return what may stand in place of a term of place, in lower case; nothing where it may be read otherwise.

    Example:
        >>> sorted(partners("Lateral view of the knee", 0, 7))[:2], sorted(partners("the lateral meniscus", 4, 11))
        (['anteroposterior', 'ap'], ['medial'])
        >>> partners("the lateral ventricle", 4, 11)
        frozenset()
    """
    word = caption[start:end].lower()
    run = re.match(r"(?:\s+[\w-]+){1,4}", caption[end : end + 60])
    ahead = [w.lower() for w in run[0].split()] if run else []
    before = re.search(r"([\w-]+)\s+$", caption[max(0, start - 40) : start])
    imaging = _IMAGING_NEXT.match(caption[end : end + 80]) is not None
    doubled = before is not None and before[1].lower() in _BEFORE_PLANE
    if word in _PROJECTIONS and (imaging or any(w.startswith(_PICTURES) for w in ahead)):
        return _PROJECTIONS[word] if imaging and not doubled else frozenset()
    place = _TABLE.get(word)
    if place is None or not _may_be_read(word, place, ahead) or (place.imaging and (doubled or not imaging)):
        return frozenset()
    return place.partners


def _may_be_read(word: str, place: Place, ahead: list[str]) -> bool:
    """Whether the words after a term of place allow its usual sense."""
    following = ahead[0] if ahead else ""
    if not place.never.isdisjoint(ahead) or (place.only and following not in place.only):
        return False
    if word in ("left", "right"):
        return following != "to" and ahead[:2] != ["anterior", "descending"]
    if word in ("upper", "lower") and not _COMPARED.isdisjoint(ahead):
        return False
    return bool(following) and (following not in FUNCTION or following in _RELATIVE)
