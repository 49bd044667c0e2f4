"""From stored DICOM values to displayed grey: modality, value of interest, inversion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom.dataset import Dataset

from medground.errors import ImageError
from medground.imaging._attributes import real, whole
from medground.imaging._display import Displayed
from medground.imaging._quiet import quiet
from medground.imaging._raster import luma

Values = NDArray[np.float64]

COLOURS = frozenset({"RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT"})
"""Photometric interpretations of three samples that are read, as luma."""

_TABLE_BITS = 16  # depths above are transformed value by value


@dataclass(frozen=True)
class Depth:
    """How stored bits become numbers."""

    bits: int
    signed: bool
    shift: int

    @classmethod
    def of(cls, header: Dataset, encapsulated: bool) -> Depth:
        """Return the depth that a header states.

        Raises:
            ImageError: bits that do not fit each other.
        """
        allocated = whole(header, "BitsAllocated", 0)
        bits = whole(header, "BitsStored", allocated)
        high = whole(header, "HighBit", bits - 1)
        if not 1 <= bits <= allocated <= 32 or not bits - 1 <= high < allocated:
            raise ImageError(
                "a DICOM file's bits do not fit each other",
                where="Bits Allocated, Bits Stored, High Bit (0028,0100 to 0102)",
                expected="1 <= stored <= allocated <= 32, stored - 1 <= high bit < allocated",
                got=f"allocated {allocated}, stored {bits}, high bit {high}",
            )
        # A codec gives its samples right-aligned, wherever the header says that they were.
        return cls(bits, header.get("PixelRepresentation") == 1, 0 if encapsulated else high + 1 - bits)

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value."""
        return (-(1 << self.bits - 1), (1 << self.bits - 1) - 1) if self.signed else (0, (1 << self.bits) - 1)

    def codes(self, stored: NDArray[Any]) -> NDArray[np.unsignedinteger]:
        """Return the stored bits alone as whole numbers of 0 or more; overlays above or below them are masked."""
        width = stored.dtype.itemsize
        native = stored.astype(f"{stored.dtype.kind}{width}", copy=False)  # big-endian files come as they are stored
        codes: NDArray[np.unsignedinteger] = np.bitwise_and(
            native.view(f"u{width}") >> self.shift, (1 << self.bits) - 1
        )
        return codes

    def beyond(self, stored: NDArray[Any]) -> bool:
        """Whether values need more bits than the header says: an overlay among the pixels, or a wrong depth."""
        least, most = self.limits
        return bool(int(stored.min()) >> self.shift < least or int(stored.max()) >> self.shift > most)

    def numbers(self, codes: NDArray[np.integer]) -> Values:
        """Return the numbers that bit patterns stand for."""
        codes = codes.astype(np.int64)
        top = 1 << self.bits - 1
        return (np.where(codes >= top, codes - 2 * top, codes) if self.signed else codes).astype(np.float64)


def colour(stored: NDArray[Any], depth: Depth, kind: str) -> Displayed:
    """Return the displayed values of RGB ``(h, w, 3)`` or luma ``(h, w, 1)``.

    They are scaled by the full range of the stored bits, as no window applies to colour.
    """
    top, codes = (1 << depth.bits) - 1, depth.codes(stored)
    pixels = ((luma(codes) if codes.shape[2] == 3 else codes[..., 0]) / top).astype(np.float32)
    return Displayed(pixels, (0.0, float(top)), (f"DICOM {kind}, {depth.bits} bit", "colour to luma (ITU-R 601)"))


def displayed(stored: NDArray[Any], depth: Depth, header: Dataset, kind: str) -> Displayed:
    """Return the displayed values of a grey picture.

    Raises:
        ImageError: a rescale or a table that is malformed.
    """
    steps = [f"DICOM {kind}, {depth.bits} bit {'signed' if depth.signed else 'unsigned'}"]
    modality, full = _modality(header, depth, steps)
    window, value_range = _interest(header, full, steps)
    if kind == "MONOCHROME1":
        steps.append("inverted: MONOCHROME1")

    def shown(numbers: Values) -> NDArray[np.float32]:
        grey = np.clip(window(modality(numbers)), 0.0, 1.0)
        return (1.0 - grey if kind == "MONOCHROME1" else grey).astype(np.float32)

    if depth.beyond(stored):
        steps.append("bits outside those stored are set, and not read")
    codes = depth.codes(stored)
    if depth.bits <= _TABLE_BITS:
        pixels = shown(depth.numbers(np.arange(1 << depth.bits, dtype=np.int64)))[codes]
    else:
        pixels = shown(depth.numbers(codes))
    return Displayed(pixels, value_range, tuple(steps))


def _modality(
    header: Dataset, depth: Depth, steps: list[str]
) -> tuple[Callable[[Values], Values], tuple[float, float]]:
    """Return the modality transform and the range of its results over all stored values."""
    if header.get("ModalityLUTSequence"):
        table, first, top = _table(header, "ModalityLUTSequence")
        steps.append(f"modality LUT of {table.size} entries")
        return lambda numbers: _looked_up(table, first, numbers), (0.0, top)
    if "RescaleSlope" not in header and "RescaleIntercept" not in header:
        return lambda numbers: numbers, (float(depth.limits[0]), float(depth.limits[1]))
    slope = real(header, "RescaleSlope", 1.0)
    intercept = real(header, "RescaleIntercept", 0.0)
    if slope == 0:
        raise ImageError("a DICOM file's rescale slope is 0", where="(0028,1053)", expected="another number")
    steps.append(f"modality LUT slope {slope:g} intercept {intercept:g}")
    low, high = sorted(slope * limit + intercept for limit in depth.limits)
    return lambda numbers: numbers * slope + intercept, (low, high)


def _interest(
    header: Dataset, full: tuple[float, float], steps: list[str]
) -> tuple[Callable[[Values], Values], tuple[float, float]]:
    """Return the transform onto 0 to 1 (to be clipped), rising with the rescaled value, and the range it maps."""
    if header.get("VOILUTSequence"):
        table, first, top = _table(header, "VOILUTSequence")
        steps.append(f"VOI LUT of {table.size} entries")
        return lambda values: _looked_up(table, first, values) / top, (0.0, top)
    low, high = full
    function = str(header.get("VOILUTFunction") or "LINEAR").strip().upper()
    if header.get("WindowCenter") is not None and header.get("WindowWidth") is not None:
        centre, width = real(header, "WindowCenter", 0.0), real(header, "WindowWidth", 0.0)
        if function not in {"LINEAR", "LINEAR_EXACT", "SIGMOID"}:
            raise ImageError("a DICOM file's VOI LUT function is unknown", where="(0028,1056)", got=function[:20])
        if width >= 1 or (width > 0 and function != "LINEAR"):
            steps.append(f"window centre {centre:g} width {width:g}" + (f" {function}" if function != "LINEAR" else ""))
            return _window(function, centre, width)
        steps.append(f"window of width {width:g} ignored")
    steps.append(f"full range {low:g} to {high:g}")
    return lambda values: (values - low) / (high - low), full


def _window(function: str, centre: float, width: float) -> tuple[Callable[[Values], Values], tuple[float, float]]:
    """Return a window's transform and range (DICOM PS3.3 C.11.2.1.2 and C.11.2.1.3)."""
    if function == "SIGMOID":
        # exp overflows beyond 700; the curve is flat long before.
        return (
            lambda values: 1 / (1 + np.exp(np.clip(-4 * (values - centre) / width, -700, 700))),
            (centre - width / 2, centre + width / 2),
        )
    if function == "LINEAR":
        centre, width = centre - 0.5, width - 1
    low, high = centre - width / 2, centre + width / 2
    if width == 0:
        return lambda values: (values > centre).astype(np.float64), (low, high)
    return lambda values: (values - centre) / width + 0.5, (low, high)


def _table(header: Dataset, keyword: str) -> tuple[Values, int, float]:
    """Return a LUT's entries, the value that the first one stands for, and the largest entry possible.

    Raises:
        ImageError: the descriptor or the data are malformed.
    """
    try:
        with quiet():
            item = header[keyword][0]
            entries, first, bits = (int(number) for number in item.LUTDescriptor)
            data = item.LUTData
        entries = (
            entries % (1 << 16) or 1 << 16
        )  # 0 stands for 65536, and a signed reader makes it negative above 32767
        if isinstance(data, bytes):
            wide = ">u2" if item.original_encoding[1] is False else "<u2"
            table = np.frombuffer(data, dtype=np.uint8 if len(data) == entries else wide)
        else:
            table = np.atleast_1d(np.asarray(data))
        if table.size != entries or not 1 <= bits <= 16 or table.dtype.kind not in "iu":
            raise ValueError(f"{table.size} entries of {bits} bit, expected {entries}")
    except Exception as error:  # whatever pydicom raises for a malformed item
        raise ImageError(f"a DICOM file's {keyword} is malformed", got=f"{type(error).__name__}: {error}") from error
    return table.astype(np.float64), first, float((1 << bits) - 1)


def _looked_up(table: Values, first: int, numbers: Values) -> Values:
    """Return entries of a LUT; values below its first take the first, above its last the last."""
    return table[np.clip(np.rint(numbers - first), 0, table.size - 1).astype(np.int64)]
