"""ROCOv2: ``*_captions.csv`` (ID,Caption) with an optional licence table, or the Parquet copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from medground.benchmarks.medical_checklist.sources.base import Captioned, missing
from medground.errors import DataError

if TYPE_CHECKING:
    import polars as pl

_SPLITS = ("train", "valid", "test")


def read(folder: Path) -> Iterator[Captioned]:
    """Yield the captions of a folder with CSV or Parquet files.

    Raises:
        DataError: neither is there, or a table lacks its columns.
    """
    tables = sorted(folder.rglob("*captions*.csv"))
    parquets = sorted(folder.rglob("*.parquet"))
    if not tables and not parquets:
        raise missing(folder, ["*_captions.csv", "*.parquet"])
    for path in tables:
        yield from _csv(path)
    if not tables:
        for path in parquets:
            yield from _parquet(path)


def _split(path: Path) -> str:
    return next((s for s in _SPLITS if s in path.stem.lower()), "")


def _csv(path: Path) -> Iterator[Captioned]:
    import polars as pl

    table = _read(path)
    licences: dict[str, str] = {}
    for beside in sorted(path.parent.glob("*licen*.csv")):
        held = _read(beside)
        if len(held.columns) >= 2:
            licences |= dict(zip(held[held.columns[0]], held[held.columns[-1]], strict=True))
    columns = {c.strip().lower(): c for c in table.columns}
    if not {"id", "caption"} <= set(columns):
        raise DataError("a caption table lacks its columns", where=path, expected="ID, Caption", got=table.columns)
    for key, caption in table.select(pl.col(columns["id"]), pl.col(columns["caption"])).iter_rows():
        text = (caption or "").strip()
        yield Captioned(key, text, f"{key}.jpg", key, "rocov2", licences.get(key) or "", _split(path))


def _read(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError("a table cannot be read", where=path, expected="UTF-8 CSV", got=str(error)[:120]) from None


def _parquet(path: Path) -> Iterator[Captioned]:
    import polars as pl

    try:
        frame = pl.scan_parquet(path)
        names = frame.collect_schema().names()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError("a Parquet file cannot be read", where=path, got=str(error)[:120]) from None
    if not {"image_id", "caption"} <= set(names):
        raise DataError("a Parquet file lacks its columns", where=path, expected="image_id, caption", got=names)
    for key, caption in frame.select("image_id", "caption").collect().iter_rows():
        yield Captioned(str(key), (caption or "").strip(), f"{key}.jpg", str(key), "rocov2", "", _split(path))
