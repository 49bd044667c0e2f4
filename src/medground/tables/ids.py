"""One way to write an identifier: ``00000032``, ``32`` and ``32.0`` are one patient."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ENDINGS = re.compile(r"\.(png|jpe?g|dcm|dicom|tiff?|bmp|npy|npz|gz|pkl|nii)$", re.IGNORECASE)
_WHOLE = re.compile(r"0*(\d+)(\.0*)?")


def plain_id(text: str) -> str:
    """Return an identifier without what only the way of writing adds.

    Blanks around it, the ending of a picture, upper case, leading zeros, the ``.0`` that a table of numbers adds, and
    whether words are parted by blanks or underscores.

    Example:
        >>> plain_id(" 00013118.0"), plain_id("00013118_008.PNG"), plain_id("ABC-1")
        ('13118', '00013118_008', 'abc-1')
    """
    plain = text.strip()
    while (shorter := _ENDINGS.sub("", plain)) != plain:
        plain = shorter
    whole = _WHOLE.fullmatch(plain)
    return whole[1] if whole else re.sub(r"\s+", "_", plain).casefold()


def form(text: str) -> str:
    """Return what an identifier looks like: runs of digits as ``9``, of letters as ``a``, the rest as it is.

    Example:
        >>> form("p10046166"), form("00013118_008")
        ('a9', '9_9')
    """
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", plain_id(text)))


def forms(texts: Iterable[str], most: int = 3) -> str:
    """Return the commonest forms of identifiers, for a message."""
    counts: dict[str, int] = {}
    for text in texts:
        counts[form(text)] = counts.get(form(text), 0) + 1
    return ", ".join(sorted(counts, key=lambda name: (-counts[name], name))[:most])
