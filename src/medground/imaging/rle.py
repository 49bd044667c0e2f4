"""Run-length codes of masks: COCO, SIIM and flat (start, length) pairs.

One form stands in the middle: COCO *counts*, the lengths of alternating runs of background and foreground, background
first (possibly 0), read down a column and then on to the next column at the right. Every other code is turned into it
and made from it. Sizes are ``(width, height)``; note that COCO files write ``size = [height, width]``.

======================  =====================================================================================
code                    rule
======================  =====================================================================================
COCO compressed string  counts from the fourth on as differences to the count two before; 5 bits a character,
                        little end first, bit 6 says "more follows", 48 added to make it printable
SIIM-ACR                pairs (gap since the end of the previous run, length), column-major; ``-1`` is empty
flat pairs              pairs (0-based start, length); row-major or column-major, which the code does not say
======================  =====================================================================================

All codes raise :class:`~medground.errors.RegionError` when malformed, before anything large is allocated. Runs of
length zero are refused in pairs; in COCO counts, where they are legal, they are merged away.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from medground.errors import RegionError

Size = tuple[int, int]
Counts = NDArray[np.int64]
Order = Literal["column", "row"]

MAX_PIXELS = 1 << 27
"""Masks of more pixels (134 million) are refused before they are allocated."""

_MAX_DIGITS = 12  # characters a number: 60 bits, beyond any mask, within int64


def checked_size(size: Sequence[int]) -> Size:
    """Return ``(width, height)`` as two positive integers.

    Raises:
        RegionError: not two positive whole numbers, or more than :data:`MAX_PIXELS` pixels.
    """
    try:
        width, height = (int(side) for side in size)
        whole = all(int(side) == side for side in size)
    except (TypeError, ValueError, OverflowError):
        width, height, whole = 0, 0, False
    if not whole or width < 1 or height < 1:
        raise RegionError(
            "a mask's size is not usable", expected="two positive whole numbers (width, height)", got=size
        )
    if width * height > MAX_PIXELS:
        raise RegionError("a mask is too large", expected=f"at most {MAX_PIXELS} pixels", got=f"{width} x {height}")
    return width, height


def checked_counts(counts: ArrayLike, size: Sequence[int]) -> Counts:
    """Return canonical COCO counts: no empty run but the first, and a sum of width times height.

    Raises:
        RegionError: not whole numbers, a negative run, or a sum that is not the number of pixels.
    """
    width, height = checked_size(size)
    runs = _integers(counts, "COCO counts")
    if runs.size == 0 or bool((runs < 0).any()):
        raise RegionError("COCO counts are malformed", expected="run lengths of 0 or more", got=_short(runs))
    # A float sum cannot wrap round, whatever the runs say.
    total = float(runs.astype(np.float64).sum())
    if total != width * height:
        raise RegionError(
            "the runs of a COCO code do not fill its mask",
            expected=f"a sum of {width * height} ({width} x {height})",
            got=f"{total:.0f}",
        )
    if bool((runs[1:] == 0).any()):
        ends = np.cumsum(runs)
        return _from_runs(ends[0:-1:2], runs[1::2], width * height)
    return runs


def counts_from_mask(mask: NDArray[np.bool_]) -> Counts:
    """Return COCO counts of a boolean mask ``(height, width)``."""
    flat = np.asarray(mask, dtype=bool).ravel(order="F")
    edges = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    first = np.zeros(1 if flat[0] else 0, dtype=np.int64)
    return np.concatenate([first, np.diff(edges, prepend=0, append=flat.size)]).astype(np.int64)


def mask_from_counts(counts: ArrayLike, size: Sequence[int]) -> NDArray[np.bool_]:
    """Return the mask ``(height, width)`` of COCO counts; a Fortran-ordered view, as the code reads columns.

    Raises:
        RegionError: see :func:`checked_counts`.
    """
    runs = checked_counts(counts, size)
    width, height = checked_size(size)
    inside = np.zeros(runs.size, dtype=bool)
    inside[1::2] = True
    return np.repeat(inside, runs).reshape(width, height).T


def area(counts: ArrayLike) -> int:
    """Return the number of foreground pixels of COCO counts."""
    return int(np.asarray(counts, dtype=np.int64)[1::2].sum())


def bbox(counts: ArrayLike, height: int) -> tuple[int, int, int, int] | None:
    """Return the half-open bounding box ``x0, y0, x1, y1`` of COCO counts, or None for an empty mask."""
    starts, lengths = _to_runs(np.asarray(counts, dtype=np.int64))
    if starts.size == 0:
        return None
    last = starts + lengths - 1
    x0, x1 = int(starts[0] // height), int(last[-1] // height) + 1
    if bool((starts // height != last // height).any()):  # a run over a column's end touches top and bottom
        return x0, 0, x1, height
    return x0, int((starts % height).min()), x1, int((last % height).max()) + 1


def counts_from_string(text: str | bytes) -> Counts:
    """Return the numbers of a COCO compressed string; their sum is not checked here.

    Raises:
        RegionError: a character outside the code, or a number that has no end or is far too long.
    """
    try:
        raw = text.encode("ascii") if isinstance(text, str) else bytes(text)
    except UnicodeEncodeError:
        raw = b""
    digits = np.frombuffer(raw, dtype=np.uint8).astype(np.int64) - 48
    if digits.size == 0 or int(digits.min()) < 0 or int(digits.max()) > 63:
        raise RegionError(
            "a compressed COCO code is malformed", expected="characters from '0' to 'o'", got=repr(text)[:60]
        )
    ends = np.flatnonzero(digits < 32)
    starts = np.concatenate([np.zeros(1, np.int64), ends + 1])
    spans = np.diff(starts)
    if ends.size == 0 or ends[-1] != digits.size - 1 or int(spans.max()) > _MAX_DIGITS:
        raise RegionError("a compressed COCO code is cut off or overlong", got=repr(text)[-60:])
    place = np.arange(digits.size) - np.repeat(starts[:-1], spans)
    values = np.add.reduceat((digits & 31) << (5 * place), starts[:-1])
    negative = (digits[ends] & 16) != 0
    values[negative] -= np.int64(1) << (5 * spans[negative])
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return values


def string_from_counts(counts: ArrayLike) -> str:
    """Return COCO counts as a compressed string."""
    runs = np.asarray(counts, dtype=np.int64)
    deltas = runs.copy()
    deltas[3:] -= runs[1:-2]
    characters: list[str] = []
    for delta in deltas.tolist():
        rest, more = delta, True
        while more:
            digit, rest = rest & 31, rest >> 5
            more = rest != (-1 if digit & 16 else 0)
            characters.append(chr(48 + digit + (32 if more else 0)))
    return "".join(characters)


def counts_from_siim(code: str, size: Sequence[int]) -> Counts:
    """Return COCO counts of an SIIM-ACR code, blanks around it ignored.

    Raises:
        RegionError: an odd number of tokens, a token that is no whole number, a negative gap, a length below 1, or a
            run that leaves the picture.
    """
    width, height = checked_size(size)
    tokens = str(code).split()
    if tokens == ["-1"]:
        return np.array([width * height], dtype=np.int64)
    gaps, lengths = _pairs(tokens, "SIIM code")
    starts = np.cumsum(gaps) + np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)[:-1]])
    return _from_runs(*_checked_runs(starts, lengths, width * height, "SIIM code"), width * height)


def siim_from_counts(counts: ArrayLike) -> str:
    """Return COCO counts as an SIIM-ACR code; ``-1`` for an empty mask."""
    starts, lengths = _to_runs(np.asarray(counts, dtype=np.int64))
    if starts.size == 0:
        return "-1"
    gaps = starts - np.concatenate([np.zeros(1, np.int64), (starts + lengths)[:-1]])
    return " ".join(str(number) for pair in zip(gaps.tolist(), lengths.tolist(), strict=True) for number in pair)


def counts_from_pairs(pairs: str | Sequence[int] | NDArray[Any], size: Sequence[int], order: Order) -> Counts:
    """Return COCO counts of flat (start, length) pairs; the runs may come in any sequence, but not overlap.

    Raises:
        RegionError: an odd number of tokens, a token that is no whole number, a length below 1, overlapping runs, or
            a run that leaves the picture.
    """
    width, height = checked_size(size)
    tokens = pairs.split() if isinstance(pairs, str) else list(np.asarray(pairs).ravel().tolist())
    starts, lengths = _pairs(tokens, "list of flat pairs") if tokens else (np.zeros(0, np.int64),) * 2
    sequence = np.argsort(starts, kind="stable")
    runs = _checked_runs(starts[sequence], lengths[sequence], width * height, "list of flat pairs")
    if order == "column":
        return _from_runs(*runs, width * height)
    turned = mask_from_counts(_from_runs(*runs, width * height), (height, width))
    return counts_from_mask(turned.T)


def pairs_from_counts(counts: ArrayLike, size: Sequence[int], order: Order) -> list[int]:
    """Return flat (start, length) pairs of COCO counts, in the pixel order asked for."""
    runs = np.asarray(counts, dtype=np.int64)
    if order == "row":
        runs = counts_from_mask(mask_from_counts(runs, size).T)
    return np.stack(_to_runs(runs), axis=1).ravel().tolist()


def _to_runs(counts: Counts) -> tuple[Counts, Counts]:
    """Return starts and lengths of the foreground runs of canonical counts."""
    lengths = counts[1::2]
    return np.cumsum(counts)[: 2 * lengths.size : 2], lengths


def _from_runs(starts: Counts, lengths: Counts, total: int) -> Counts:
    """Return counts of foreground runs in ascending order; touching runs are joined and empty ones dropped."""
    kept = lengths > 0
    starts, ends = starts[kept], (starts + lengths)[kept]
    opens = np.concatenate([np.ones(1, bool), starts[1:] > ends[:-1]])[: starts.size]
    closes = np.concatenate([starts[1:] > ends[:-1], np.ones(1, bool)])[-starts.size :] if starts.size else opens
    edges = np.stack([starts[opens], ends[closes]], axis=1).ravel()
    counts = np.diff(edges, prepend=0, append=total)
    return counts[:-1] if counts.size > 1 and counts[-1] == 0 else counts


def _checked_runs(starts: Counts, lengths: Counts, total: int, what: str) -> tuple[Counts, Counts]:
    if bool((lengths < 1).any()) or bool((starts < 0).any()):
        raise RegionError(f"a {what} has a negative place or an empty run", expected="lengths of 1 or more")
    ends = starts + lengths
    if starts.size and (int(ends.max()) > total or int(ends.min()) < 0):
        raise RegionError(
            f"a run of a {what} leaves its picture", expected=f"an end of at most {total}", got=int(ends.max())
        )
    if bool((starts[1:] < ends[:-1]).any()):
        raise RegionError(f"runs of a {what} overlap", got=f"a run that starts before {int(ends[:-1].max())}")
    return starts, lengths


def _pairs(tokens: Sequence[Any], what: str) -> tuple[Counts, Counts]:
    if not tokens or len(tokens) % 2:
        raise RegionError(f"a {what} is malformed", expected="pairs of numbers", got=f"{len(tokens)} tokens")
    numbers = _integers(tokens, what)
    return numbers[0::2], numbers[1::2]


def _integers(values: Any, what: str) -> Counts:
    """Return whole numbers below 2**40 in size as int64, so that sums of a few million of them cannot wrap."""
    try:
        exact = [int(v) for v in values] if not isinstance(values, np.ndarray) else values
        numbers = np.asarray(exact)
        whole = numbers.ndim == 1 and (numbers.size == 0 or numbers.dtype.kind in "iu")
        whole = whole and bool((np.abs(numbers.astype(np.float64)) < 2.0**40).all())
        whole = whole and all(not isinstance(v, float) or v == int(v) for v in values)
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise RegionError(f"a {what} is not a list of whole numbers", got=_short(values))
    return numbers.astype(np.int64)


def _short(values: object) -> str:
    text = " ".join(str(values).split())
    return text if len(text) <= 60 else text[:57] + "..."
