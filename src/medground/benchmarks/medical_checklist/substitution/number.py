"""Singular or plural, from the form of a term."""

from __future__ import annotations

from medground.benchmarks.medical_checklist.words import word_set

# Words that end like plurals and are none.
_SINGULAR = word_set(
    "lens pancreas ascites diabetes herpes rabies scabies caries biceps triceps quadriceps forceps mucus pus iris "
    "pelvis penis series plus measles mumps rickets aids gas atlas pons humerus radius sinus uterus fundus "
    "esophagus oesophagus thymus isthmus axis epidermis ens meniscus nucleus bronchus embolus thrombus corpus "
    "ductus cubitus hallux menses"
)
# Plurals that do not end in s.
_PLURAL = word_set(
    "diverticula septa ova hila atria acetabula bacteria labia data feet teeth phalanges vertebrae bullae "
    "scapulae fibulae tibiae ribs sacra crania sterna pleurae fossae bursae costae fistulae maxillae ulnae larvae "
    "papillae petechiae varices indices apices cortices cervices foramina lumina stomata fibromata criteria media "
    "loci children men women people phenomena ganglia cilia rami recta spectra serosae adnexa"
)
_NOT_LATIN_PLURAL = word_set("alkali semi mini taxi foci-like")


def is_plural(term: str) -> bool:
    """Whether a term is a plural, from its head: the last word before " of ", " in " or " with ".

    Example:
        >>> [is_plural(t) for t in ("lungs", "pelvis", "US", "bronchi", "fractures of the femur", "stenosis")]
        [True, False, False, True, True, False]
    """
    head = term.split(" of ", 1)[0].split(" with ", 1)[0].split(" in ", 1)[0].split()
    if not head:
        return False
    word = head[-1].rsplit("-", 1)[-1]
    if word.isupper():
        return False
    low = word.lower()
    if low in _PLURAL:
        return True
    if low in _SINGULAR or len(low) < 3:
        return False
    if low.endswith("ae") or (low.endswith("i") and len(low) > 3 and low not in _NOT_LATIN_PLURAL):
        return True
    return low.endswith("s") and not low.endswith(("ss", "us", "is", "ous"))
