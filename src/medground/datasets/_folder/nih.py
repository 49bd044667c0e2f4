"""What the datasets on pictures of NIH ChestX-ray14 have in common."""

from __future__ import annotations

FRAME = (1024, 1024)
"""Boxes and masks are in the pixels of the published pictures, whatever the size of the stored copy."""


def patient_of(image: str) -> str:
    """Return the running number of the patient that the name of an NIH picture begins with.

    >>> patient_of("00013118_008.png")
    '13118'
    """
    return plain_number(image.partition("_")[0])


def plain_number(text: str) -> str:
    """Return a number without leading zeros, and any other text as it is."""
    return str(int(text)) if text.isdecimal() else text
