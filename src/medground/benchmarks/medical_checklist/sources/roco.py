r"""ROCO v1: text files of razorx89/roco-dataset.

``data/{train,validation,test}/{radiology,non-radiology}/`` holds captions.txt (``id<TAB> caption``), dlinks.txt (id, a
download command with the PMC package, image name) and licences.txt (CSV: ROCO_ID,PMC_ID,CC). Pictures are
``images/ROCO_00001.jpg`` beside them where they were downloaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from medground.benchmarks.medical_checklist.sources.base import Captioned, missing, text_lines
from medground.errors import DataError

_PMC = re.compile(r"(PMC\d+)")
SPLITS = ("train", "validation", "test")


def read(
    folder: Path, splits: tuple[str, ...] = SPLITS, kinds: tuple[str, ...] = ("radiology", "non-radiology")
) -> Iterator[Captioned]:
    """Yield the captions of a clone of the repository (or of its ``data`` folder).

    Raises:
        DataError: no caption file is found, or a line has no tab.
    """
    root = folder / "data" if (folder / "data").is_dir() else folder
    found = False
    for split in splits:
        for kind in kinds:
            part = root / split / kind
            if (part / "captions.txt").is_file():
                found = True
                yield from _part(part, split, kind)
    if not found:
        raise missing(root, [f"{s}/{k}/captions.txt" for s in splits for k in kinds])


def _part(part: Path, split: str, kind: str) -> Iterator[Captioned]:
    papers = _papers(part / "dlinks.txt")
    licences = _licences(part / "licences.txt")
    for number, line in text_lines(part / "captions.txt"):
        if not line.strip():
            continue
        caption_id, tab, caption = line.partition("\t")
        if not tab:
            raise DataError("a caption line has no tab", where=f"{part / 'captions.txt'}, line {number}", got=line[:60])
        licence, licence_paper = licences.get(caption_id, ("", ""))
        paper = papers.get(caption_id) or licence_paper or caption_id
        yield Captioned(
            f"{kind}/{caption_id}" if kind != "radiology" else caption_id,
            caption.strip(),
            f"{split}/{kind}/images/{caption_id}.jpg",
            paper,
            "roco",
            licence,
            split,
        )


def _papers(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    rows = (line.split("\t", 1) for _, line in text_lines(path) if "\t" in line)
    return {row[0]: match[1] for row in rows if (match := _PMC.search(row[1]))}


def _licences(path: Path) -> dict[str, tuple[str, str]]:
    """Return id -> (licence, paper); the file is a CSV without quoting, its middle field may hold anything."""
    if not path.is_file():
        return {}
    held = {}
    for number, line in text_lines(path):
        row = line.split(",")
        if number > 1 and len(row) >= 3:
            match = _PMC.search(row[1])
            held[row[0]] = (row[-1].strip(), match[1] if match else "")
    return held
