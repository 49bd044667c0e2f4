"""Masks and outlines of CheXlocalize; sizes in both files are ``[height, width]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from medground.datasets._folder.tables import read_json
from medground.datasets._folder.vocabulary import Vocabulary
from medground.datasets.lazy import Maker
from medground.datasets.report import Ledger
from medground.errors import RegionError
from medground.imaging.regions import Region

Parts = Mapping[str, Region | Maker]  # by finding
Truth = dict[str, dict[str, Region | Maker]]  # by case and finding

SIZE = "img_size"
"""A key among the findings of the annotation file that is none."""


def read_masks(path: Path, vocabulary: Vocabulary, ledger: Ledger) -> Truth:
    """Read ``gt_segmentations``: COCO codes, ten findings for every image, an empty mask as a single run."""
    truth: Truth = {}
    for case, finding, value, _ in _entries(path, truth, vocabulary, ledger):
        where = f"{path.name}, {case}, {finding}"
        size, code = (value.get("size"), value.get("counts")) if isinstance(value, dict) else (None, None)
        try:
            # The code is checked here and then kept, for its runs would need a hundred times its memory.
            if not _decoded(size, code, where).is_empty:
                truth[case][finding] = Maker(partial(_decoded, size, code, where), repr((size, code)))
        except RegionError as error:
            ledger.problem(error.what, where, expected=error.expected, got=error.got)
    return truth


def read_outlines(path: Path, vocabulary: Vocabulary, ledger: Ledger) -> Truth:
    """Read ``gt_annotations``: one list of points a contour, only the findings that are there."""
    truth: Truth = {}
    for case, finding, contours, size in _entries(path, truth, vocabulary, ledger):
        where = f"{path.name}, {case}, {finding}"
        try:
            region = _outlined(contours, size, where, ledger)
        except RegionError as error:
            ledger.problem(error.what, where, expected=error.expected, got=error.got)
            continue
        if region is not None:
            truth[case][finding] = region
    return truth


def _entries(path: Path, truth: Truth, vocabulary: Vocabulary, ledger: Ledger) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield case, finding, value and ``img_size`` of every entry; every case gets its place in ``truth``."""
    for case, tasks in read_json(path, dict).items():
        truth[case] = {}
        if not isinstance(tasks, dict):
            ledger.problem("a case of the ground truth is no object", f"{path.name}, {case}")
            continue
        for task, value in tasks.items():
            finding = vocabulary.get(task)
            if finding is not None:
                yield case, finding, value, tasks.get(SIZE)
            elif task != SIZE:
                expected = ", ".join(vocabulary.names)
                ledger.problem(f"{task!r} is no finding", f"{path.name}, {case}", expected=expected)


def _decoded(size: Any, code: Any, where: str) -> Region:
    try:
        return Region.from_coco(size, code)
    except RegionError as error:
        raise RegionError(error.what, where=where, expected=error.expected, got=error.got) from None


def _outlined(contours: Any, size: Any, where: str, ledger: Ledger) -> Region | None:
    """Return the union of contours, filled with their outline; None if none has three points."""
    if not isinstance(size, list) or len(size) != 2 or not isinstance(contours, list):
        raise RegionError("outlines are malformed", expected=f"{SIZE} [height, width] and lists of points")
    usable = [c for c in contours if isinstance(c, list) and len(c) >= 3]
    if len(usable) < len(contours):
        ledger.remark("contours of fewer than three points dropped", where, count=len(contours) - len(usable))
    if not usable:
        return None
    region = Region.from_polygons((size[1], size[0]), usable, clip=True)
    if region.notes:
        ledger.remark("contours that reach beyond their picture", where, count=len(region.notes))
    return region
