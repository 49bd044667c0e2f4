"""What a grounder says about one image, as it is kept and as it is read again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medground.benchmarks.requests import Answer
from medground.benchmarks.xbench.rows import Inferred
from medground.errors import ImageError, RunError
from medground.imaging.geometry import Geometry
from medground.models.base import Prediction
from medground.models.predictions.maps import read_file
from medground.paths import resolve_inside

MAP = "map/"
"""Before the finding in the name of a map."""


def image_answer(prediction: Prediction, i: int, wanted: Mapping[int, str], *, keep: bool) -> Answer:
    """Return what a prediction says about its image ``i``.

    Args:
        prediction: of a batch.
        i: which image.
        wanted: position -> name of the findings whose maps are measured or kept.
        keep: whether maps of the model are kept; one that was read from a file is kept as its name and hash.
    """
    absent, origin = _of(prediction.absent, i), _of(prediction.origin, i)
    kept: dict[str, NDArray[Any]] = {
        "scores": np.asarray(prediction.scores[i], dtype=np.float64),
        "probabilities": np.asarray(prediction.probabilities[i], dtype=np.float64),
    }
    passing: dict[str, NDArray[Any]] = {}
    if prediction.saliency is not None:
        for j, finding in wanted.items():
            if j not in absent:
                target = kept if keep and j not in origin else passing
                target[MAP + finding] = np.asarray(prediction.saliency[i][j], dtype=np.float32)
    values = {
        "geometry": prediction.geometry[i].to_dict(),
        "gives_maps": prediction.saliency is not None,
        "absent": {str(j): reason for j, reason in absent.items()},
        "origin": {str(j): list(place) for j, place in origin.items()},
    }
    if boxes := _of(prediction.boxes, i):
        values["boxes"] = {str(j): [[float(x) for x in box] for box in placed] for j, placed in boxes.items()}
    if replies := _of(prediction.replies, i):
        values["replies"] = {str(j): dict(words) for j, words in replies.items()}
    return Answer(values, kept, passing=passing)


def _of(mapping: Mapping[tuple[int, int], Any], i: int) -> dict[int, Any]:
    return {j: value for (image, j), value in mapping.items() if image == i}


def inferred(answer: Answer, findings: Sequence[str], localised: Collection[str], maps: Path | None) -> Inferred:
    """Return an answer as measuring takes it.

    Args:
        answer: just given, or kept.
        findings: in the order asked.
        localised: those whose maps are needed.
        maps: the folder of a model whose maps were made elsewhere.

    Raises:
        ImageError: a map's file is not what it was.
        RunError: a map is needed that was not kept.
    """
    values = answer.values
    absent = {int(j): str(reason) for j, reason in values["absent"].items()}
    origin = {int(j): (str(file), str(digest)) for j, (file, digest) in values["origin"].items()}
    given: list[NDArray[np.floating[Any]]] | None = None
    if values["gives_maps"]:
        held = {**answer.passing, **answer.arrays}
        given = [
            _map(held.get(MAP + finding), origin.get(j), maps) if finding in localised and j not in absent else _NO_MAP
            for j, finding in enumerate(findings)
        ]
    geometry = Geometry.from_dict(values["geometry"])
    scores, probabilities = (np.asarray(answer.arrays[name], np.float64) for name in ("scores", "probabilities"))
    boxes = {int(j): placed for j, placed in values.get("boxes", {}).items()}
    return Inferred(scores, probabilities, given, geometry, absent, origin, boxes)


_NO_MAP: NDArray[np.float32] = np.full((1, 1), np.nan, dtype=np.float32)


def _map(held: NDArray[Any] | None, origin: tuple[str, str] | None, maps: Path | None) -> NDArray[np.floating[Any]]:
    if held is not None:
        return held
    if origin is None or maps is None:
        raise RunError(
            "the maps of this run were not kept",
            expected="keep_maps: regions",
            got="keep_maps: none",
            fix="run it again with keep_maps: regions; another protocol then needs no model",
        )
    file, digest = origin
    array, now = read_file(resolve_inside(maps, file))
    if now != digest:
        raise ImageError("a map's file has changed since it was read", where=file, expected=digest, got=now)
    return array
