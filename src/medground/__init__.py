"""medground: does a medical vision-language model look at the evidence?

Importing this package is cheap; every name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "Case": "medground.datasets.base",
    "Dataset": "medground.datasets.base",
    "Radiograph": "medground.imaging.reading",
    "read_radiograph": "medground.imaging.reading",
    "Geometry": "medground.imaging.geometry",
    "Region": "medground.imaging.regions",
    "Prediction": "medground.models.base",
    "Grounder": "medground.models.base",
    "CaptionMatcher": "medground.models.base",
    "ChatModel": "medground.models.base",
    "QuestionAnswerer": "medground.models.base",
    "MedgroundError": "medground.errors",
}

__all__ = ["__version__", *sorted(_PUBLIC)]  # noqa: PLE0604  (names are the keys of a literal table)


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'medground' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)


if TYPE_CHECKING:
    from medground.datasets.base import Case as Case, Dataset as Dataset
    from medground.errors import MedgroundError as MedgroundError
    from medground.imaging.geometry import Geometry as Geometry
    from medground.imaging.reading import Radiograph as Radiograph, read_radiograph as read_radiograph
    from medground.imaging.regions import Region as Region
    from medground.models.base import (
        CaptionMatcher as CaptionMatcher,
        ChatModel as ChatModel,
        Grounder as Grounder,
        Prediction as Prediction,
        QuestionAnswerer as QuestionAnswerer,
    )
