"""Put a region of one radiograph into another: scale, match grey values, feather, blend.

The donor's region is stretched from its own tight box to the target's, so that nothing of the target's anatomy moves.
Pixels are float64 and neither rounded nor clipped here: who shows or stores a paste does both, and says so.

==============  ====================================================================================================
choice          rule
==============  ====================================================================================================
``support``     where the paste may change anything: the target's mask, the donor's scaled mask, or both
``feather``     ``inward``: the edge fades inside the support, nothing outside changes; ``both_sides``: a plain
                Gaussian of the support, which also changes pixels outside of it
``matching``    ``picture``: donor brought to mean and spread of the whole target picture; ``region``: of the
                target's region, which puts a bright lesion back as a bright lung; ``none``: values as they are
==============  ====================================================================================================

Example:
    >>> block, mask = scaled_donor(donor, donor_mask, box_of(target_mask))          # doctest: +SKIP
    >>> pasted = blended(target, block, alpha_of(target_mask, sigma=3.0), box_of(target_mask))  # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from medground.errors import RegionError
from medground.imaging.boxes import PixelBox

Grey = NDArray[np.float64]
Mask = NDArray[np.bool_]
Support = Literal["target", "donor", "both"]
Feather = Literal["inward", "both_sides"]
Matching = Literal["picture", "region", "none"]

_TRUNCATE = 4.0  # standard deviations at which the Gaussian ends


def box_of(mask: NDArray[Any]) -> PixelBox:
    """Return the tight half-open box ``x0, y0, x1, y1`` of a mask ``(height, width)``.

    Raises:
        RegionError: the mask has no pixel.
    """
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if rows.size == 0:
        raise RegionError("a region to paste has no pixel", expected="a mask with at least one pixel")
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def scaled_donor(donor: NDArray[Any], donor_mask: NDArray[Any], box: PixelBox) -> tuple[Grey, Mask]:
    """Return the donor's region and mask brought from their tight box to the size of ``box``.

    Grey values are blended bilinearly at half-pixel centres with edges repeated and no smoothing when shrinking; the
    mask goes by nearest pixel.

    Args:
        donor: ``(h, w)`` grey values.
        donor_mask: ``(h, w)`` of the donor's region.
        box: ``x0, y0, x1, y1`` of the target's region.

    Returns:
        block and mask, both ``(y1 - y0, x1 - x0)``.

    Raises:
        RegionError: shapes differ, or the mask has no pixel.
    """
    if donor.shape != donor_mask.shape:
        raise RegionError(
            "a donor's mask has another size than its picture", expected=donor.shape, got=donor_mask.shape
        )
    x0, y0, x1, y1 = box_of(donor_mask)
    height, width = box[3] - box[1], box[2] - box[0]
    cut = np.asarray(donor[y0:y1, x0:x1], dtype=np.float64)
    top, bottom, down = _taps(cut.shape[0], height)
    left, right, along = _taps(cut.shape[1], width)
    wide = cut[:, left] * (1.0 - along) + cut[:, right] * along
    block: Grey = wide[top] * (1.0 - down)[:, None] + wide[bottom] * down[:, None]
    inside = donor_mask[y0:y1, x0:x1] != 0
    return block, inside[np.ix_(_nearest(cut.shape[0], height), _nearest(cut.shape[1], width))]


def support_of(target_mask: NDArray[Any], scaled_mask: Mask, box: PixelBox, support: Support = "target") -> Mask:
    """Return where the paste may change the picture, ``(height, width)``."""
    inside: Mask = np.asarray(target_mask) != 0
    if support == "target":
        return inside
    placed = np.zeros(inside.shape, dtype=bool)
    placed[box[1] : box[3], box[0] : box[2]] = scaled_mask
    return placed if support == "donor" else placed & inside


def alpha_of(support: Mask, box: PixelBox, sigma: float, feather: Feather = "inward") -> Grey:
    """Return the donor's weight in ``[0, 1]`` at every pixel of the target, ``(height, width)``.

    A Gaussian of ``sigma`` pixels blurs the support (zeros beyond the picture's edge). ``both_sides`` is that blur;
    ``inward`` is ``max(0, 2 b - 1)`` inside the support and 0 outside, so the weight begins at the edge and grows to
    the inside. Outside ``box`` there is no donor, and the weight is 0. ``sigma`` 0 gives the support itself.

    Raises:
        RegionError: a negative or infinite ``sigma``.
    """
    if not 0 <= sigma < 1e4:
        raise RegionError("the feather of a paste is not usable", expected="sigma of 0 pixels or more", got=sigma)
    weight = np.zeros(support.shape)
    reach = int(_TRUNCATE * sigma + 0.5)
    x0, y0, x1, y1 = box
    # The blur needs the support around the box, no more of the picture.
    top, left = max(0, y0 - reach), max(0, x0 - reach)
    cut = support[top : y1 + reach, left : x1 + reach].astype(np.float64)
    rows, columns = slice(y0 - top, y1 - top), slice(x0 - left, x1 - left)
    if sigma > 0:
        # Rounding can lift the sum of the kernel's weights a hair above 1.
        blur = np.clip(gaussian_filter(cut, sigma, mode="constant", truncate=_TRUNCATE)[rows, columns], 0.0, 1.0)
        inward = np.maximum(0.0, 2.0 * blur - 1.0) * cut[rows, columns]
        weight[y0:y1, x0:x1] = inward if feather == "inward" else blur
    else:
        weight[y0:y1, x0:x1] = cut[rows, columns]
    return weight


def matched(block: Grey, own: tuple[float, float], wanted: tuple[float, float]) -> Grey:
    """Return grey values shifted and scaled from one mean and standard deviation to another; a flat one is shifted.

    Args:
        block: any shape.
        own: mean and population standard deviation that ``block`` is counted from.
        wanted: those to be reached.
    """
    if own[1] <= 0:
        return block - own[0] + wanted[0]
    return (block - own[0]) * (wanted[1] / own[1]) + wanted[0]


def moments(values: NDArray[Any]) -> tuple[float, float]:
    """Return mean and population standard deviation in float64.

    Raises:
        RegionError: there is no value.
    """
    if values.size == 0:
        raise RegionError("grey values of no pixel cannot be matched", expected="at least one pixel")
    # A flat picture must have a spread of exactly 0, which a computed mean does not promise.
    if values.min() == values.max():
        return float(values.flat[0]), 0.0
    return float(np.mean(values, dtype=np.float64)), float(np.std(values, dtype=np.float64))


def blended(target: NDArray[Any], block: Grey, alpha: Grey, box: PixelBox) -> Grey:
    """Return ``(1 - alpha) target + alpha donor``, float64, neither rounded nor clipped.

    Args:
        target: ``(height, width)``.
        block: donor's values in ``box``.
        alpha: ``(height, width)``, 0 outside ``box``.
        box: where the block lies.
    """
    x0, y0, x1, y1 = box
    out: Grey = np.array(target, dtype=np.float64)
    weight = alpha[y0:y1, x0:x1]
    out[y0:y1, x0:x1] = (1.0 - weight) * out[y0:y1, x0:x1] + weight * block
    return out


def residue(lesion: Mask, support: Mask, alpha: Grey) -> tuple[float, float] | None:
    """Return what a paste leaves of a lesion, or None where the lesion has no pixel.

    Returns:
        hard: share of its pixels outside the support; soft: mean of ``1 - alpha`` over it. Both in ``[0, 1]``.
    """
    area = int(np.count_nonzero(lesion))
    if area == 0:
        return None
    return float(1.0 - np.count_nonzero(lesion & support) / area), float(1.0 - alpha[lesion].mean())


def _taps(cells: int, out: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Grey]:
    """Return for each of ``out`` places the two cells that it lies between and the weight of the second."""
    place = np.clip((np.arange(out) + 0.5) * (cells / out) - 0.5, 0.0, cells - 1.0)
    first = np.minimum(place.astype(np.int64), cells - 1)
    return first, np.minimum(first + 1, cells - 1), place - first


def _nearest(cells: int, out: int) -> NDArray[np.int64]:
    """Return the cell under the centre of each of ``out`` places."""
    return np.asarray((2 * np.arange(out) + 1) * cells // (2 * out), dtype=np.int64)
