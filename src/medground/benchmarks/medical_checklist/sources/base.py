"""A caption with its picture, paper and licence; what may be made of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from medground.errors import DataError

Licences = Literal["open", "derivatives", "any"]
"""``open``: CC0, CC BY and CC BY-SA alone. ``derivatives``: all but no-derivatives. ``any``: no filter."""

_OPEN = re.compile(r"cc0|cc[- ]by(?:[- ]sa)?", re.IGNORECASE)
_NO_DERIVATIVES = re.compile(r"\bnd\b|no.?deriv", re.IGNORECASE)
LONGEST = 20_000
"""Characters of a caption; a longer one is a whole article in the wrong field."""


@dataclass(frozen=True, slots=True)
class Captioned:
    """One picture with its caption.

    Attributes:
        caption_id: unique inside its source.
        caption: as published, outer blanks removed.
        image: path below the images' folder, or None.
        paper: what groups captions (a PMC id, a DOI, the image where no paper is known).
        source: name of the collection.
        licence: as the source states it; empty where it states none.
        split: of the source.
    """

    caption_id: str
    caption: str
    image: str | None
    paper: str
    source: str
    licence: str = ""
    split: str = ""


def may_be_used(licence: str, rule: Licences) -> bool:
    """Whether captions changed from one under a licence may be made.

    Example:
        >>> may_be_used("CC BY-NC-ND", "derivatives"), may_be_used("CC BY-NC", "derivatives"), may_be_used("", "open")
        (False, True, False)
    """
    if rule == "any":
        return True
    if rule == "open":
        return _OPEN.fullmatch(re.sub(r"[\s_]+", " ", licence.strip()).removesuffix(" 4.0")) is not None
    return _NO_DERIVATIVES.search(licence.replace("-", " ")) is None


def select(
    captions: Iterable[Captioned],
    *,
    licences: Licences = "derivatives",
    images: Path | None = None,
    require_image: bool = False,
) -> tuple[list[Captioned], Counter[str]]:
    """Return captions in canonical order and the number left out for each reason.

    Duplicates by paper and normalised caption keep the first in order; an id that stands with two captions is ambiguous
    and gives none. The order of the input does not matter.

    Args:
        captions: from any sources.
        licences: which licences may be used.
        images: folder that holds the pictures; where given, missing ones are counted.
        require_image: leave captions without their picture out.
    """
    refused: Counter[str] = Counter()
    held = sorted(set(captions), key=lambda c: (c.source, c.caption_id, c.caption, c.paper))
    uses = Counter((c.source, c.caption_id) for c in held)
    kept, seen = [], set()
    for entry in held:
        same = (entry.paper, " ".join(entry.caption.casefold().split()))
        reason = _reason(entry, licences, uses) or ("duplicate" if same in seen else None)
        if reason:
            refused[reason] += 1
            continue
        seen.add(same)
        if images is None or (entry.image and (images / entry.image).is_file()):
            kept.append(entry)
            continue
        refused["image_missing"] += 1
        if not require_image:
            kept.append(replace(entry, image=None))
    return kept, refused


def _reason(entry: Captioned, licences: Licences, uses: Counter[tuple[str, str]]) -> str | None:
    if not entry.caption:
        return "empty_caption"
    if len(entry.caption) > LONGEST:
        return "caption_too_long"
    if uses[entry.source, entry.caption_id] > 1:
        return "ambiguous_id"
    return None if may_be_used(entry.licence, licences) else "licence"


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield (number, line) of a UTF-8 file, cut at ``\n`` alone.

    Raises:
        DataError: the file is missing or not UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                yield number, line.rstrip("\r\n")
    except OSError as error:
        raise DataError("a caption file cannot be read", where=path, got=error.strerror) from None
    except UnicodeDecodeError as error:
        raise DataError(
            "captions are not UTF-8",
            where=path,
            got=f"byte {error.object[error.start]:#04x}",
            fix=f"iconv -f LATIN1 -t UTF-8 {path.name} > utf8.txt",
        ) from None


def without_figure_number(caption: str) -> str:
    """Return a caption without the "Figure 3." or "Fig. 2:" that it starts with.

    Example:
        >>> without_figure_number("Fig. 2: A lung.")
        'A lung.'
    """
    return re.sub(r"^\s*(?:figure|fig\.?)\s*\d+[a-z]?\s*[.:|\-\u2013]?\s*", "", caption, flags=re.IGNORECASE)


def missing(folder: Path, names: Sequence[str]) -> DataError:
    """Return the error for a folder that holds none of the files of a source."""
    return DataError(
        "a folder does not hold this source", where=folder, expected=" or ".join(names), got="none of them"
    )
