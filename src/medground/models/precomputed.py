"""Heat maps and scores made elsewhere, so that any model can be measured without being run here.

A folder holds ``<case id>/<finding>.npz`` (or ``.npy``, or a grey ``.png``), or a table ``maps.csv`` with the columns
``case_id, finding, file``. An optional table ``scores.csv`` has ``case_id, finding, score`` and, where the score is not
a probability, ``probability``. Scores are taken for probabilities where the whole column lies in [0, 1]; ranking (AUC,
average precision) needs no probability.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medground.errors import ImageError, ModelError
from medground.imaging.geometry import Geometry
from medground.imaging.maps import SUFFIXES, read_map
from medground.imaging.reading import Radiograph
from medground.models.base import ModelInfo, Prediction
from medground.paths import resolve_inside

_NO_MAP: NDArray[np.float64] = np.full((1, 1), np.nan)


class Precomputed:
    """Returns the user's own maps; a map covers the whole picture, whatever its size.

    Args:
        maps: the folder of maps.
        title: how tables call the model that made them.
    """

    name: ClassVar[str] = "precomputed"
    info: ClassVar[ModelInfo] = ModelInfo("Precomputed maps", licence="the user's own files")

    def __init__(self, maps: Path, title: str | None = None) -> None:
        if not maps.is_dir():
            raise ModelError("the folder of maps does not exist", where=maps, fix="correct `maps:` in the run file")
        self.maps = maps
        self.title = title
        self._files = {(r["case_id"], r["finding"]): r["file"] for r in _table(maps / "maps.csv", "file")}
        self._scores = _scores(maps / "scores.csv")
        if not (self._files or self._scores or any(path.suffix in SUFFIXES for path in maps.glob("*/*"))):
            raise ModelError(
                "the folder holds no maps and no scores",
                where=maps,
                expected="<case id>/<finding>.npz, .npy or .png; or maps.csv; or scores.csv",
                fix="correct `maps:` in the run file",
            )

    def predict(self, images: Sequence[Radiograph], findings: Sequence[str]) -> Prediction:
        """See :class:`medground.models.base.Grounder`; what is not in the folder stays undefined, with the reason."""
        saliency, absent, origin = [], {}, {}
        for i, image in enumerate(images):
            row: list[NDArray[np.floating[Any]]] = []
            for j, finding in enumerate(findings):
                path = self._find(image.case_id, finding)
                if path is None:
                    absent[i, j] = "no map in the folder"
                    row.append(_NO_MAP)
                    continue
                array, digest = read_map(path)
                row.append(array)
                origin[i, j] = (str(path.relative_to(self.maps.resolve())), digest)
            saliency.append(row)
        scored = np.array([[self._scores.get((x.case_id, f), (np.nan, np.nan)) for f in findings] for x in images])
        return Prediction(
            scores=scored[..., 0],
            probabilities=scored[..., 1],
            saliency=saliency,
            geometry=[Geometry.identity(image.size) for image in images],
            absent=absent,
            origin=origin,
        )

    def fingerprint(self) -> str:
        """A hash over names, sizes and times of all files: other files are another model."""
        state = hashlib.sha256()
        for path in sorted(p for p in self.maps.rglob("*") if p.suffix in {*SUFFIXES, ".csv"}):
            stat = path.stat()
            state.update(f"{path.relative_to(self.maps)}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
        return f"precomputed-{state.hexdigest()[:16]}"

    def _find(self, case_id: str, finding: str) -> Path | None:
        if (case_id, finding) in self._files:
            path = resolve_inside(self.maps, self._files[case_id, finding])
            if not path.is_file():
                raise ImageError("maps.csv names a file that is not there", where=path.name)
            return path
        for suffix in SUFFIXES:
            name = f"{case_id}/{finding}{suffix}"
            if (self.maps / name).is_file():
                return resolve_inside(self.maps, name)
        return None


def _table(path: Path, column: str) -> Iterator[Mapping[str, str]]:
    if not path.is_file():
        return
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        wanted = {"case_id", "finding", column}
        if not wanted <= set(reader.fieldnames or ()):
            raise ModelError(
                f"{path.name} lacks a column",
                where=path,
                expected=", ".join(sorted(wanted)),
                got=", ".join(reader.fieldnames or ()),
            )
        yield from reader


def _scores(path: Path) -> dict[tuple[str, str], tuple[float, float]]:
    """Return (case, finding) -> score and probability, NaN where there is none.

    Scale is a property of a column: of logits that happen to lie in [0, 1], none is a probability.
    """
    rows = [(r["case_id"], r["finding"], _number(r, "score"), _number(r, "probability")) for r in _table(path, "score")]
    likely = all(0 <= score <= 1 for *_, score, _ in rows if not np.isnan(score))
    given = any(not np.isnan(probability) for *_, probability in rows)
    return {
        (case, finding): (score, score if likely and not given else probability)
        for case, finding, score, probability in rows
    }


def _number(row: Mapping[str, str], column: str) -> float:
    text = row.get(column) or ""
    if not text and column == "probability":
        return np.nan
    try:
        return float(text)
    except ValueError as error:
        where = f"{row['case_id']}, {row['finding']}"
        raise ModelError("scores.csv holds a value that is no number", where=where, got=str(error)) from error
