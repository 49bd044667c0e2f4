"""The symbols of a JPEG's scan, passed one after another: what is no symbol, and how many bits they take."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

CODE, FEW, BEYOND, VALUE = 1, 2, 3, 4
FAULTS = {
    CODE: "a code that its tables do not have",
    FEW: "fewer blocks than its size needs",
    BEYOND: "a coefficient beyond the last of its block",
    VALUE: "a mean beyond what its depth can give",
}
PLACE, RUN, TOTAL = 0, 1, 2  # of the state: bits passed, blocks that are known to be empty, bits there are
_FAR = 1 << 30
END = 31
"""In the upper bits of a step: the block ends here."""
FAST = 11
"""Bits of the longest number that a step passes; the longer ones of deep pictures are passed one after another."""


def steps_of(lengths: NDArray[np.uint8], symbols: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Return what a Huffman table of coefficients does with 16 bits in one step, ``(65536,)``.

    The lower six bits are how many bits are passed, code and number together; the bits above them how many
    coefficients, :data:`END` where the block ends. 0: no step, the code is looked at by itself.
    """
    skip, size = (symbols >> 4).astype(np.uint16), (symbols & 15).astype(np.uint16)
    passed = lengths.astype(np.uint16) + size
    run = np.where((size > 0) | (skip == 15), skip + 1, np.where(skip == 0, END, 0))
    return np.where((lengths > 0) & (size <= FAST) & (run > 0), run << 6 | passed, 0).astype(np.uint16)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def _ahead(code: NDArray[np.uint8], place: int, count: int) -> int:
    """Return the next bits, at most 16."""
    at = place >> 3
    held = (int(code[at]) << 16) | (int(code[at + 1]) << 8) | int(code[at + 2])
    return (held >> (24 - (place & 7) - count)) & ((1 << count) - 1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def _symbol(
    code: NDArray[np.uint8], at: NDArray[np.int64], lengths: NDArray[np.uint8], symbols: NDArray[np.uint8]
) -> int:
    """Return the next symbol and pass it; -1 where no code fits."""
    pattern = _ahead(code, at[PLACE], 16)
    length = int(lengths[pattern])
    at[PLACE] += length
    return int(symbols[pattern]) if length and at[PLACE] <= at[TOTAL] else -1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def _taken(code: NDArray[np.uint8], at: NDArray[np.int64], count: int) -> int:
    """Return the next bits and pass them; behind the end there are none, which the place then shows."""
    at[PLACE] += count
    return _ahead(code, at[PLACE] - count, count) if at[PLACE] <= at[TOTAL] and count else 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def _mean(
    code: NDArray[np.uint8], at: NDArray[np.int64], lengths: NDArray[np.uint8], symbols: NDArray[np.uint8], largest: int
) -> int:
    """Return by how much the mean of a block differs from the one before; :data:`_FAR` where it cannot be."""
    size = _symbol(code, at, lengths, symbols)
    if size < 0 or size > largest:
        return _FAR
    value = _taken(code, at, size)
    return int(value if size == 0 or value >> (size - 1) else value - (1 << size) + 1)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def _stepped(code: NDArray[np.uint8], at: NDArray[np.int64], steps: NDArray[np.uint16], band: tuple[int, int]) -> int:
    """Pass what ordinary steps pass of a block; return the coefficient at which anything else stands, or one behind."""
    k, place, near_end = band[0], at[PLACE], at[TOTAL] - 32
    while k <= band[1] and place <= near_end:
        step = int(steps[_ahead(code, place, 16)])
        run = step >> 6
        if run == END:
            place += step & 63
            k = band[1] + 1
        elif run == 0 or k + run - 1 > band[1]:
            break
        else:
            place += step & 63
            k += run
    at[PLACE] = place
    return int(k)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def _coefficients(
    code: NDArray[np.uint8],
    at: NDArray[np.int64],
    lengths: NDArray[np.uint8],
    symbols: NDArray[np.uint8],
    nonzero: NDArray[np.uint8],
    band: tuple[int, int],
    progressive: bool,
    largest: int,
) -> int:
    """Pass the coefficients of one block; return a fault, or 0."""
    k = band[0]
    while k <= band[1]:
        symbol = _symbol(code, at, lengths, symbols)
        skip, size = symbol >> 4, symbol & 15
        if symbol < 0 or size > largest or (size == 0 and 0 < skip < 15 and not progressive):
            return CODE
        if size == 0 and skip < 15:
            at[RUN] = (1 << skip) - 1 + _taken(code, at, skip)
            return 0
        k += skip
        if k > band[1]:
            return BEYOND
        if progressive and size:
            nonzero[k] = 1
        at[PLACE] += size
        k += 1
    return 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def _refined(
    code: NDArray[np.uint8],
    at: NDArray[np.int64],
    lengths: NDArray[np.uint8],
    symbols: NDArray[np.uint8],
    nonzero: NDArray[np.uint8],
    band: tuple[int, int],
) -> int:
    """Pass one further bit of the coefficients of one block; return a fault, or 0."""
    k = band[0]
    while at[RUN] == 0 and k <= band[1]:
        symbol = _symbol(code, at, lengths, symbols)
        skip, size = symbol >> 4, symbol & 15
        if symbol < 0 or size > 1:
            return CODE
        if size == 0 and skip < 15:
            at[RUN] = (1 << skip) + _taken(code, at, skip)
            break
        at[PLACE] += size
        while k <= band[1] and (nonzero[k] or skip > 0):
            at[PLACE] += nonzero[k]
            skip -= 1 - nonzero[k]
            k += 1
        if size and k > band[1]:
            return BEYOND
        if size:
            nonzero[k] = 1
        k += 1
    if at[RUN] > 0:
        while k <= band[1]:
            at[PLACE] += nonzero[k]
            k += 1
        at[RUN] -= 1
    return 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]  # numba ships no types
def walk(
    code: NDArray[np.uint8],
    total: int,
    places: NDArray[np.int64],
    owners: NDArray[np.int64],
    tables: NDArray[np.int64],
    lengths: NDArray[np.uint8],
    symbols: NDArray[np.uint8],
    steps: NDArray[np.uint16],
    nonzero: NDArray[np.uint8],
    limits: NDArray[np.int64],
    band: tuple[int, int],
    bits: tuple[int, int],
    progressive: bool,
    largest: int,
) -> tuple[int, int]:
    """Walk the symbols of some blocks; return the number of a fault (0: none) and how many bits were used.

    Args:
        code: bytes, eight further ones behind them.
        total: bits that count.
        places: block of each turn.
        owners: channel of each turn.
        tables: ``(channels, 2)`` Huffman table of means and of coefficients.
        lengths: ``(8, 65536)`` of the code that 16 bits begin with.
        symbols: ``(8, 65536)`` what it stands for.
        steps: ``(8, 65536)`` of :func:`steps_of`; zeros: every code is looked at by itself.
        nonzero: ``(blocks, 64)`` coefficients met before; written, where progressive.
        limits: largest mean of each channel.
        band: first and last coefficient of the scan.
        bits: of the coefficients: how many are known (0: none), how many stay unknown.
        progressive: several scans a channel.
        largest: bits of the longest number.
    """
    at = np.array([0, 0, total], dtype=np.int64)
    means = np.zeros(len(limits), np.int64)
    rest = (max(band[0], 1), band[1])
    for turn in range(len(places)):
        owner = owners[turn]
        mean, ac = tables[owner, 0], tables[owner, 1]
        own = nonzero[places[turn] if progressive else 0]
        fault = 0
        if band[0] == 0 and bits[0] > 0:
            at[PLACE] += 1
        elif band[0] == 0:
            means[owner] += _mean(code, at, lengths[mean], symbols[mean], largest)
            fault = VALUE if abs(means[owner]) << bits[1] > limits[owner] else 0
        if fault == 0 and rest[1] > 0 and bits[0] > 0:
            fault = _refined(code, at, lengths[ac], symbols[ac], own, rest)
        elif fault == 0 and rest[1] > 0 and at[RUN] > 0:
            at[RUN] -= 1
        elif fault == 0 and rest[1] > 0:
            left = rest if progressive else (_stepped(code, at, steps[ac], rest), rest[1])
            fault = _coefficients(code, at, lengths[ac], symbols[ac], own, left, progressive, largest)
        if fault or at[PLACE] > total:
            return (FEW if at[PLACE] > total else fault), at[PLACE]
    return (0 if at[RUN] == 0 else FEW), at[PLACE]
