"""a or an, by the sound of the next word."""

from __future__ import annotations

import re
import unicodedata

from medground.benchmarks.medical_checklist.words import word_set

# Spelled-out letters that begin with a vowel sound: "an MRI", "an X-ray", but "a US", "a CT".
_VOWEL_LETTERS = frozenset("AEFHILMNORSX")
# Acronyms that are read as words, with a consonant in front.
_READ_AS_WORDS = word_set(
    "FAST FISP FLAIR FLASH HASTE HELLP HIDA HIPEC LASER LASIK MALT MARS MOLLI MUGA NASH NICU RADS RECIST SARS "
    "SCID SIRS SLAP SPAIR SPECT STEMI STIR"
)
_SOUNDS_LIKE_YOU = re.compile(r"(?:u[bcdfghjklmnpqrstvwxz]i?[aeiou]|uni|eu|ewe|oui|one(?![a-z])|once)", re.IGNORECASE)
_STILL_AN = re.compile(r"(?:un(?:i(?:nt|nf|mp|nj|nv|de)|[aeou])|umb|ul[ct]|ur[tg]|up|us[ht]|ug)", re.IGNORECASE)
_SILENT_H = re.compile(r"(?:hour|honest|honou?r|heir)", re.IGNORECASE)
_NUMBER = re.compile(r"(?:8|11|18)(?!\d)|8\d|11\d{3}|18\d{3}")


def article(term: str) -> str:
    """Return "a" or "an" for a term.

    Example:
        >>> [article(t) for t in ("MRI", "US", "ureter", "ultrasound", "IVC filter")]
        ['an', 'a', 'a', 'an', 'an']
    """
    word = re.match(r"[^\W_]+", term.lstrip("\"'\u201c\u2018(["))
    return "an" if word and _begins_with_a_vowel_sound(word[0]) else "a"


def _begins_with_a_vowel_sound(word: str) -> bool:
    if word[0].isdigit():
        return _NUMBER.match(word) is not None
    if _is_spelled(word):
        return word[0] in _VOWEL_LETTERS
    if _SILENT_H.match(word):
        return True
    vowel = unicodedata.normalize("NFD", word[0])[0].lower() in "aeiou\u00e6\u0153"
    return vowel and (_SOUNDS_LIKE_YOU.match(word) is None or _STILL_AN.match(word) is not None)


def _is_spelled(word: str) -> bool:
    """Whether a word is read letter by letter: X in X-ray, NG, LVAD, but not PET or SPECT."""
    letters = word.rstrip("s") if len(word) > 2 else word
    return letters.isupper() and letters not in _READ_AS_WORDS


_BEFORE = re.compile(r"(?<![\w'\u2019-])(an?)(\s+[\"\u201c\u2018']?)$", re.IGNORECASE)


def before(text: str) -> re.Match[str] | None:
    """Return the match of an article that ends ``text`` (group 1 the article, group 2 what follows it), or None."""
    return _BEFORE.search(text)


def repaired(left: str, term: str) -> str:
    """Return the text before a span with its article fitted to a term; the capital of the article stays.

    Example:
        >>> repaired("After a ", "MRI")
        'After an '
    """
    match = before(left)
    if match is None:
        return left
    fitting = article(term)
    if match[1][0].isupper():
        fitting = fitting.upper() if match[1].isupper() and len(match[1]) > 1 else fitting.capitalize()
    return left[: match.start(1)] + fitting + match[2]
