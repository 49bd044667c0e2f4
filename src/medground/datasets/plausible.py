"""Whether data that is well formed also makes sense: some cases of a dataset looked at, and every doubt with its count.

A doubt is *certain* where no dataset of the kind can be so: pictures without any contrast, boxes in shares of the
picture where pixels are meant, masks that are inside out, frames of a shape that the picture never had. ``run`` refuses
those unless the run file says ``implausible: accept``; the rest is said and stands in the report.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from medground.datasets.base import Case
from medground.datasets.report import check_cases
from medground.errors import DataError
from medground.imaging.reading import Radiograph, image_size, read_radiograph
from medground.imaging.regions import Region
from medground.paths import is_file
from medground.tables.ids import plain_id

LOOKED_AT = 24
"""Cases whose regions are looked at."""
DECODED = 3
"""Cases whose pictures are decoded."""
FLAT = 1 / 255
"""A picture whose pixels differ by less has no contrast."""
INSIDE_OUT = 0.6
"""No finding on a radiograph covers so much of the picture, case after case."""
STRETCHED, BENT = 1.6, 1.1
"""Ratio of the aspects of frame and picture that is no accident, and that is worth a word (a squashed copy)."""


@dataclass(frozen=True)
class Doubt:
    """Something that makes no sense.

    Attributes:
        text: what, in how many of the cases that were looked at, and such as which.
        certain: whether it cannot be right.
        fix: what would mend it.
    """

    text: str
    certain: bool
    fix: str | None = None

    def __str__(self) -> str:
        return self.text + (f" ({self.fix})" if self.fix else "")


def doubts(cases: Sequence[Case], read: Callable[..., Radiograph] = read_radiograph) -> list[Doubt]:
    """Return what makes no sense in a dataset, from some of its cases, always the same ones.

    Args:
        cases: of one dataset; regions that cannot be made, and pictures that cannot be decoded, are told elsewhere.
        read: decodes a picture.
    """
    localised = spread([case for case in cases if case.regions], LOOKED_AT)
    regions = [(case, finding, region) for case in localised for finding, region in _regions(case)]
    pictures = spread([case for case in cases if is_file(case.image)], DECODED)
    decoded = list(_decoded(pictures, read))
    pixels = [*_flat(decoded), *_remarked(decoded)]
    return [
        *pixels,
        *_normalised(regions),
        *_inside_out(regions),
        *_empty(regions),
        *_grey(regions),
        *_stretched(regions),
        *_one_patient(cases),
    ]


def turned(cases: Sequence[Case]) -> list[Doubt]:
    """Return the frames whose width and height are swapped, of some cases; what cannot be made costs its item."""
    some = spread([case for case in cases if case.regions and is_file(case.image)], LOOKED_AT)
    named = [name for case in some for name in (*case.labels, *case.regions)]
    swapped = [problem for problem in check_cases(some, named) if "swapped" in problem.what]
    return [Doubt(str(problem), certain=True) for problem in swapped]


def spread(cases: Sequence[Case], most: int) -> list[Case]:
    """Return some cases, evenly spread, the first and the last among them."""
    if len(cases) <= most:
        return list(cases)
    return [cases[round(i * (len(cases) - 1) / (most - 1))] for i in range(most)]


Found = tuple[Case, str, Region]


def _regions(case: Case) -> Iterator[tuple[str, Region]]:
    for finding in case.regions:
        try:
            yield finding, case.regions[finding]
        except DataError:
            continue


def _decoded(cases: Sequence[Case], read: Callable[..., Radiograph]) -> Iterator[tuple[Case, Radiograph]]:
    """Yield cases with their pictures, each opened once; one that cannot be decoded is told elsewhere."""
    for case in cases:
        with contextlib.suppress(DataError):
            yield case, read(case.image, case_id=case.case_id)


def _flat(decoded: Sequence[tuple[Case, Radiograph]]) -> Iterator[Doubt]:
    flat = []
    for case, image in decoded:
        if float(np.ptp(image.pixels)) < FLAT:
            value, steps = float(image.pixels.flat[0]), "; ".join(image.steps)
            flat.append(f"{case.case_id}: every pixel is {value:.3g} ({steps})")
    if flat:
        text = f"{len(flat)} of {len(decoded)} pictures have no contrast, such as {flat[0]}"
        yield Doubt(text, len(flat) == len(decoded), "is a DICOM's window outside its values, or is the picture empty?")


NOT_APPLIED = ("EXIF orientation", "padding value", "presentation LUT", "bits outside")
"""What a decoder says in its steps of what a file states and nothing applies."""


def _remarked(decoded: Sequence[tuple[Case, Radiograph]]) -> Iterator[Doubt]:
    remarks: dict[str, list[str]] = {}
    for case, image in decoded:
        for step in image.steps:
            if step.startswith(NOT_APPLIED):
                remarks.setdefault(step, []).append(case.case_id)
    for step, names in remarks.items():
        yield Doubt(f"{len(names)} of {len(decoded)} pictures: {step}, such as {names[0]}", certain=False)


def _normalised(regions: Sequence[Found]) -> Iterator[Doubt]:
    boxed = [(c, r) for c, _, r in regions if r.boxes and not r.polygons and not r.masks and min(r.frame) > 8]
    small = [(c, r) for c, r in boxed if all(max(box.corners) <= 1.0 for box in r.boxes)]
    if small:
        case, region = small[0]
        text = (
            f"{len(small)} of {len(boxed)} boxed regions end within one pixel, such as {case.case_id}: "
            f"{', '.join(f'{x:.3g}' for x in region.boxes[0].corners)} in a frame of "
            f"{region.frame[0]} x {region.frame[1]}"
        )
        yield Doubt(text, len(small) == len(boxed), "are they shares of the picture? multiply by width and height")


def _inside_out(regions: Sequence[Found]) -> Iterator[Doubt]:
    masked = [(c, f, r.area / math.prod(r.frame)) for c, f, r in regions if r.masks]
    large = [(c, f, share) for c, f, share in masked if share > INSIDE_OUT]
    if large:
        case, finding, share = large[0]
        text = (
            f"{len(large)} of {len(masked)} masks cover more than {INSIDE_OUT:.0%} of their picture, such as "
            f"{case.case_id}, {finding}: {share:.0%}"
        )
        yield Doubt(text, len(large) > len(masked) / 2, "are they inside out? what is inside must not be 0")


def _empty(regions: Sequence[Found]) -> Iterator[Doubt]:
    masked = [(c, f, r) for c, f, r in regions if r.masks]
    empty = [(c, f) for c, f, r in masked if not r.area]
    if empty:
        case, finding = empty[0]
        text = f"{len(empty)} of {len(masked)} masks of regions are empty, such as {case.case_id}, {finding}"
        yield Doubt(text, False, "a finding without a region is one that the table does not localise")


def _one_patient(cases: Sequence[Case]) -> Iterator[Doubt]:
    """Spellings of one patient would be counted as several, and intervals be too narrow."""
    spellings: dict[str, list[str]] = {}
    for name in dict.fromkeys(case.patient_id for case in cases if case.patient_id):
        spellings.setdefault(plain_id(name), []).append(name)
    several = [names for names in spellings.values() if len(names) > 1]
    if several:
        text = f"{len(several)} patients are written in several ways, such as {' and '.join(map(repr, several[0][:3]))}"
        yield Doubt(text, False, "intervals take them for different patients; write each in one way")


def _grey(regions: Sequence[Found]) -> Iterator[Doubt]:
    masked = [(c, f, r) for c, f, r in regions if r.masks]
    grey = [(c, f, note) for c, f, r in masked for note in r.notes if "grey levels" in note]
    if grey:
        case, finding, note = grey[0]
        mostly = sum("most of it" in note for _, _, note in grey) > len(masked) / 2
        text = f"{len(grey)} of {len(masked)} masks are not of two values, such as {case.case_id}, {finding}: {note}"
        yield Doubt(text, mostly, "were they resized or saved with losses? masks are 0 and one other value")


def _stretched(regions: Sequence[Found]) -> Iterator[Doubt]:
    framed = {case.case_id: (case, region.frame) for case, _, region in regions if is_file(case.image)}
    ratios = [(case, frame, size, _ratio(frame, size)) for case, frame in framed.values() for size in _size(case)]
    bent = [entry for entry in ratios if entry[3] > BENT]
    if bent:
        case, frame, size, _ = max(bent, key=lambda entry: entry[3])
        text = (
            f"{len(bent)} of {len(ratios)} frames of regions have another shape than their picture, such as "
            f"{case.case_id}: {frame[0]} x {frame[1]} on {size[0]} x {size[1]}"
        )
        certain = sum(entry[3] > STRETCHED for entry in ratios) > len(ratios) / 2
        yield Doubt(text, certain, "regions are stretched with it; is the frame that of the boxes?")


def _size(case: Case) -> Iterable[tuple[int, int]]:
    try:
        return [image_size(case.image)]
    except DataError:
        return []


def _ratio(frame: tuple[int, int], size: tuple[int, int]) -> float:
    own, picture = frame[0] / frame[1], size[0] / size[1]
    return max(own / picture, picture / own)
