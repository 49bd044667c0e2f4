"""Boxes in the pixels of DICOM files: the size comes from a header, the region from one or several readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from medground.datasets._folder.pictures import DICOM_SUFFIXES
from medground.datasets._folder.tables import number, read_all
from medground.datasets.lazy import LazyRegions, Maker
from medground.datasets.report import Ledger
from medground.errors import DatasetError, ImageError
from medground.imaging.reading import image_size
from medground.imaging.regions import Region

Size = tuple[int, int]
Corners = tuple[float, float, float, float]
ByReader = tuple[tuple[Corners, ...], ...]

SIZE_COLUMNS = (("width", "height"), ("dim1", "dim0"))
"""Names of (width, height) in tables of original sizes; ``dim0, dim1`` is the order of an array, (height, width)."""


@dataclass(frozen=True)
class Frames:
    """How the size of the picture that boxes are stated in is found.

    Attributes:
        sizes: image id -> (width, height), from a table of the user's.
        copies: pictures that are not DICOM have the original size, so that their own size serves.
    """

    sizes: Mapping[str, Size] | None = None
    copies: bool = False

    def of(self, image: Path) -> Size:
        """Return the frame of an image's boxes.

        Raises:
            DatasetError: the image is a copy of unknown original size.
            ImageError: its header cannot be read.
        """
        if self.sizes is not None:
            if image.stem not in self.sizes:
                raise DatasetError("the table of sizes lacks an image", where=image.stem)
            return self.sizes[image.stem]
        if image.suffix.lower() in DICOM_SUFFIXES or self.copies:
            return image_size(image)
        raise ImageError(
            "boxes are in the pixels of the DICOM file, and this copy may have another size",
            where=image,
            expected="a .dicom file",
            fix="give the original sizes, sizes: FILE (image_id,width,height), or say that copies have them: "
            "copies: original",
        )


def read_sizes(path: Path, images: Iterable[str], ledger: Ledger) -> Mapping[str, Size]:
    """Return the original sizes of images, from a table ``image_id,width,height`` (or ``image_id,dim0,dim1``).

    Raises:
        DatasetError: a column is missing, a size is not two whole numbers, an image has two, or no image fits.
    """
    table = read_all(path, ledger=ledger)
    table.columns = [name.casefold() for name in table.columns]
    columns = next((pair for pair in SIZE_COLUMNS if set(pair) <= set(table.columns)), None)
    if columns is None or "image_id" not in table.columns:
        raise DatasetError(
            "a table of sizes lacks a column",
            where=path,
            expected="image_id,width,height",
            got=", ".join(table.columns),
        )
    sizes: dict[str, Size] = {}
    for image, *sides in table.select("image_id", *columns).unique(maintain_order=True).iter_rows():
        width, height = (number(side) or 0 for side in sides)
        if min(width, height) < 1 or {width % 1, height % 1} != {0}:
            raise DatasetError("a size is not two whole numbers", where=f"{path.name}, {image}", got=sides)
        if sizes.setdefault(image, (int(width), int(height))) != (width, height):
            raise DatasetError("an image has two sizes", where=f"{path.name}, {image}", got=(sizes[image], sides))
    matched = ledger.join(images, sizes, what="the table of sizes", unit="images", larger=True)
    return {mine: sizes[theirs] for mine, theirs in matched.items()}


def regions_of(boxes: Mapping[str, ByReader], needed: int, frames: Frames, image: Path) -> LazyRegions:
    """Return regions that read the picture's header when they are looked at.

    Args:
        boxes: finding -> boxes of each reader.
        needed: how many readers must agree on a pixel; 1 gives the union of all boxes.
        frames: how the picture's size is found.
        image: the picture.
    """
    return LazyRegions(
        {
            f: Maker(partial(_region, by_reader, needed, frames, image), repr((by_reader, needed)))
            for f, by_reader in boxes.items()
        }
    )


def _region(by_reader: ByReader, needed: int, frames: Frames, image: Path) -> Region:
    frame = frames.of(image)
    parts = [_clipped(frame, boxes) for boxes in by_reader]
    if needed == 1:
        return Region.union(*parts)
    votes = np.sum([part.mask() for part in parts], axis=0, dtype=np.uint8)
    agreed = Region.from_mask(votes >= needed)
    return Region(frame, masks=agreed.masks, notes=tuple(note for part in parts for note in part.notes))


def _clipped(frame: Size, boxes: Sequence[Corners]) -> Region:
    """Return boxes cut at the frame; those wholly outside are dropped with a note."""
    width, height = frame
    inside = [b for b in boxes if b[0] < width and b[1] < height and b[2] > 0 and b[3] > 0]
    region = Region.from_boxes(frame, inside, clip=True)
    dropped = tuple(f"box {b} outside the frame {width} x {height} dropped" for b in boxes if b not in inside)
    return Region(frame, boxes=region.boxes, notes=region.notes + dropped)
