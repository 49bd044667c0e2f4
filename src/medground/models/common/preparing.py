"""From a file to what a model takes: decoded, prepared where a model can do that apart, kept where there is a cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from medground.imaging.augmenting import Augmentation
from medground.imaging.cache import DecodeCache
from medground.imaging.geometry import Geometry
from medground.imaging.reading import Radiograph, read_radiograph
from medground.models.base import Prepared, Preparing, Repeatable


def load(
    model: Any,
    path: Path,
    cache: DecodeCache | None = None,
    *,
    case_id: str = "",
    patient_id: str | None = None,
    augmentation: Augmentation | None = None,
) -> Radiograph | Prepared:
    """Return a picture as a model takes it; called from several threads.

    Args:
        model: who will see it.
        path: the file.
        cache: of decoded and prepared pictures.
        case_id: put into the result.
        patient_id: put into the result.
        augmentation: the change that the picture is shown with; what was decoded is kept, what was changed is not.

    Raises:
        ImageError: the file cannot be decoded.
    """
    if cache is not None and augmentation is None and isinstance(model, Repeatable):
        content, about = cache.prepared(path, model.preparation(), lambda image: _parts(model.prepare(image)))
        (width, height), geometry = about["size"], Geometry.from_dict(about["geometry"])
        return Prepared(case_id, patient_id, (width, height), content, geometry)
    read = read_radiograph if cache is None else cache.read
    image = read(path, case_id=case_id, patient_id=patient_id)
    return prepared(model, image if augmentation is None else augmentation.picture(image, case_id))


def prepared(model: Any, image: Radiograph) -> Radiograph | Prepared:
    """Return a decoded picture as a model takes it."""
    return model.prepare(image) if isinstance(model, Preparing) else image


def _parts(picture: Prepared) -> tuple[NDArray[Any], Mapping[str, Any]]:
    return picture.content, {"size": picture.size, "geometry": picture.geometry.to_dict()}
