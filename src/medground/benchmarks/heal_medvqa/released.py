"""The circulating Parquet layout of HEAL-MedVQA, read from the user's own copy; medground ships none of it.

Fields: ``image`` (embedded), ``image_id``, ``question_id``, ``question``, ``answer``, ``anatomy``, ``question_type``
(0 closed_no, 1 closed_yes, 2 open_abnormal, 3 open_normal), ``mask_rle`` (flat pairs, 0-based), ``mask_h``, ``mask_w``.
It has no field for the finding: closed questions are taken apart by the printed forms, and those that fit none are
counted. The order of the pixels is not said either and is told from the masks. Its own questions are asked by
:mod:`medground.benchmarks.heal_medvqa.released_gallery`. Whatever a card states, the pictures are
MIMIC-CXR's and VinDr-CXR's, under PhysioNet's terms.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import polars as pl

from medground.benchmarks.heal_medvqa.pixel_order import CodedMask, detected_order
from medground.benchmarks.heal_medvqa.questions import Kind
from medground.errors import DatasetError
from medground.imaging.rle import Order

KINDS: tuple[Kind, ...] = ("closed_no", "closed_yes", "open_abnormal", "open_normal")
"""By the number in ``question_type``."""
_REQUIRED = (
    "image_id",
    "question_id",
    "question",
    "answer",
    "anatomy",
    "question_type",
    "mask_rle",
    "mask_h",
    "mask_w",
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"^does (?:the )?(?P<anatomy>.+?) (?:have|suffer from|show) (?P<finding>.+?)\s*\?$",
        r"^is there (?:any )?(?P<finding>.+?) present in (?:the )?(?P<anatomy>.+?)\s*\?$",
    )
)
_TOLD = 400  # masks that the pixel order is told from
assert set(KINDS) == set(get_args(Kind))


@dataclass(frozen=True)
class Released:
    """One row, neutral.

    Attributes:
        question_id: as released.
        image_id: as released.
        split: ``train`` or ``test``, by the name of its file.
        kind: of the question.
        question: its words.
        answer: as released.
        anatomy: asked about.
        finding: taken out of a closed question; empty where no printed form fits, and for open ones.
        mask: of the anatomy, still coded; may be empty.
        shard: name of its file.
    """

    question_id: str
    image_id: str
    split: str
    kind: Kind
    question: str
    answer: str
    anatomy: str
    finding: str
    mask: CodedMask
    shard: str = ""


@dataclass
class Release:
    """Rows of a folder, and what was counted.

    Attributes:
        rows: in the order of files and lines.
        order: of the pixels in run lengths; None where no mask tells.
        counts: ``rows``, ``images``, ``empty masks``, ``closed questions of no known form``, and rows by kind.
    """

    rows: list[Released]
    order: Order | None
    counts: Counter[str] = field(default_factory=Counter)


def read_release(root: Path, *, order: Order | None = None) -> Release:
    """Read every Parquet shard below a folder; pictures stay in their files.

    Args:
        root: the folder of shards named ``train*`` and ``test*``.
        order: of the pixels; None: told from the masks.

    Raises:
        DatasetError: no shard, a missing field, or a value of another kind.
        RegionError: the order cannot be told and was not given.
    """
    shards = sorted(path for path in root.glob("*.parquet") if path.name.startswith(("train", "test")))
    if not shards:
        raise DatasetError(
            "there is no shard of the release", where=root, expected="train-*.parquet, test-*.parquet in the folder"
        )
    rows = [row for shard in shards for row in _rows(shard)]
    counts = Counter({"rows": len(rows), "images": len({row.image_id for row in rows})})
    counts.update(row.kind for row in rows)
    counts["empty masks"] = sum(row.mask.is_empty for row in rows)
    counts["closed questions of no known form"] = sum(row.kind.startswith("closed") and not row.finding for row in rows)
    return Release(rows, order or _order([row.mask for row in rows]), counts)


def taken_apart(question: str) -> tuple[str, str] | None:
    """Return anatomy and finding of a closed question in a printed form, or None.

    >>> taken_apart("Does Right Middle Lung suffer from Lung Opacity?")
    ('Right Middle Lung', 'Lung Opacity')
    """
    for form in _FORMS:
        if match := form.match(" ".join(question.split())):
            return match["anatomy"], match["finding"]
    return None


def reworded(question: str, anatomy: str, finding: str) -> str:
    """Return a closed question in a printed form about another anatomy or finding, written as the first ones were.

    >>> reworded("Does Right Lower Lung suffer from Lung Opacity?", "left lower lung", "Lung Opacity")
    'Does Left Lower Lung suffer from Lung Opacity?'
    """
    apart = taken_apart(question)
    if apart is None:
        raise ValueError(question)
    text = " ".join(question.split())
    for written, wanted in zip(apart, (anatomy, finding), strict=True):
        text = text.replace(written, wanted.title() if written.istitle() else wanted, 1)
    return text


def picture_bytes(shard: Path, question_id: str, image_id: str | None = None) -> bytes:
    """Return the embedded picture of one row.

    Args:
        shard: its file.
        question_id: of the row.
        image_id: of the row, where question ids are not unique in the shard.

    Raises:
        DatasetError: the shard has no such row, or no embedded picture.
    """
    wanted = pl.col("question_id") == question_id
    if image_id is not None:
        wanted &= pl.col("image_id") == image_id
    pictures = pl.scan_parquet(shard).filter(wanted).select("image").collect()
    value = pictures["image"][0] if pictures.height == 1 or (pictures.height and image_id is not None) else None
    content = value.get("bytes") if isinstance(value, dict) else value
    if not isinstance(content, bytes):
        raise DatasetError("a released row has no embedded picture", where=f"{shard.name}, {question_id}")
    return content


def _rows(shard: Path) -> Iterator[Released]:
    try:
        frame = pl.read_parquet(shard, columns=list(_REQUIRED))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DatasetError(
            "a shard cannot be read", where=shard.name, expected=", ".join(_REQUIRED), got=str(error).splitlines()[0]
        ) from error
    split = "train" if shard.name.startswith("train") else "test"
    for number, record in enumerate(frame.iter_rows(named=True)):
        yield _row(record, split, shard.name, f"{shard.name} row {number}")


def _row(record: dict[str, Any], split: str, shard: str, where: str) -> Released:
    kind = record["question_type"]
    kind = KINDS[kind] if isinstance(kind, int) and 0 <= kind < len(KINDS) else kind
    texts = [record[name] for name in ("question_id", "image_id", "question", "answer", "anatomy")]
    if kind not in KINDS or not all(isinstance(text, str) for text in texts):
        raise DatasetError("a released row cannot be read", where=where, expected="question_type 0 to 3, and texts")
    apart = taken_apart(record["question"]) if kind.startswith("closed") else None
    mask = CodedMask(record["anatomy"], record["mask_rle"], record["mask_h"], record["mask_w"])
    question_id, image_id, question, answer, anatomy = texts
    finding = apart[1] if apart else ""
    return Released(question_id, image_id, split, kind, question, answer, anatomy, finding, mask, shard)


def _order(masks: Sequence[CodedMask]) -> Order | None:
    held = [mask for mask in masks if not mask.is_empty]
    if not held:
        return None
    return detected_order(held, limit=_TOLD)
