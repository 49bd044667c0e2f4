"""MedICaT: JSON lines with a figure each, pictures in ``figures/{pdf_hash}_{fig_uri}``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from medground.benchmarks.medical_checklist.sources.base import Captioned, text_lines, without_figure_number
from medground.errors import DataError


def read(path: Path) -> Iterator[Captioned]:
    """Yield the figures of a JSONL file; the longer of the two captions is taken without its figure number.

    Raises:
        DataError: a line is no JSON object, or lacks the fields that name the figure.
    """
    for number, line in text_lines(path):
        if not line.strip():
            continue
        try:
            row: dict[str, Any] = json.loads(line)
            name = f"{row['pdf_hash']}_{row['fig_uri']}"
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                "a line is no figure of MedICaT",
                where=f"{path}, line {number}",
                expected="pdf_hash, fig_uri",
                got=repr(error),
            ) from None
        captions = [str(row.get(k) or "").strip() for k in ("s2orc_caption", "s2_caption")]
        info = row.get("oa_info") or {}
        paper = info.get("doi") or row["pdf_hash"]
        licence = ((info.get("oa") or {}).get("license")) or ""
        text = without_figure_number(max(captions, key=len)).strip()
        yield Captioned(name, text, f"figures/{name}", str(paper), "medicat", str(licence), "")
