"""Numbers from DICOM attributes, which a damaged or careless file may hold as anything."""

from __future__ import annotations

import math

from pydicom.dataset import Dataset

from medground.errors import ImageError


def whole(header: Dataset, keyword: str, default: int | None = None) -> int:
    """Return an attribute that must be one whole number, or a default where it is absent or empty.

    Raises:
        ImageError: something else, or absent without a default.
    """
    value = header.get(keyword)
    value = default if value is None else value
    if not isinstance(value, int):
        raise ImageError(
            f"a DICOM file holds no picture that can be read: its {keyword} is missing or no number",
            expected="a whole number",
            got=repr(value)[:40],
        )
    return int(value)


def real(header: Dataset, keyword: str, default: float) -> float:
    """Return the first value of an attribute as a finite number, or a default where it is absent or empty.

    Raises:
        ImageError: no number, or not finite.
    """
    value = header.get(keyword)
    value = default if value is None else value
    try:
        number = float(value if isinstance(value, int | float | str) else value[0])
    except (TypeError, ValueError, IndexError):
        number = math.nan
    if not math.isfinite(number):
        raise ImageError(f"a DICOM file's {keyword} is no number", got=repr(value)[:40])
    return number
