"""Mask files: one channel, lossless, anything above a level is inside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from medground.errors import RegionError
from medground.imaging.regions import Region
from medground.imaging.rle import checked_size

MODES = frozenset({"1", "L", "I;16", "I;16B", "I"})


def read_mask(path: Path, above: int = 0) -> Region:
    """Return the region of a PNG mask: the pixels whose value is greater than ``above``.

    Raises:
        RegionError: the file cannot be decoded, is not PNG (others lose pixels), or has colours or transparency.
    """
    try:
        with Image.open(path) as picture:
            checked_size(picture.size)
            if picture.format != "PNG" or picture.mode not in MODES:
                raise RegionError(
                    "a mask is not a picture of one channel",
                    where=path,
                    expected="PNG of one channel, 1, 8 or 16 bit",
                    got=f"{picture.format}, {picture.mode} ({len(picture.getbands())} channels)",
                    fix="save it as grey PNG: inside not 0, outside 0",
                )
            values = np.asarray(picture)
            return replace(Region.from_mask(values > above), notes=_grey(values, above))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise RegionError("a mask cannot be decoded", where=path, got=str(error)) from error


def _grey(values: NDArray[Any], above: int) -> tuple[str, ...]:
    """Return a note where a mask has more than a few values: it was resized, or saved with losses."""
    inside = values[values > above]
    levels = np.unique(inside)
    if len(levels) <= FEW:
        return ()
    between = float((inside < levels[-1]).mean())
    mostly = ", most of it" if between > 0.5 else ""
    return (f"{len(levels)} grey levels inside{mostly}",)


FEW = 4
"""Values inside that labels can have."""
