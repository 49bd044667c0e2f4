"""Heat maps and scores made elsewhere, so that any model can be measured without being run here.

What a folder may hold is listed in :mod:`medground.models.predictions.maps`; an optional table ``scores.csv`` has
``case_id, finding, score`` (and ``probability``), or one column a finding. Ids and findings are found however they are
written; what was found, what is missing and what fits nothing is said when a run starts and stands in its report.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from medground.errors import DataError, ModelError
from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph
from medground.models.base import ModelInfo, Prediction
from medground.models.predictions.maps import ENDINGS, Maps
from medground.models.predictions.scores import Scale, Scores, read_scores
from medground.tables.ids import plain_id
from medground.tables.join import Join, Key, join

_NO_MAP: NDArray[np.float64] = np.full((1, 1), np.nan)


class Precomputed:
    """Returns the user's own maps; a map covers the whole picture, whatever its size.

    Args:
        maps: the folder of maps and scores, or a file of maps (``.npz``, ``.json``).
        title: how tables call the model that made them.
        scale: of scores: ``probability``, ``logit``, ``ranking``, or ``auto``: decided for a whole column, and said.
    """

    name: ClassVar[str] = "precomputed"
    info: ClassVar[ModelInfo] = ModelInfo("Precomputed maps", licence="the user's own files")

    def __init__(self, maps: Path, title: str | None = None, scale: Scale = "auto") -> None:
        if not maps.exists():
            raise ModelError("the folder of maps does not exist", where=maps, fix="correct `maps:` in the run file")
        self.maps = maps
        self.title = title
        self._maps = Maps(maps)
        table = maps / "scores.csv"
        self._scores = read_scores(table, scale) if table.is_file() else Scores({})
        if not (self._maps.names or self._scores.values):
            raise ModelError(
                "the folder holds no maps and no scores",
                where=maps,
                expected="<case id>/<finding>.npz, .npy, .png or .pkl; or maps.csv, boxes.csv, scores.csv",
                fix="correct `maps:` in the run file",
            )

    reads_elsewhere: ClassVar[bool] = True

    def joined(self, localised: Iterable[Key], asked: Sequence[Key]) -> list[str]:
        """Return in words what of the folder fits the data.

        Args:
            localised: (case, finding) of every region: each needs a map.
            asked: (case, finding) of everything that is asked.

        Raises:
            DataError: there are maps, or scores, and none fits.
        """
        lines = [*self._maps.remarks, *self._scores.remarks]
        names = [tuple(name.split("/")) for name in self._maps.names]
        whole = {_parts(*pair): pair for pair in asked}
        if names:
            every = join(whole, names, what="maps", unit="cases and findings").require_some(DataError)
            needed = [_parts(*pair) for pair in localised]
            matched = {key: every.matched[key] for key in needed if key in every.matched}
            missing = tuple(key for key in needed if key not in every.matched)
            found = Join("maps", "localised cases and findings", matched, missing, every.extra, every.rewritten)
            lines.append(found.line())
        if self._scores.values:
            given = [_parts(*pair) for pair in self._scores.values]
            scores = join(whole, given, what="scores.csv", unit="cases and findings")
            lines.append(scores.require_some(DataError).line())
        return lines

    def predict(self, images: Sequence[Radiograph], findings: Sequence[str]) -> Prediction:
        """See :class:`medground.models.base.Grounder`; what is not in the folder stays undefined, with the reason.

        Raises:
            ImageError: a map cannot be read, or cannot be of its picture: it is turned, or was unfolded.
        """
        saliency, absent, origin, boxes = [], {}, {}, {}
        for i, image in enumerate(images):
            row: list[NDArray[np.floating[Any]]] = []
            for j, finding in enumerate(findings):
                name = self._names.get(_plain(f"{image.case_id}/{finding}"))
                if name is None and len(findings) == 1:
                    name = self._names.get(_plain(image.case_id))
                if name is None:
                    absent[i, j] = "no map in the folder"
                    row.append(_NO_MAP)
                    continue
                found = self._maps.read(name, image.size)
                row.append(found.values)
                if found.origin is not None:
                    origin[i, j] = found.origin
                if found.boxes is not None:
                    boxes[i, j] = found.boxes
            saliency.append(row)
        nothing = (np.nan, np.nan)
        scored = np.array([[self._scored.get(_plain(f"{x.case_id}/{f}"), nothing) for f in findings] for x in images])
        return Prediction(
            scores=scored[..., 0],
            probabilities=scored[..., 1],
            saliency=saliency,
            geometry=[Geometry.identity(image.size) for image in images],
            absent=absent,
            origin=origin,
            boxes=boxes,
        )

    def fingerprint(self) -> str:
        """A hash over names, sizes and times of all files: other files are another model."""
        state = hashlib.sha256()
        files = self.maps.rglob("*") if self.maps.is_dir() else [self.maps]
        for path in sorted(p for p in files if p.suffix.lower() in {*ENDINGS, ".csv", ".json"}):
            stat = path.stat()
            state.update(f"{path.name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
        return f"precomputed-{state.hexdigest()[:16]}"

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return _unique((_plain(name), name) for name in self._maps.names)

    @cached_property
    def _scored(self) -> Mapping[str, tuple[float, float]]:
        values = self._scores.values
        return {plain: values[key] for plain, key in _unique((_plain("/".join(k)), k) for k in values).items()}


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for plain, name in pairs:
        if found.setdefault(plain, name) != name:
            raise DataError("two names become one when they are written one way", got=f"{found[plain]}; {name}")
    return found


def _plain(name: str) -> str:
    """Return ``case/finding`` written one way."""
    return "/".join(plain_id(part) for part in name.split("/"))


def _parts(case: str, finding: str) -> Key:
    return tuple(f"{case}/{finding}".split("/"))
