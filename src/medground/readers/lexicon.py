"""Findings on chest radiographs in words: one concept a line, its names in the public datasets, and how it is said.

Written for this project from general radiological usage; British and American spelling, singular and plural, nouns and
adjectives. A pattern may span several words, such as "the heart is (moderately) enlarged".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

LEXICON_VERSION = "1"

_BIG = (
    r"(?:enlarged|large|larger|widened|wide|increased|dilated|dilatated|ectatic|prominent|big"
    r"|enlargement|dilatation|dilation|widening)"
)
_GAP = r"(?:\W+(?!(?:and|or|with|without|but(?! (?:is |it is )?not\b))\b)[\w'-]+){0,5}?\W+"
_NEAR = r"(?:\W+(?!(?:and|or|with|without|but)\b)[\w'-]+){0,2}?\W+"


def _thing_is(things: str, states: str) -> str:
    """Return the pattern of a thing in a state, either word first: "the heart is enlarged", "enlarged heart"."""
    return rf"(?:{things}){_GAP}{states}|{states}{_NEAR}(?:{things})"


_HEART = r"heart|cardiac (?:silhouette|shadow|contour|size|outline)|cardiomediastinal silhouette"
_AORTA = r"aorta|aortic (?:knob|knuckle|arch|shadow|contour)"
_PA = r"pulmonary arter(?:y|ies)|pulmonary trunk|main pa"
_PLEURA = r"pleura|pleural"
_PLEURAL_SPACE = r"pleural (?:space|cavity)"


@dataclass(frozen=True)
class Concept:
    """A finding.

    Attributes:
        key: short name.
        names: what datasets call it, in small letters.
        pattern: how it is said, a regular expression over folded text.
        home: the organ that it always lies on, where that is another than the lung.
    """

    key: str
    names: tuple[str, ...]
    pattern: str
    home: str = ""


CONCEPTS = (
    Concept("atelectasis", ("atelectasis",), r"atelecta(?:sis|ses|tic)|(?:partial |lobar |lung )?collapse(?:d)?\b"
            r"(?= of| in|\W*(?:lung|lobe)|\W*$)|volume loss of"),
    Concept("cardiomegaly", ("cardiomegaly",), rf"cardiomegaly|{_thing_is(_HEART, _BIG)}|cor bovinum"
            r"|cardiac enlargement", "heart"),
    Concept("effusion", ("effusion", "pleural effusion"), rf"(?<!pericardial )effusions?|hydrothora(?:x|ces)"
            rf"|pleural fluid|fluid{_GAP}{_PLEURAL_SPACE}|ha?emothora(?:x|ces)"),
    Concept("infiltration", ("infiltration", "infiltrate"), r"infiltrat(?:ion|ions|e|es|ive)\b"),
    Concept("mass", ("mass",), r"mass(?:es)?\b|tumou?rs?\b|tumou?r-like|coin lesions?|neoplas(?:m|ms)"),
    Concept("nodule", ("nodule",), r"nodul(?:e|es|ar|arity)\b|coin lesions?"),
    Concept("pneumonia", ("pneumonia",), r"(?:broncho)?pneumoni(?:a|as|c)\b"),
    Concept("pneumothorax", ("pneumothorax",), rf"(?:hydro)?pneumothora(?:x|ces)|air{_GAP}{_PLEURAL_SPACE}"
            r"|collapsed lung"),
    Concept("consolidation", ("consolidation",), r"consolidat(?:ion|ions|ed|ive)\b|airspace disease"),
    Concept("edema", ("edema", "oedema", "pulmonary edema"), r"o?edema(?:tous)?\b|(?:pulmonary|vascular) congestion"),
    Concept("emphysema", ("emphysema",), r"emphysema(?:tous)?\b|bullae?\b"),
    Concept("fibrosis", ("fibrosis", "pulmonary fibrosis"), r"fibro(?:sis|tic|ses)\b|scar(?:s|ring|red)?\b"),
    Concept("pleural_thickening", ("pleural thickening", "pleural_thickening"),
            rf"{_thing_is(_PLEURA, '(?:thickening|thickened|thickenings)')}"),
    Concept("pleural_other", ("pleural other",), r"pleural (?:plaques?|calcifications?|scarring|abnormalit(?:y|ies))"),
    Concept("hernia", ("hernia",), r"hernia(?:s|tion)?\b"),
    Concept("opacity", ("lung opacity", "airspace opacity", "opacity"), r"opaci(?:ty|ties|fication|fications|fied)\b"
            r"|haz(?:y|iness)\b(?!\W+opaci)|ground[- ]glass|patchy (?:shadow|shadows|shadowing)"),
    Concept("cavity", ("lung cavity",), r"cavit(?:y|ies|ation|ations|ary|ating)\b(?<!pleural cavity)"),
    Concept("cyst", ("lung cyst",), r"cysts?\b|cystic"),
    Concept("ild", ("ild", "interstitial lung disease"), r"interstitial(?: lung)? (?:disease|pattern|changes)|ild\b"),
    Concept("calcification", ("calcification",), r"calcifi(?:cation|cations|ed|c)\b"),
    Concept("aortic_enlargement", ("aortic enlargement",), rf"aortic enlargement|{_thing_is(_AORTA, _BIG)}"
            r"|aortic aneurysm|aneurysm of the aorta", "aorta"),
    Concept("enlarged_pa", ("enlarged pa",), rf"{_thing_is(_PA, _BIG)}|enlarged pa\b"),
    Concept("mediastinal_shift", ("mediastinal shift",),
            _thing_is("mediastin(?:um|al)|trachea", "(?:shift|shifted|displaced|displacement|deviated|deviation)"),
            "mediastinum"),
    Concept("enlarged_mediastinum", ("enlarged cardiomediastinum",),
            _thing_is("mediastinum|mediastinal|cardiomediastinum", _BIG), "mediastinum"),
    Concept("rib_fracture", ("rib fracture",),
            _thing_is(r"ribs?(?: fractures)?", r"(?:fractures?|fractured|broken)")
            + r"|ribs? fractures?|fractures? of(?:\W+[\w'-]+){0,5}?\W+ribs?"),
    Concept("clavicle_fracture", ("clavicle fracture",),
            _thing_is("clavicles?|clavicular", "(?:fractures?|fractured|broken)")),
    Concept("fracture", ("fracture",), r"fractur(?:e|es|ed)\b|broken (?:ribs?|clavicles?|bones?)"),
    Concept("lesion", ("lung lesion", "other lesion"), r"lesions?\b"),
    Concept("devices", ("support devices",), r"support devices?|endotracheal tube|pacemakers?|(?:central|picc) lines?"
            r"|catheters?|chest tubes?"),
    Concept("covid", ("covid-19", "covid"), r"covid(?:-19)?\b|sars-cov-2"),
)  # fmt: skip
# A dataset's name that stands for any of several concepts.
_UNIONS = {
    "nodule/mass": ("nodule", "mass"),
    "lung lesion": ("nodule", "mass", "lesion"),
    "fracture": ("fracture", "rib_fracture", "clavicle_fracture"),
}
_BY_KEY = {concept.key: concept for concept in CONCEPTS}
_BY_NAME = {name: concept.key for concept in CONCEPTS for name in (concept.key, *concept.names)}


@dataclass(frozen=True)
class Term:
    """A finding as a dataset names it, and how it is said."""

    name: str
    pattern: re.Pattern[str]
    home: str = ""


@cache
def term(name: str) -> Term:
    """Return how a finding is said; one that the lexicon does not know is said by its own words."""
    wanted = re.sub(r"\s+", " ", name.strip().casefold().replace("_", " "))
    keys = _UNIONS.get(wanted) or tuple(filter(None, [_BY_NAME.get(wanted) or _BY_NAME.get(wanted.removesuffix("s"))]))
    if not keys:
        words = r"[\s_-]+".join(map(re.escape, wanted.split())) or r"(?!)"
        return Term(name, re.compile(rf"\b{words}(?:s|es)?\b"))
    alternatives = "|".join(_BY_KEY[key].pattern for key in keys)
    own = r"[\s_-]+".join(map(re.escape, wanted.split()))
    return Term(name, re.compile(rf"\b(?:{own}|{alternatives})"), _BY_KEY[keys[0]].home)


def known() -> tuple[str, ...]:
    """Return one name a concept, for a question without a vocabulary."""
    return tuple(concept.names[0] for concept in CONCEPTS if concept.key not in ("lesion", "covid", "devices"))
