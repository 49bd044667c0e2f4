"""Function words of English: they are no terms, and they tell how a term stands in its sentence."""

from __future__ import annotations

import re


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set: how word lists of this package are written."""
    return frozenset(text.split())


DETERMINERS = word_set(
    "the this that these those its his her their our your my each every some any no another both all"
)
FUNCTION = DETERMINERS | word_set(
    "a an and or nor but of in on at by to from with without within for into onto over under between among "
    "through during after before above below behind near next than then as is are was were be been being am has "
    "have had having do does did will would can could may might must shall should not only also there here where "
    "which who whom whose what when while if whether it he she they we you i us me him them up out off so such "
    "very more most less least few several many much other same per via showing shows shown show seen "
    "demonstrating demonstrates demonstrated revealing reveals revealed indicating indicates indicated arrow "
    "arrows"
)
MODIFIERS = word_set(
    "left right bilateral unilateral upper lower proximal distal anterior posterior medial lateral superior inferior "
    "small large huge giant tiny big massive minimal mild moderate severe marked extensive progressive acute chronic "
    "old new recent first second third two three four five multiple single solitary several numerous entire whole "
    "diffuse focal irregular well-defined ill-defined round oval isolated significant obvious evident visible normal "
    "abnormal native residual persistent partial complete total subtle slight definite clear"
)
"""Words that may stand between an article and a term, and are no part of its name."""
SHOUTED = word_set("A AN AND ARE AS AT BE BY DO FOR HE IF IN IS IT NO NOT OF ON OR SO THE TO WAS WE WITH ALL HIS")
TOKEN = re.compile(r"\w+|[^\w\s]")


def tokens(text: str) -> list[str]:
    """Return words and single marks of a text: the tokens in which caption length is counted.

    Example:
        >>> tokens("X-ray (arrow)")
        ['X', '-', 'ray', '(', 'arrow', ')']
    """
    return TOKEN.findall(text)
